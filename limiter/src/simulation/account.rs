//! One bucket as it should be, moved by the writes that really happened.
//!
//! Its time is the time of decisions: a write counts from the time at which its writer decided it, by the writer's own
//! clock, moved forward to the last refill that the writer had seen. The item knows no other time: `rf` and the numbers in
//! every condition are computed from it. Clocks that differ are therefore the same to the model as writes that arrive in
//! another order than they were decided in, which late ones do with right clocks too, and a spread of clocks needs no
//! allowance here. What it costs in real time is bounded in `intervals.rs`.
//!
//! After each write the model takes over the stored level, if it is within what the model cannot know: the rounding of one
//! write, and what came back between two writes that arrived the other way round (`latent`, `slack`). So it starts from the
//! level of the item at each change of parameters, with wrong clocks as with right ones. A model that went on with its own
//! level there would carry such differences from change to change and call them admitted too much.

use std::collections::{BTreeMap, VecDeque};

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{BucketWrite, Image, Params, Row, RowForm, TokenBucket, WriteKind};

/// How long what happened is kept, to judge refusals by, in milliseconds.
const HISTORY: i64 = 10_000;

/// One limit as it should be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exact {
    pub(super) token_bucket: TokenBucket,
    /// The now the token_bucket stands at. Each limit has its own: writes are decided at one now and applied at another.
    pub(super) at: i64,
    /// Net consumption and creation, for the cumulative bound.
    pub(super) created: i64,
    pub(super) net: i128,
    /// The latest now of anything that was booked.
    pub(super) latest: i64,
    /// By how much the last write was decided before an earlier one, in milliseconds.
    pub(super) behind: i64,
    /// How far the last change of parameters, decided before a write that arrived first, may be off.
    pub(super) slack: i128,
    /// What such a write left on top of the burst, where it cannot be seen until something is taken.
    pub(super) latent: i128,
}

#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) limits: BTreeMap<LimitName, Exact>,
    /// Levels after each write, by the now it was applied.
    pub(super) history: VecDeque<(i64, BTreeMap<LimitName, Exact>)>,
}

impl Exact {
    pub(super) fn advance(&mut self, to: i64) {
        if to > self.at {
            self.token_bucket = self.token_bucket.refilled(i128::from(to - self.at));
            self.at = to;
        }
    }
}

impl Account {
    pub(super) fn create(&mut self, after: &Image, write: &BucketWrite) {
        self.limits.clear();
        self.history.clear();
        for (name, limit) in &after.limits {
            let token_bucket = TokenBucket::full(limit.token_bucket.params);
            let created = write.decided_at.millis();
            self.limits.insert(
                name.clone(),
                Exact {
                    token_bucket,
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

    pub(super) fn reparameter(&mut self, after: &Image, write: &BucketWrite) {
        let now = write.decided_at.millis();
        for (name, limit) in &after.limits {
            let params = limit.token_bucket.params;
            let exact = self.limits.entry(name.clone()).or_insert(Exact {
                token_bucket: TokenBucket::full(params),
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
            exact.slack = earned(params).max(earned(exact.token_bucket.params));
            if behind == 0 {
                exact.slack = 0;
            }
            exact.advance(now);
            // What is given back fits under the old burst or is lost, like what comes back.
            let credit = write.batch.demand(name).credit;
            exact.token_bucket = exact.token_bucket.credit(0, credit);
            exact.net -= credit;
            if exact.token_bucket.params != params {
                let tokens = exact.token_bucket.tokens.min(params.burst());
                // A change of rate may lose what is left of the last division, which is less than a millitoken.
                let remainder = if exact.token_bucket.params.same_rate(&params) {
                    exact.token_bucket.remainder
                } else {
                    0
                };
                exact.token_bucket = TokenBucket {
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
    pub(super) fn book(&mut self, write: &BucketWrite, with_peers: bool) -> Vec<String> {
        let mut found = Vec::new();
        let moves_all = !matches!(write.kind, WriteKind::Touch);
        for (name, exact) in &mut self.limits {
            let demand = write.batch.demand(name);
            if !moves_all && !demand.moves_tokens() {
                continue;
            }
            let now = write.decided_at.millis();
            if write.sets_refill_back() {
                // What a wrong clock was granted stays granted; `latest` keeps how far ahead it was.
                exact.at = exact.at.min(now);
            }
            exact.behind = (exact.at - now).max(0);
            // A write counts from the now it was decided: what it gave back left room then, and what has come back
            // since, until a later write that arrived first, is kept.
            if demand.credit > 0 && exact.behind > 0 {
                let params = exact.token_bucket.params;
                let kept = i128::from(exact.behind) * params.amount() / params.period() + 1;
                exact.latent = exact.latent.max(kept);
            }
            exact.advance(now);
            exact.latest = exact.latest.max(now);
            let credit = if write.kind == WriteKind::Reconfigure {
                0
            } else {
                demand.credit
            };
            exact.token_bucket = exact.token_bucket.credit(0, credit).force_take(0, demand.adjust);
            exact.net += demand.adjust - credit;
            let missing = demand.debit - exact.token_bucket.tokens;
            if demand.debit > 0 && missing > exact.latent && !with_peers {
                found.push(format!(
                    "{name}: admitted {missing} millitokens more than there were"
                ));
            }
            exact.token_bucket = exact.token_bucket.force_take(0, demand.debit);
            exact.net += demand.debit;
            let since = i128::from(exact.latest - exact.created);
            let ever = exact.token_bucket.params.burst()
                + since * exact.token_bucket.params.amount() / exact.token_bucket.params.period();
            if demand.debit > 0 && exact.net > ever + 1 {
                let by = exact.net - ever;
                found.push(format!(
                    "{name}: {by} millitokens more than burst and refill since creation"
                ));
            }
        }
        found
    }

    /// A top-up fills the limit up to its burst, and is no consumption. The stored level must be the exact one. The write may
    /// refill the other limits.
    pub(super) fn top_up(
        &mut self,
        name: &LimitName,
        amount: i128,
        decided: i64,
        after: &Image,
    ) -> Option<String> {
        for (_, other) in self.limits.iter_mut().filter(|(other, _)| *other != name) {
            other.advance(after.refilled_at.millis());
        }
        let (exact, limit) = (self.limits.get_mut(name)?, after.limits.get(name)?);
        exact.behind = (exact.at - decided).max(0);
        let params = exact.token_bucket.params;
        if exact.behind > 0 {
            let kept = i128::from(exact.behind) * params.amount() / params.period() + 1;
            exact.latent = exact.latent.max(kept);
        }
        exact.advance(decided);
        exact.latest = exact.latest.max(decided);
        exact.token_bucket = exact.token_bucket.credit(0, amount);
        exact.net -= amount;
        let elapsed = i128::from((exact.at - after.refilled_at.millis()).max(0));
        let stored = limit.token_bucket.available(elapsed);
        let right = exact.token_bucket.tokens;
        let allowed = right - 2 - exact.slack..=right + 1 + exact.latent.max(exact.slack);
        if allowed.contains(&stored) {
            exact.token_bucket.tokens = stored;
            None
        } else {
            Some(format!("{name}: stored level {stored}, exact level {right}"))
        }
    }

    /// The stored level must be the exact one: not above, and not below by more than the rounding of one write.
    pub(super) fn compare(&mut self, after: &Image, write: &BucketWrite) -> Vec<String> {
        let mut found = Vec::new();
        let dropped: Vec<_> = self
            .limits
            .keys()
            .filter(|name| !after.limits.contains_key(*name))
            .cloned()
            .collect();
        for name in dropped {
            let exact = self.limits.remove(&name);
            if exact.is_some_and(|exact| exact.token_bucket.tokens < exact.token_bucket.params.burst()) {
                found.push(format!("{name}: left the bucket before it was full"));
            }
        }
        for (name, exact) in &mut self.limits {
            let Some(limit) = after.limits.get(name) else {
                continue;
            };
            let elapsed = i128::from((exact.at - after.refilled_at.millis()).max(0));
            let (stored, right) = (limit.token_bucket.available(elapsed), exact.token_bucket.tokens);
            let difference = stored - right;

            // A touch that sets a level rounds down by less than a millitoken, one that credits may keep a remainder
            // on top, and new parameters drop a remainder.
            // A full limit of a shared bucket is left below its burst by the margin.
            let set_full = has_full_row(write, name);
            let margin = if set_full {
                limit.token_bucket.params.margin()
            } else {
                0
            };
            let (up, down) = (1 + exact.latent.max(exact.slack), 2 + exact.slack + margin);
            if difference < -down || difference > up {
                found.push(format!(
                    "{name}: stored level {stored}, exact level {right} ({difference})"
                ));
            }
            let rounds = write.kind == WriteKind::Reconfigure || set_full;
            if (0..=up).contains(&difference) || (rounds && (-down..=0).contains(&difference)) {
                exact.token_bucket.tokens = stored;
            }
            if write.kind != WriteKind::Touch && exact.behind == 0 {
                exact.latent = 0;
            }
            exact.slack = 0;
        }
        found
    }

    pub(super) fn remember(&mut self, at: i64) {
        self.history.push_back((at, self.limits.clone()));
        while self.history.len() > 2 && self.history[1].0 < at - HISTORY {
            self.history.pop_front();
        }
    }
}

fn has_full_row(write: &BucketWrite, name: &LimitName) -> bool {
    write
        .rows
        .iter()
        .filter_map(Row::rate)
        .any(|row| row.limit == *name && matches!(row.form, RowForm::Full { .. }))
}
