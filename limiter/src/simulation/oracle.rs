//! An exact bucket for every bucket of the table, moved by the writes that really happened.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Attributes, BucketKey, BucketWrite, Decoded, Image, SlotBefore, WriteKind};
use zae_limiter_schema::keys::Key;

use super::account::{Account, Exact};
use super::clock::START;
use super::intervals::Intervals;
use super::kinds::Kinds;
use super::lost_debits::LostDebits;
use super::top_ups::TopUp;

/// Clocks that differ by no more are right, in milliseconds.
const MAX_SPREAD: i64 = 4_000;

/// A promise that was broken.
#[derive(Debug, Clone)]
pub(super) struct Violation {
    pub(super) at: i64,
    pub(super) what: String,
}

/// What a refused call asked of one limit, in millitokens.
#[derive(Debug)]
pub(super) struct Shortage {
    pub(super) key: BucketKey,
    pub(super) limit: LimitName,
    pub(super) amount: i128,
}

/// Judges every write that is applied.
#[derive(Debug)]
pub(super) struct Oracle {
    accounts: BTreeMap<BucketKey, Account>,
    applied: HashSet<(i128, BucketKey)>,
    /// How often each top-up was made.
    pub(super) top_ups: HashMap<Key, u32>,
    pub(super) violations: Vec<Violation>,
    pub(super) intervals: Intervals,
    pub(super) kinds: Kinds,
    pub(super) lost_debits: LostDebits,
    /// Net consumption booked by all writes, by bucket and limit, across incarnations.
    pub(super) booked: BTreeMap<(BucketKey, LimitName), i128>,
    /// By how much clocks differ at most: that much refill may come early.
    spread: i64,
    /// The peer writes too: only the cumulative bound can be kept, and only for our admissions.
    with_peers: bool,
    /// When each bucket was last deleted.
    deleted: BTreeMap<BucketKey, i64>,
    /// Writes on slots of other clients, which are not found if their response is lost.
    pub(super) on_slots_of_others: u64,
    /// Limits with an interval that admitted too much.
    pub(super) excesses: usize,
    pub(super) writes: u64,
    /// Buckets that the table has forgotten, and slots of an earlier release that were removed.
    pub(super) expired: u64,
    pub(super) legacy_removed: u64,
    pub(super) parameters: u64,
}

impl Oracle {
    pub(super) fn new(spread: i64, with_peers: bool) -> Self {
        Self {
            accounts: BTreeMap::new(),
            applied: HashSet::new(),
            top_ups: HashMap::new(),
            violations: Vec::new(),
            intervals: Intervals::default(),
            kinds: Kinds::default(),
            lost_debits: LostDebits::default(),
            booked: BTreeMap::new(),
            spread,
            with_peers,
            deleted: BTreeMap::new(),
            on_slots_of_others: 0,
            excesses: 0,
            writes: 0,
            expired: 0,
            legacy_removed: 0,
            parameters: 0,
        }
    }

    fn violation(&mut self, at: i64, what: String) {
        if self.violations.len() < 20 {
            self.violations.push(Violation { at: at - START, what });
        }
    }

    /// A write of ours was applied at `at`.
    pub(super) fn applied(&mut self, write: &BucketWrite, after: &Attributes, at: i64) {
        self.writes += 1;
        self.on_slots_of_others += u64::from(write.slot.before == SlotBefore::Any);
        self.lost_debits.applied(write);
        self.legacy_removed += write.legacy_slots.len() as u64;
        let again = !self.applied.insert((write.slot.number, write.key.clone()));
        // On another client's slot a copy may land twice, if it only takes.
        if again && (write.slot.before != SlotBefore::Any || write.batch.gives_back()) {
            self.violation(at, format!("write {} happened twice", write.slot.number));
        }
        let Some(after) = image(after) else {
            return self.violation(at, "a write left something that is no bucket".to_owned());
        };
        if write.sets_refill_back() && self.spread <= MAX_SPREAD {
            self.violation(at, "clocks agree, and the last refill was set back".to_owned());
        }
        self.intervals.applied(write, &after, at);
        let mut account = self.accounts.remove(&write.key).unwrap_or_default();
        match write.kind {
            WriteKind::Create => account.create(&after, write),
            WriteKind::Reconfigure => {
                self.parameters += 1;
                account.reparameter(&after, write);
            }
            WriteKind::Touch | WriteKind::Refill => {}
        }
        let mut found = account.book(write, self.with_peers);
        if !self.with_peers {
            found.extend(account.compare(&after, write));
        }
        found.extend(self.kinds.applied(write, &after, at, self.spread / 2));
        account.remember(at);
        for (limit, demand) in &write.batch.demands {
            *self.booked.entry((write.key.clone(), limit.clone())).or_default() += demand.consumption();
        }
        self.accounts.insert(write.key.clone(), account);
        for what in found {
            let key = &write.key;
            self.violation(
                at,
                format!("{:?} on {}/{}: {what}", write.kind, key.entity, key.resource),
            );
        }
    }

    /// A top-up was made at `at`, under this record. It is no consumption: the usage stays as it is.
    pub(super) fn topped_up(&mut self, record: &Key, top_up: &TopUp, after: &Attributes, at: i64) {
        let made = self.top_ups.entry(record.clone()).or_default();
        *made += 1;
        if *made > 1 {
            self.violation(at, "a top-up was made twice".to_owned());
        }
        let (Some(after), Ok(limit)) = (image(after), LimitName::parse(top_up.limit)) else {
            return self.violation(at, "a top-up left something that is no bucket".to_owned());
        };
        let found = self.kinds.topped_up(top_up, &limit, &after, at, self.spread / 2);
        for what in found {
            self.violation(at, format!("top-up of {}: {what}", top_up.bucket.entity));
        }
        if after.quotas.contains_key(&limit) {
            return;
        }
        let (amount, decided) = (i128::from(top_up.amount) * 1_000, top_up.decided_at);
        let span = (decided.min(at), decided.max(at));
        self.intervals.topped_up(&top_up.bucket, &limit, amount, span);
        let account = self.accounts.entry(top_up.bucket.clone()).or_default();
        let wrong = account.top_up(&limit, amount, decided, &after);
        account.remember(at);
        if let Some(what) = wrong {
            self.violation(at, format!("top-up of {}: {what}", top_up.bucket.entity));
        }
    }

    /// Everything has happened: was there an interval that admitted more than burst and refill?
    pub(super) fn finish(&mut self) {
        if !self.with_peers {
            let found = self.intervals.violations(self.spread);
            self.excesses = found.len();
            for what in found {
                self.violations.push(Violation { at: 0, what });
            }
        }
    }

    /// The peer has changed a bucket: levels are taken over as they are.
    pub(super) fn peer_applied(
        &mut self,
        key: &BucketKey,
        before: Option<&Attributes>,
        after: &Attributes,
        at: i64,
    ) {
        let (Some(after), before) = (image(after), before.and_then(image)) else {
            return;
        };
        let account = self.accounts.entry(key.clone()).or_default();
        for (name, limit) in &after.limits {
            let exact = account.limits.entry(name.clone()).or_insert(Exact {
                token_bucket: limit.token_bucket,
                at,
                created: at,
                net: 0,
                latest: at,
                behind: 0,
                slack: 0,
                latent: 0,
            });
            exact.latest = exact.latest.max(at);
            let was = before
                .as_ref()
                .and_then(|before| before.limits.get(name))
                .map_or(0, |limit| limit.consumed);
            exact.net += limit.consumed - was;
        }
    }

    /// The table is about to forget a bucket. That must not add tokens.
    pub(super) fn expired(&mut self, key: &BucketKey, at: i64) {
        for what in self.kinds.expired(key, at) {
            self.violation(at, format!("{}: {what}", key.entity));
        }
        let Some(mut account) = self.accounts.remove(key) else {
            return;
        };
        self.expired += 1;
        self.lost_debits.expired(key);
        for (name, exact) in &mut account.limits {
            exact.advance(at);
            if exact.token_bucket.tokens < exact.token_bucket.params.burst() && !self.with_peers {
                let missing = exact.token_bucket.params.burst() - exact.token_bucket.tokens;
                let what = format!(
                    "{}: {name} was forgotten {missing} millitokens before it was full",
                    key.entity
                );
                if self.violations.len() < 20 {
                    self.violations.push(Violation { at: at - START, what });
                }
            }
        }
    }

    /// Somebody deletes a bucket: the next one starts full.
    pub(super) fn deleted(&mut self, key: &BucketKey, at: i64) {
        self.accounts.remove(key);
        self.deleted.insert(key.clone(), at);
        self.lost_debits.expired(key);
        self.intervals.deleted(key, at);
        self.kinds.deleted(key);
    }

    /// Was there really too little of the limit, by a level of these times? What comes back until a later now counts too.
    /// A clock that is behind does not see yet what came back in the last milliseconds.
    pub(super) fn was_short(&self, asked: &Shortage, times: RangeInclusive<i64>, until: i64) -> bool {
        let deleted = self.deleted.get(&asked.key);
        if deleted.is_some_and(|at| times.contains(at)) {
            // What the deleted bucket had is not known any more.
            return true;
        }
        let Some(account) = self.accounts.get(&asked.key) else {
            return false;
        };
        let Some(exact) = account.limits.get(&asked.limit) else {
            return true;
        };
        let params = exact.token_bucket.params;
        if params.burst() < asked.amount {
            return true;
        }
        let unseen = i128::from(self.spread) * params.amount() / params.period();
        let history = &account.history;
        let before = history.iter().rev().find(|(at, _)| at < times.start());
        let during = history.iter().filter(|(at, _)| times.contains(at));
        before.into_iter().chain(during).any(|(_, levels)| {
            let level = levels.get(&asked.limit).map(|exact| {
                let elapsed = i128::from((until - exact.at - self.spread).max(0));
                exact.token_bucket.available(elapsed)
            });
            level.is_some_and(|level| level - unseen < asked.amount)
        })
    }
}

fn image(attributes: &Attributes) -> Option<Image> {
    match attributes.decode() {
        Ok(Decoded::Bucket(image)) => Some(image),
        _ => None,
    }
}
