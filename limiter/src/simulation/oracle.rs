//! An exact bucket for every bucket of the table, moved by the writes that really happened.

use std::collections::{BTreeMap, HashSet, VecDeque};

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{
    Attributes, BucketKey, BucketWrite, Decoded, Image, Meter, Params, RowForm, Shape,
};

use super::clock::START;
use super::intervals::Intervals;

/// How long what happened is kept, to judge refusals by, in milliseconds.
const HISTORY: i64 = 10_000;

/// A promise that was broken.
#[derive(Debug, Clone)]
pub(super) struct Violation {
    pub(super) at: i64,
    pub(super) what: String,
}

/// One limit as it should be.
#[derive(Debug, Clone, Copy)]
struct Exact {
    meter: Meter,
    /// The moment the meter stands at. Each limit has its own: writes are decided at one moment and applied at another.
    at: i64,
    /// Net consumption and creation, for the cumulative bound.
    created: i64,
    net: i128,
    /// The latest moment of anything that was booked.
    latest: i64,
    /// By how much the last write was decided before an earlier one, in milliseconds.
    behind: i64,
    /// How far the last change of parameters, decided before a write that arrived first, may be off.
    slack: i128,
    /// What such a write left on top of the burst, where it cannot be seen until something is taken.
    latent: i128,
}

#[derive(Debug, Default)]
struct Account {
    limits: BTreeMap<LimitName, Exact>,
    /// Levels after each write, by the moment it was applied.
    history: VecDeque<(i64, BTreeMap<LimitName, i128>)>,
}

/// Judges every write that is applied.
#[derive(Debug)]
pub(super) struct Oracle {
    accounts: BTreeMap<BucketKey, Account>,
    applied: HashSet<(String, i128, BucketKey)>,
    pub(super) violations: Vec<Violation>,
    pub(super) intervals: Intervals,
    /// Net consumption booked by all writes, by bucket and limit, across incarnations.
    pub(super) booked: BTreeMap<(BucketKey, LimitName), i128>,
    /// By how much clocks differ at most: that much refill may come early.
    spread: i64,
    /// The peer writes too: only the cumulative bound can be kept, and only for our admissions.
    with_peers: bool,
    /// Limits with an interval that admitted too much.
    pub(super) excesses: usize,
    pub(super) writes: u64,
    pub(super) parameters: u64,
}

impl Oracle {
    pub(super) fn new(spread: i64, with_peers: bool) -> Self {
        Self {
            accounts: BTreeMap::new(),
            applied: HashSet::new(),
            violations: Vec::new(),
            intervals: Intervals::default(),
            booked: BTreeMap::new(),
            spread,
            with_peers,
            excesses: 0,
            writes: 0,
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
        let id = (
            write.slot.client.to_string(),
            write.slot.number,
            write.key.clone(),
        );
        if !self.applied.insert(id) {
            self.violation(
                at,
                format!(
                    "write {} of {} happened twice",
                    write.slot.number, write.slot.client
                ),
            );
        }
        let Some(after) = image(after) else {
            return self.violation(at, "a write left something that is no bucket".to_owned());
        };
        self.intervals.applied(write, &after, at);
        let mut account = self.accounts.remove(&write.key).unwrap_or_default();
        match write.shape {
            Shape::New => account.create(&after, write),
            Shape::Parameters => {
                self.parameters += 1;
                account.reparameter(&after, write);
            }
            Shape::Touch | Shape::Settle => {}
        }
        let mut found = account.book(write, self.with_peers, self.spread);
        if !self.with_peers && self.spread == 0 {
            found.extend(account.compare(&after, write));
        }
        account.remember(at);
        for (limit, demand) in &write.batch.demands {
            *self.booked.entry((write.key.clone(), limit.clone())).or_default() += demand.consumption();
        }
        self.accounts.insert(write.key.clone(), account);
        for what in found {
            let key = &write.key;
            self.violation(
                at,
                format!("{:?} on {}/{}: {what}", write.shape, key.entity, key.resource),
            );
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
                meter: limit.meter,
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

    /// The table is about to forget a bucket. It must give nothing away by that.
    pub(super) fn expired(&mut self, key: &BucketKey, at: i64) {
        let Some(mut account) = self.accounts.remove(key) else {
            return;
        };
        for (name, exact) in &mut account.limits {
            exact.advance(at);
            if exact.meter.tokens < exact.meter.params.burst() && !self.with_peers {
                let missing = exact.meter.params.burst() - exact.meter.tokens;
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

    /// Was there, at some moment around the call, really too little of one of the asked limits?
    pub(super) fn refusal_is_right(
        &self,
        asked: &[(BucketKey, LimitName, i128)],
        from: i64,
        to: i64,
    ) -> bool {
        asked.iter().any(|(key, limit, amount)| {
            let Some(account) = self.accounts.get(key) else {
                return false;
            };
            let Some(exact) = account.limits.get(limit) else {
                return true;
            };
            if exact.meter.params.burst() < *amount {
                return true;
            }
            let before = account.history.iter().rev().find(|(moment, _)| *moment <= from);
            let during = account
                .history
                .iter()
                .filter(|(moment, _)| (from..=to).contains(moment));
            before.into_iter().chain(during).any(|(moment, levels)| {
                let level = levels.get(limit).copied().unwrap_or(i128::MAX);
                let refilled = i128::from(from - moment).max(0) * exact.meter.params.amount()
                    / exact.meter.params.period();
                level.saturating_add(refilled) < *amount
            })
        })
    }
}

impl Exact {
    fn advance(&mut self, to: i64) {
        if to > self.at {
            self.meter = self.meter.refilled(i128::from(to - self.at));
            self.at = to;
        }
    }
}

impl Account {
    fn create(&mut self, after: &Image, write: &BucketWrite) {
        self.limits.clear();
        self.history.clear();
        for (name, limit) in &after.limits {
            let meter = Meter::full(limit.meter.params);
            let created = write.decided_at.millis();
            self.limits.insert(
                name.clone(),
                Exact {
                    meter,
                    at: created,
                    created,
                    net: 0,
                    latest: created,
                    behind: 0,
                    slack: 0,
                    latent: 0,
                },
            );
        }
    }

    fn reparameter(&mut self, after: &Image, write: &BucketWrite) {
        let now = write.decided_at.millis();
        for (name, limit) in &after.limits {
            let params = limit.meter.params;
            let exact = self.limits.entry(name.clone()).or_insert(Exact {
                meter: Meter::full(params),
                at: now,
                created: now,
                net: 0,
                latest: now,
                behind: 0,
                slack: 0,
                latent: 0,
            });
            let behind = i128::from(exact.at - now).max(0);
            let earned = |params: Params| behind * params.amount() / params.period() + 1;
            exact.slack = earned(params).max(earned(exact.meter.params));
            if behind == 0 {
                exact.slack = 0;
            }
            exact.advance(now);
            // What is given back fits under the old burst or is lost, like what comes back.
            let credit = write.batch.demand(name).credit;
            exact.meter = exact.meter.credit(0, credit);
            exact.net -= credit;
            if exact.meter.params != params {
                let tokens = exact.meter.tokens.min(params.burst());
                // A change of rate may lose what is left of the last division, which is less than a millitoken.
                let remainder = if exact.meter.params.same_rate(&params) {
                    exact.meter.remainder
                } else {
                    0
                };
                exact.meter = Meter {
                    params,
                    tokens,
                    remainder,
                };
                exact.created = now;
                exact.net = params.burst() - tokens;
            }
        }
    }

    /// Books the write's demands. Every debit must have been there.
    fn book(&mut self, write: &BucketWrite, with_peers: bool, spread: i64) -> Vec<String> {
        let mut found = Vec::new();
        let moves_all = !matches!(write.shape, Shape::Touch);
        for (name, exact) in &mut self.limits {
            let demand = write.batch.demand(name);
            if !moves_all && !demand.moves_tokens() {
                continue;
            }
            let now = write.decided_at.millis();
            exact.behind = (exact.at - now).max(0);
            exact.advance(now);
            exact.latest = exact.latest.max(now);
            let credit = if write.shape == Shape::Parameters {
                0
            } else {
                demand.credit
            };
            exact.meter = exact.meter.credit(0, credit).force_take(0, demand.adjust);
            exact.net += demand.adjust - credit;
            let early = i128::from(spread) * exact.meter.params.amount() / exact.meter.params.period();
            let missing = demand.debit - exact.meter.tokens;
            if demand.debit > 0 && missing > early && !with_peers {
                found.push(format!(
                    "{name}: admitted {missing} millitokens more than there were"
                ));
            }
            exact.meter = exact.meter.force_take(0, demand.debit);
            exact.net += demand.debit;
            let since = i128::from(exact.latest - exact.created);
            let ever = exact.meter.params.burst()
                + since * exact.meter.params.amount() / exact.meter.params.period();
            if demand.debit > 0 && exact.net > ever + early + 1 {
                let by = exact.net - ever;
                found.push(format!(
                    "{name}: {by} millitokens more than burst and refill since creation"
                ));
            }
        }
        found
    }

    /// The stored level must be the exact one: not above, and not below by more than the rounding of one write.
    fn compare(&mut self, after: &Image, write: &BucketWrite) -> Vec<String> {
        let mut found = Vec::new();
        let dropped: Vec<_> = self
            .limits
            .keys()
            .filter(|name| !after.limits.contains_key(*name))
            .cloned()
            .collect();
        for name in dropped {
            let exact = self.limits.remove(&name);
            if exact.is_some_and(|exact| exact.meter.tokens < exact.meter.params.burst()) {
                found.push(format!("{name}: left the bucket before it was full"));
            }
        }
        for (name, exact) in &mut self.limits {
            let Some(limit) = after.limits.get(name) else {
                continue;
            };
            let elapsed = i128::from((exact.at - after.refilled_at.millis()).max(0));
            let (stored, right) = (limit.meter.available(elapsed), exact.meter.tokens);
            let difference = stored - right;

            // A touch that sets a level rounds down by less than a millitoken, one that credits may keep a remainder
            // on top, and new parameters drop a remainder. A write counts from the moment it was decided: what it gave
            // back left room then, and what has come back since, until a later write that arrived first, is kept.
            let credited = write.batch.demand(name).credit > 0;
            let params = exact.meter.params;
            let kept = if credited {
                i128::from(exact.behind) * params.amount() / params.period() + 1
            } else {
                0
            };
            exact.latent = exact.latent.max(kept);
            let (up, down) = (1 + exact.latent.max(exact.slack), 2 + exact.slack);
            if difference < -down || difference > up {
                found.push(format!(
                    "{name}: stored level {stored}, exact level {right} ({difference})"
                ));
            }
            let rounds = write.shape == Shape::Parameters || has_full_touch(write, name);
            if (0..=up).contains(&difference) || (rounds && (-down..=0).contains(&difference)) {
                exact.meter.tokens = stored;
            }
            if write.shape != Shape::Touch && exact.behind == 0 {
                exact.latent = 0;
            }
            exact.slack = 0;
        }
        found
    }

    fn remember(&mut self, at: i64) {
        let levels = self
            .limits
            .iter()
            .map(|(name, exact)| (name.clone(), exact.meter.tokens))
            .collect();
        self.history.push_back((at, levels));
        while self.history.len() > 2 && self.history[1].0 < at - HISTORY {
            self.history.pop_front();
        }
    }
}

fn has_full_touch(write: &BucketWrite, name: &LimitName) -> bool {
    write.shape == Shape::Touch
        && write
            .rows
            .iter()
            .any(|row| row.limit == *name && matches!(row.form, RowForm::Full { .. }))
}

fn image(attributes: &Attributes) -> Option<Image> {
    match attributes.decode() {
        Ok(Decoded::Bucket(image)) => Some(image),
        _ => None,
    }
}
