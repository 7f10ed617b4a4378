//! The admission bound itself, apart from any model of a bucket: over no interval is more admitted than burst and refill.
//!
//! The simulation also compares each applied write with an exact bucket. That model needs one time for each write, and a
//! write has none: it is decided at one time and arrives at another, with others in between. So the model grants what came
//! back between the two (`latent` and `slack` in `account.rs`), and what a model grants, it can hide.
//!
//! This check knows nothing of levels, rounding or `rf`. It records when each debit and credit was decided and when it
//! arrived, and which parameters were in force, across all lives of a bucket. For every interval from a decision to an
//! arrival:
//!
//! ```text
//! debits decided and arrived inside  <=  burst + refill + credits whose time overlaps
//! ```
//!
//! A write takes effect at some time between decision and arrival, so this holds if any exact bucket could have admitted
//! these calls. There is nothing to tune: two millitokens for rounding at the ends, and rate times the spread of the
//! clocks where clocks are wrong. Traffic without credits runs through the same check, because there no credit can excuse an
//! excess.
//!
//! Broken rules that admit too much fail this check by themselves, and a test shows it. Those that lose tokens or count
//! twice are found by the exact bucket. The check is quadratic in the writes of a bucket; a run has about 1,000.

use std::collections::BTreeMap;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{BucketKey, BucketWrite, Image, Params};

/// Refill is counted in whole millitokens: one may be finished by the first now of an interval, and one by its last.
const ROUNDING: i128 = 2;

/// Something that happened at some now of a span.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: i64,
    to: i64,
    amount: i128,
}

/// Parameters, and when they can have been in force.
#[derive(Debug, Clone, Copy)]
struct Version {
    from: i64,
    to: i64,
    params: Params,
}

#[derive(Debug, Default)]
struct Record {
    versions: Vec<Version>,
    debits: Vec<Span>,
    credits: Vec<Span>,
}

/// Everything that was taken and given back, by bucket and limit, across all lives of the bucket.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    records: BTreeMap<(BucketKey, LimitName), Record>,
}

impl Intervals {
    /// A write was applied at `at` and left this.
    pub(super) fn applied(&mut self, write: &BucketWrite, after: &Image, at: i64) {
        let decided = write.decided_at.millis();
        let (from, to) = (decided.min(at), decided.max(at));
        for (name, limit) in &after.limits {
            let record = self.records.entry((write.key.clone(), name.clone())).or_default();
            record.in_force(limit.token_bucket.params, from, to);
            let demand = write.batch.demand(name);
            if demand.debit > 0 {
                record.debits.push(Span {
                    from,
                    to,
                    amount: demand.debit,
                });
            }
            if demand.credit > 0 {
                record.credits.push(Span {
                    from,
                    to,
                    amount: demand.credit,
                });
            }
        }
    }

    /// Somebody tops a limit up: as if that much had been given back.
    pub(super) fn topped_up(
        &mut self,
        key: &BucketKey,
        limit: &LimitName,
        amount: i128,
        (from, to): (i64, i64),
    ) {
        let record = self.records.entry((key.clone(), limit.clone())).or_default();
        record.credits.push(Span { from, to, amount });
    }

    /// Somebody deletes a bucket. The next one starts with a burst, as if that much had been given back.
    pub(super) fn deleted(&mut self, key: &BucketKey, at: i64) {
        for ((bucket, _), record) in &mut self.records {
            if bucket == key {
                let burst = record.versions.iter().map(|version| version.params.burst());
                record.credits.push(Span {
                    from: at,
                    to: at,
                    amount: burst.max().unwrap_or(0),
                });
            }
        }
    }

    /// The worst interval of every limit that had more than it should, for clocks that differ by at most `spread`.
    pub(super) fn violations(&mut self, spread: i64) -> Vec<String> {
        let mut found = Vec::new();
        for ((key, limit), record) in &mut self.records {
            if let Some(worst) = record.worst(spread) {
                found.push(format!("{}/{} {limit}: {worst}", key.entity, key.resource));
            }
        }
        found
    }
}

impl Record {
    fn in_force(&mut self, params: Params, from: i64, to: i64) {
        match self.versions.last_mut() {
            Some(last) if last.params == params => {}
            last => {
                if let Some(last) = last {
                    last.to = to;
                }
                self.versions.push(Version {
                    from,
                    to: i64::MAX,
                    params,
                });
            }
        }
    }

    /// Burst and refill of an interval, by the most generous parameters that may have been in force.
    fn allowance(&self, from: i64, to: i64, spread: i64) -> i128 {
        let mut burst = 0;
        let mut refill = 0;
        for version in &self.versions {
            let (start, end) = (version.from.max(from), version.to.min(to));
            if start <= end {
                let params = version.params;
                burst = burst.max(params.burst());
                let time = i128::from(end - start + spread);
                refill += time * params.amount() / params.period() + ROUNDING;
            }
        }
        burst + refill
    }

    fn worst(&mut self, spread: i64) -> Option<String> {
        self.debits.sort_by_key(|debit| debit.to);
        self.credits.sort_by_key(|credit| credit.from);
        let mut starts: Vec<i64> = self.debits.iter().map(|debit| debit.from).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut worst: Option<(i128, i64, i64)> = None;
        for from in starts {
            let mut credits = self.credits.iter().peekable();
            let mut net = 0;
            for debit in self.debits.iter().filter(|debit| debit.from >= from) {
                net += debit.amount;
                while let Some(credit) = credits.next_if(|credit| credit.from <= debit.to) {
                    net -= if credit.to >= from { credit.amount } else { 0 };
                }
                let excess = net - self.allowance(from, debit.to, spread);
                if excess > worst.map_or(0, |(most, ..)| most) {
                    worst = Some((excess, from, debit.to));
                }
            }
        }
        let (excess, from, to) = worst?;
        let length = to - from;
        Some(format!(
            "{excess} millitokens more than burst and refill in {length} ms"
        ))
    }
}
