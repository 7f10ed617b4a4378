//! Quotas and limits on calls in flight while their configuration changes, while they leave and come back, and when
//! attributes of them are lost.

use std::time::Duration;

use proptest::prelude::*;
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, BucketWrite, ClientTag, Decoded, Demand, Evaluation,
    Held, Image, Incarnation, PermitField, QuotaField, Refused, RetryAfter, Scalar, Slot, SlotBefore,
    SlotIndex, TtlRule, WriteKind,
};
use zae_limiter_schema::{Limit, LimitSet, QuotaPeriod, Timestamp};

use crate::common::{config, entity, name, quota_period, resource};

/// May 15, a Friday.
const NOON: &str = "2026-05-15T12:00:00Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn noon_plus(millis: i64) -> Timestamp {
    at(NOON).plus_millis(millis)
}

fn limits(texts: &[&str], ttl: TtlRule) -> BucketConfig {
    let limits = texts.iter().map(|text| text.parse::<Limit>().unwrap());
    BucketConfig::new(LimitSet::new(limits).unwrap(), None, false, ttl)
}

/// One bucket and one process that always knows it.
struct Bucket {
    config: BucketConfig,
    item: Attributes,
    writes: i128,
}

impl Bucket {
    fn new(texts: &[&str]) -> Self {
        Self {
            config: limits(texts, TtlRule::from_multiplier(7)),
            item: Attributes::default(),
            writes: 0,
        }
    }

    fn configure(&mut self, texts: &[&str]) {
        self.config = limits(texts, TtlRule::from_multiplier(7));
    }

    fn image(&self) -> Option<Image> {
        self.item.iter().next()?;
        match self.item.decode().unwrap() {
            Decoded::Bucket(image) => Some(image),
            Decoded::Stub => panic!("a stub"),
        }
    }

    fn plan(&mut self, now: Timestamp, batch: impl FnOnce(&Evaluation<'_>) -> Batch) -> Option<BucketWrite> {
        self.writes += 1;
        let slot = Slot {
            index: SlotIndex::FIRST,
            before: SlotBefore::Any,
            number: ClientTag::from_random(7).number(self.writes, 0),
        };
        let key = BucketKey {
            entity: entity("user-1"),
            resource: resource("gpt-4"),
        };
        let image = self.image();
        let evaluation = Evaluation::by_image(image.as_ref(), &self.config, now);
        evaluation.write(key, &batch(&evaluation), slot, Incarnation::from_random(3))
    }

    fn send(&mut self, write: &BucketWrite) -> Result<(), Refused> {
        self.item = self.item.apply(&write.statement())?;
        Ok(())
    }

    /// Takes whole tokens or permits, if they are there.
    fn take(&mut self, takes: &[(&str, i128)], now: Timestamp) -> Option<BucketWrite> {
        let write = self.plan(now, |_| taking(takes))?;
        self.send(&write).unwrap();
        Some(write)
    }

    /// Ends a lease that began with this write: gives part of what it took back.
    fn give_back(&mut self, write: &BucketWrite, limit: &str, tokens: i128, now: Timestamp) {
        let limit = name(limit);
        let held = write.held(&limit);
        let ended = self.plan(now, |evaluation| {
            let mut batch = Batch::default();
            evaluation.book(&mut batch, &limit, -tokens * 1000, held, true);
            batch
        });
        self.send(&ended.unwrap()).unwrap();
    }

    fn evaluate<T>(&self, now: Timestamp, read: impl FnOnce(&Evaluation<'_>) -> T) -> T {
        let image = self.image();
        read(&Evaluation::by_image(image.as_ref(), &self.config, now))
    }

    /// What is left of a limit, in whole tokens or permits.
    fn left(&self, limit: &str, now: Timestamp) -> i128 {
        self.evaluate(now, |evaluation| {
            let limit_state = evaluation.limit_state(&name(limit)).unwrap();
            limit_state.level(Demand::default()).div_euclid(1000)
        })
    }

    fn retry_after(&self, limit: &str, tokens: i128, now: Timestamp) -> RetryAfter {
        self.evaluate(now, |evaluation| {
            let outlook = evaluation.outlook(&name(limit), &Batch::default(), tokens * 1000);
            outlook.unwrap().retry_after
        })
    }

    fn period_end(&self, limit: &str) -> String {
        let end = self.image().unwrap().quotas[&name(limit)].period_end;
        end.unwrap().to_string()
    }

    /// The names of the attributes with a prefix.
    fn attributes(&self, prefix: &str) -> Vec<String> {
        let names = self.item.iter().map(|(attr, _)| attr.to_string());
        names.filter(|name| name.starts_with(prefix)).collect()
    }
}

fn taking(takes: &[(&str, i128)]) -> Batch {
    let mut batch = Batch {
        acquires: 1,
        ..Batch::default()
    };
    for (limit, tokens) in takes {
        batch.add(&name(limit), Demand::debit(tokens * 1000));
    }
    batch
}

#[test]
fn all_kinds_are_taken_in_one_write_or_none_is() {
    let mut bucket = Bucket::new(&["rpm:100", "spend:500 per day", "parallel:2 at once for 10min"]);
    let all = [("rpm", 1), ("spend", 300), ("parallel", 1)];
    bucket.take(&all, noon_plus(0)).unwrap();
    let before = bucket.item.clone();
    assert!(
        bucket.take(&all, noon_plus(1)).is_none(),
        "the quota has 200 left"
    );
    assert_eq!(bucket.item, before);
    bucket
        .take(&[("rpm", 1), ("spend", 200), ("parallel", 1)], noon_plus(2))
        .unwrap();
    assert_eq!(bucket.left("rpm", noon_plus(2)), 98);
    assert_eq!(bucket.left("spend", noon_plus(2)), 0);
    assert_eq!(bucket.left("parallel", noon_plus(2)), 0);
}

#[test]
fn writers_within_a_period_do_not_disturb_each_other_until_the_amount_is_reached() {
    let mut bucket = Bucket::new(&["spend:10 per day", "parallel:10 at once for 10min"]);
    let takes = [("spend", 3), ("parallel", 3)];
    bucket.take(&takes, noon_plus(0)).unwrap();
    let old: Vec<BucketWrite> = (1..4)
        .map(|millis| bucket.plan(noon_plus(millis), |_| taking(&takes)).unwrap())
        .collect();
    assert!(old.iter().all(|write| write.kind == WriteKind::Touch));
    assert_eq!(bucket.send(&old[0]), Ok(()));
    assert_eq!(bucket.send(&old[1]), Ok(()), "9 of 10");
    assert_eq!(bucket.send(&old[2]), Err(Refused::Condition), "12 of 10");
}

#[test]
fn of_two_that_begin_a_period_one_wins_and_the_other_counts_in_it() {
    let mut bucket = Bucket::new(&["spend:10 per day"]);
    bucket.take(&[("spend", 9)], noon_plus(0)).unwrap();
    let tomorrow = at("2026-05-16T00:00:01Z");
    let a = bucket.plan(tomorrow, |_| taking(&[("spend", 6)])).unwrap();
    let b = bucket.plan(tomorrow, |_| taking(&[("spend", 5)])).unwrap();
    assert_eq!(bucket.send(&a), Ok(()));
    assert_eq!(bucket.send(&b), Err(Refused::Condition));
    assert_eq!(bucket.left("spend", tomorrow), 4);
    // A clock that is still in the old period counts in the one on the item.
    let behind = at("2026-05-15T23:59:59Z");
    bucket.take(&[("spend", 4)], behind).unwrap();
    assert_eq!(bucket.period_end("spend"), "2026-05-17T00:00:00Z");
    assert!(bucket.take(&[("spend", 1)], behind).is_none());
}

#[test]
fn a_period_from_first_use_begins_with_an_admitted_call() {
    let mut bucket = Bucket::new(&["spend:10 per 5h from first use"]);
    assert!(bucket.take(&[("spend", 11)], noon_plus(0)).is_none());
    bucket.take(&[("spend", 10)], noon_plus(60_000)).unwrap();
    assert_eq!(bucket.period_end("spend"), "2026-05-15T17:01:00Z");
    assert!(bucket.take(&[("spend", 1)], at("2026-05-15T17:00:59Z")).is_none());
    let next = at("2026-05-15T20:00:00Z");
    assert!(
        bucket.take(&[("spend", 11)], next).is_none(),
        "a refused call begins none"
    );
    assert_eq!(bucket.period_end("spend"), "2026-05-15T17:01:00Z");
    bucket.take(&[("spend", 1)], next).unwrap();
    assert_eq!(bucket.period_end("spend"), "2026-05-16T01:00:00Z");
}

#[test]
fn a_refusal_says_when_to_come_back() {
    let mut bucket = Bucket::new(&["spend:10 per day", "parallel:2 at once for 10min"]);
    bucket
        .take(&[("spend", 8), ("parallel", 2)], noon_plus(0))
        .unwrap();
    assert_eq!(bucket.retry_after("spend", 2, noon_plus(5)), RetryAfter::Now);
    assert_eq!(bucket.retry_after("spend", 11, noon_plus(5)), RetryAfter::Never);
    assert_eq!(bucket.retry_after("parallel", 3, noon_plus(5)), RetryAfter::Never);
    let midnight = Duration::from_secs(12 * 3600);
    let mut different = std::collections::BTreeSet::new();
    for millis in 0..50 {
        let RetryAfter::After(wait) = bucket.retry_after("spend", 3, noon_plus(millis)) else {
            panic!("it is refused")
        };
        let beyond = wait + Duration::from_millis(millis.unsigned_abs()) - midnight;
        assert!(beyond < Duration::from_secs(3), "{beyond:?}");
        different.insert(beyond);
    }
    assert!(different.len() > 25, "not all at once: {different:?}");
    let RetryAfter::After(wait) = bucket.retry_after("parallel", 1, noon_plus(5)) else {
        panic!("it is refused")
    };
    assert!(wait <= Duration::from_secs(1), "others release at any time");
}

#[test]
fn a_refund_counts_only_while_its_own_period_stands() {
    let mut bucket = Bucket::new(&["spend:10 per day"]);
    let first = bucket.take(&[("spend", 6)], noon_plus(0)).unwrap();
    bucket.give_back(&first, "spend", 2, noon_plus(1_000));
    assert_eq!(bucket.left("spend", noon_plus(1_000)), 6);
    let tomorrow = at("2026-05-16T09:00:00Z");
    bucket.take(&[("spend", 7)], tomorrow).unwrap();
    bucket.give_back(&first, "spend", 4, tomorrow);
    assert_eq!(bucket.left("spend", tomorrow), 3);
    // After the end of the period, but before anybody has begun the next, nothing comes back either.
    let later = at("2026-05-17T09:00:00Z");
    bucket.give_back(&first, "spend", 4, later);
    let image = bucket.image().unwrap();
    assert_eq!(image.quotas[&name("spend")].used, 7_000);
    assert_eq!(
        image.quotas[&name("spend")].consumed,
        3_000,
        "the net count goes on"
    );
    assert_eq!(bucket.left("spend", later), 10);
}

#[test]
fn an_adjustment_may_exceed_the_amount_and_counts_in_the_period_that_runs() {
    let mut bucket = Bucket::new(&["spend:10 per day"]);
    bucket.take(&[("spend", 10)], noon_plus(0)).unwrap();
    let more = bucket.plan(noon_plus(1), |evaluation| {
        let mut batch = Batch::default();
        evaluation.book(&mut batch, &name("spend"), 5_000, None, true);
        batch
    });
    bucket.send(&more.unwrap()).unwrap();
    assert_eq!(bucket.left("spend", noon_plus(1)), -5);
    assert!(bucket.take(&[("spend", 1)], noon_plus(2)).is_none());
    assert_eq!(
        bucket.left("spend", at("2026-05-16T00:00:00Z")),
        10,
        "no debt in the next"
    );
}

#[test]
fn another_amount_applies_with_the_next_write() {
    let mut bucket = Bucket::new(&["spend:10 per day", "parallel:10 at once for 10min"]);
    let first = bucket
        .take(&[("spend", 8), ("parallel", 8)], noon_plus(0))
        .unwrap();
    let planned = bucket
        .plan(noon_plus(1), |_| taking(&[("spend", 2), ("parallel", 2)]))
        .unwrap();
    bucket.configure(&["spend:20 per day", "parallel:20 at once for 10min"]);
    let raised = bucket
        .take(&[("spend", 12), ("parallel", 12)], noon_plus(2))
        .unwrap();
    assert_eq!(raised.kind, WriteKind::Reconfigure);
    assert_eq!(
        bucket.send(&planned),
        Err(Refused::Condition),
        "decided by the old amount"
    );
    assert!(bucket.take(&[("spend", 1)], noon_plus(3)).is_none());
    assert!(bucket.take(&[("parallel", 1)], noon_plus(3)).is_none());

    bucket.configure(&["spend:5 per day", "parallel:5 at once for 10min"]);
    assert_eq!(bucket.left("spend", noon_plus(4)), -15);
    assert_eq!(bucket.left("parallel", noon_plus(4)), -15);
    bucket.give_back(&first, "spend", 8, noon_plus(5));
    bucket.give_back(&first, "parallel", 8, noon_plus(5));
    assert_eq!(bucket.left("spend", noon_plus(5)), -7);
    assert_eq!(bucket.left("parallel", noon_plus(5)), -7);
    assert!(bucket.take(&[("parallel", 1)], noon_plus(6)).is_none());
    bucket.give_back(&raised, "parallel", 12, noon_plus(7));
    bucket.take(&[("parallel", 5)], noon_plus(8)).unwrap();
}

#[test]
fn what_was_used_still_counts_in_another_period() {
    let mut bucket = Bucket::new(&["spend:10 per month"]);
    let lease = bucket.take(&[("spend", 8)], noon_plus(0)).unwrap();
    assert_eq!(bucket.period_end("spend"), "2026-06-01T00:00:00Z");

    bucket.configure(&["spend:10 per day"]);
    assert_eq!(bucket.left("spend", noon_plus(1)), 2);
    assert!(bucket.take(&[("spend", 3)], noon_plus(1)).is_none());
    bucket.take(&[("spend", 1)], noon_plus(2)).unwrap();
    assert_eq!(bucket.period_end("spend"), "2026-05-16T00:00:00Z");
    assert_eq!(bucket.left("spend", noon_plus(3)), 1);
    bucket.give_back(&lease, "spend", 8, noon_plus(4));
    assert_eq!(bucket.left("spend", noon_plus(4)), 1, "its period is over");

    bucket.configure(&["spend:10 per month in Europe/Berlin"]);
    assert_eq!(bucket.left("spend", noon_plus(5)), 1);
    bucket.take(&[("spend", 1)], noon_plus(6)).unwrap();
    assert_eq!(bucket.period_end("spend"), "2026-05-31T22:00:00Z");
    assert!(bucket.take(&[("spend", 1)], at("2026-05-31T21:59:59Z")).is_none());

    bucket.configure(&["spend:10 per 7d from first use"]);
    assert!(bucket.take(&[("spend", 1)], noon_plus(7)).is_none());
    // A write that takes nothing of it changes the period too.
    let write = bucket.plan(noon_plus(8), |_| Batch::default()).unwrap();
    bucket.send(&write).unwrap();
    assert_eq!(bucket.period_end("spend"), "2026-05-22T12:00:00Z");
    assert_eq!(bucket.left("spend", noon_plus(9)), 0);
}

#[test]
fn a_period_that_has_ended_leaves_nothing_behind_when_it_changes() {
    let mut bucket = Bucket::new(&["spend:10 per day"]);
    bucket.take(&[("spend", 8)], noon_plus(0)).unwrap();
    bucket.configure(&["spend:10 per month"]);
    let tomorrow = at("2026-05-16T00:00:00Z");
    assert_eq!(bucket.left("spend", tomorrow), 10);
    bucket.take(&[("spend", 10)], tomorrow).unwrap();
    assert_eq!(bucket.period_end("spend"), "2026-06-01T00:00:00Z");
}

#[test]
fn a_quota_that_leaves_and_comes_back_is_not_reset_while_its_period_runs() {
    let both = ["rpm:100", "spend:10 per day"];
    let mut bucket = Bucket::new(&both);
    bucket.take(&[("rpm", 1), ("spend", 8)], noon_plus(0)).unwrap();
    for minute in 1..4 {
        bucket.configure(&["rpm:100"]);
        bucket.take(&[("rpm", 50)], noon_plus(minute * 60_000)).unwrap();
        bucket.configure(&["rpm:90"]);
        bucket
            .take(&[("rpm", 50)], noon_plus(minute * 60_000 + 30_000))
            .unwrap();
    }
    bucket.configure(&both);
    assert_eq!(bucket.left("spend", noon_plus(300_000)), 2);
    bucket.take(&[("spend", 2)], noon_plus(300_000)).unwrap();

    bucket.configure(&["rpm:100"]);
    bucket.take(&[("rpm", 1)], at("2026-05-15T23:59:59Z")).unwrap();
    assert_eq!(bucket.attributes("q_").len(), 5);
    bucket.configure(&["rpm:90"]);
    bucket.take(&[("rpm", 1)], at("2026-05-16T00:00:00Z")).unwrap();
    assert_eq!(
        bucket.attributes("q_"),
        Vec::<String>::new(),
        "the period has ended"
    );
    bucket.configure(&both);
    assert_eq!(bucket.left("spend", at("2026-05-16T00:00:01Z")), 10);
}

#[test]
fn permits_stay_on_a_limit_that_leaves_until_they_are_released_or_expire() {
    let both = ["rpm:100", "parallel:8 at once for 10min"];
    for released in [true, false] {
        let mut bucket = Bucket::new(&both);
        let lease = bucket.take(&[("rpm", 1), ("parallel", 5)], noon_plus(0)).unwrap();
        bucket.configure(&["rpm:100"]);
        bucket.take(&[("rpm", 1)], noon_plus(1_000)).unwrap();
        bucket.configure(&both);
        assert_eq!(bucket.left("parallel", noon_plus(2_000)), 3);
        bucket.configure(&["rpm:90"]);
        bucket.take(&[("rpm", 1)], noon_plus(3_000)).unwrap();
        assert!(!bucket.attributes("c_").is_empty());
        let later = if released {
            bucket.give_back(&lease, "parallel", 5, noon_plus(4_000));
            noon_plus(5_000)
        } else {
            // The end of the epoch, and two seconds.
            noon_plus(752_000)
        };
        bucket.configure(&["rpm:80"]);
        bucket.take(&[("rpm", 1)], later).unwrap();
        assert_eq!(
            bucket.attributes("c_"),
            Vec::<String>::new(),
            "released: {released}"
        );
        bucket.configure(&both);
        assert_eq!(bucket.left("parallel", later), 8);
    }
}

#[test]
fn a_limit_that_changes_its_kind_counts_by_the_new_one_alone() {
    let mut bucket = Bucket::new(&["x:10"]);
    bucket.take(&[("x", 10)], noon_plus(0)).unwrap();
    bucket.configure(&["x:10 per day"]);
    let first = bucket.take(&[("x", 4)], noon_plus(1)).unwrap();
    assert_eq!(first.kind, WriteKind::Reconfigure);
    assert_eq!(
        first.held(&name("x")),
        Some(Held::Period(at("2026-05-16T00:00:00Z")))
    );
    let rate = |bucket: &Bucket| {
        bucket
            .image()
            .unwrap()
            .limits
            .get(&name("x"))
            .map(|x| x.token_bucket.tokens)
    };
    assert_eq!(
        rate(&bucket),
        Some(0),
        "a millisecond brings back less than a millitoken"
    );
    let second = bucket.take(&[("x", 6)], noon_plus(2)).unwrap();
    assert_eq!(second.kind, WriteKind::Touch);
    assert_eq!(second.held(&name("x")), first.held(&name("x")));
    assert_eq!(rate(&bucket), Some(0), "it takes of the quota alone");
    assert!(bucket.take(&[("x", 1)], noon_plus(3)).is_none());
    bucket.give_back(&second, "x", 1, noon_plus(4));
    assert_eq!(bucket.left("x", noon_plus(4)), 1);

    // Back to a rate: it is what it was, and what the quota has used is kept.
    bucket.configure(&["x:10"]);
    assert_eq!(bucket.left("x", noon_plus(6_000)), 1);
    bucket.take(&[("x", 1)], noon_plus(6_000)).unwrap();
    bucket.give_back(&second, "x", 5, noon_plus(6_001));
    assert_eq!(
        bucket.left("x", noon_plus(6_001)),
        0,
        "what was taken of a quota is no token of a rate"
    );
    bucket.configure(&["x:10 per day"]);
    assert_eq!(bucket.left("x", noon_plus(60_000)), 1);

    bucket.take(&[("x", 1)], noon_plus(120_000)).unwrap();
    assert_eq!(rate(&bucket), None, "full again, the rate leaves");
    assert!(bucket.take(&[("x", 1)], noon_plus(120_001)).is_none());
}

#[test]
fn permits_of_a_limit_that_changes_its_kind_stay_held() {
    let mut bucket = Bucket::new(&["x:8 at once for 10min"]);
    let lease = bucket.take(&[("x", 6)], noon_plus(0)).unwrap();
    for other in ["x:100", "x:100 per day"] {
        bucket.configure(&[other]);
        bucket.take(&[("x", 40)], noon_plus(1_000)).unwrap();
        bucket.give_back(&lease, "x", 6, noon_plus(2_000));
        assert!(
            bucket.left("x", noon_plus(2_000)) <= 61,
            "{other}: permits are no tokens"
        );
    }
    bucket.configure(&["x:8 at once for 10min"]);
    assert_eq!(bucket.left("x", noon_plus(3_000)), 2);
    bucket.take(&[("x", 2)], noon_plus(3_000)).unwrap();
    assert!(bucket.take(&[("x", 1)], noon_plus(4_000)).is_none());
    bucket.give_back(&lease, "x", 6, noon_plus(5_000));
    assert_eq!(bucket.left("x", noon_plus(5_000)), 6);
}

#[test]
fn a_renewal_moves_permits_and_says_where_they_are() {
    let mut bucket = Bucket::new(&["parallel:8 at once for 8s"]);
    let lease = bucket.take(&[("parallel", 3)], noon_plus(0)).unwrap();
    let held = lease.held(&name("parallel")).unwrap();
    let renewed = bucket
        .plan(noon_plus(4_000), |evaluation| {
            let mut batch = Batch::default();
            assert!(evaluation.renew(&mut batch, &name("parallel"), held, 2_000));
            assert!(
                !evaluation.renew(&mut batch, &name("parallel"), held, 2_000),
                "one is left"
            );
            assert!(evaluation.renew(&mut batch, &name("parallel"), held, 1_000));
            batch
        })
        .unwrap();
    bucket.send(&renewed).unwrap();
    let now_held = renewed.held(&name("parallel")).unwrap();
    assert_ne!(now_held, held);
    assert_eq!(bucket.left("parallel", noon_plus(4_000)), 5);
    // The old epoch has ended, the new one has not.
    assert_eq!(bucket.left("parallel", noon_plus(12_500)), 5);
    bucket.give_back(&lease, "parallel", 3, noon_plus(4_500));
    assert_eq!(
        bucket.left("parallel", noon_plus(4_500)),
        5,
        "they are no longer there"
    );
    bucket.give_back(&renewed, "parallel", 3, noon_plus(5_000));
    assert_eq!(bucket.left("parallel", noon_plus(5_000)), 8);
    assert!(!bucket.evaluate(noon_plus(5_000), |evaluation| {
        evaluation.renew(&mut Batch::default(), &name("parallel"), now_held, 1_000)
    }));
}

fn expires_at(bucket: &Bucket) -> i64 {
    bucket.image().unwrap().expires_at.unwrap()
}

#[test]
fn the_item_outlives_permits_that_were_renewed() {
    // At half of the expiry, and just before it is over.
    for (seconds, part) in [(8, 500), (9, 500), (60, 500), (60, 950), (600, 500), (600, 950)] {
        let text = format!("parallel:8 at once for {seconds}s");
        let mut bucket = Bucket::new(&[&text]);
        let mut write = bucket.take(&[("parallel", 1)], noon_plus(0)).unwrap();
        for step in 1..20 {
            let now = noon_plus(step * seconds * part);
            let held = write.held(&name("parallel")).unwrap();
            let Held::Permits(epoch) = held else {
                panic!("{held:?}")
            };
            assert!(
                expires_at(&bucket) >= epoch.seconds(),
                "{seconds} s, {part}, step {step}"
            );
            write = bucket
                .plan(now, |evaluation| {
                    let mut batch = Batch::default();
                    assert!(evaluation.renew(&mut batch, &name("parallel"), held, 1_000));
                    batch
                })
                .unwrap();
            bucket.send(&write).unwrap();
            assert!(!bucket.image().unwrap().expires_before_full(now));
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Whatever the order of calls, adjustments and changes of the period.
    #[test]
    fn the_item_outlives_the_period_while_something_is_used(
        periods in proptest::collection::vec(quota_period(), 1..4),
        steps in proptest::collection::vec((0..3u8, 1..5i128, 0..400_000_000i64), 1..8),
        start in 0..4_000_000_000i64,
    ) {
        let mut now = Timestamp::from_seconds(start);
        let mut bucket = Bucket::new(&["rpm:1"]);
        for (place, (kind, tokens, later)) in steps.into_iter().enumerate() {
            let period: &QuotaPeriod = &periods[place % periods.len()];
            let limit = Limit::quota("spend", 10, period.clone()).unwrap();
            bucket.configure(&[&limit.to_string(), "rpm:1"]);
            let batch = |evaluation: &Evaluation<'_>| {
                let mut batch = Batch { acquires: 1, ..Batch::default() };
                match kind {
                    0 => batch.add(&name("spend"), Demand::debit(tokens * 1000)),
                    1 => evaluation.book(&mut batch, &name("spend"), tokens * 1000, None, true),
                    _ => {}
                }
                batch
            };
            if let Some(write) = bucket.plan(now, batch) {
                bucket.send(&write).unwrap();
                let image = bucket.image().unwrap();
                let (used, end) = image.quotas[&name("spend")].at(now);
                if used > 0 {
                    prop_assert!(image.expires_at.unwrap() * 1000 >= end.unwrap().millis());
                    prop_assert!(!image.expires_before_full(now));
                }
            }
            now = now.plus_millis(later);
        }
    }
}

/// Whether one more is there at once, or which attribute is at fault.
fn admits(item: &Attributes, config: &BucketConfig, limit: &str) -> Result<bool, String> {
    let decoded = item.decode().map_err(|malformed| malformed.attribute)?;
    let fits = |image: Option<&Image>| {
        Evaluation::by_image(image, config, noon_plus(10)).fits(&taking(&[(limit, 1)]))
    };
    Ok(match &decoded {
        Decoded::Stub => fits(None),
        Decoded::Bucket(image) => fits(Some(image)),
    })
}

/// All subsets. What nobody but this library writes shows that the limit was there.
#[test]
fn a_bucket_that_has_lost_any_attributes_gives_no_quota_and_no_permits_away() {
    for (text, limit) in [
        ("spend:5 per day", "spend"),
        ("parallel:5 at once for 10min", "parallel"),
    ] {
        let mut bucket = Bucket::new(&[text]);
        bucket.take(&[(limit, 5)], noon_plus(0)).unwrap();
        let attrs: Vec<Attr> = bucket.item.iter().map(|(attr, _)| attr.clone()).collect();
        assert!(attrs.len() >= 12, "{attrs:?}");
        let (mut errors, mut refusals, mut peers) = (0, 0, 0);
        for subset in 0..1u32 << attrs.len() {
            let mut item = bucket.item.clone();
            for (place, attr) in attrs.iter().enumerate() {
                if subset & (1 << place) != 0 {
                    item.remove(attr);
                }
            }
            let ours = |attr: &Attr| {
                let of_limit = matches!(attr, Attr::Quota(..) | Attr::Permits(..));
                of_limit || matches!(attr, Attr::Etag | Attr::Events | Attr::Slot(_))
            };
            match admits(&item, &bucket.config, limit) {
                Err(_) => errors += 1,
                Ok(false) => refusals += 1,
                Ok(true) => {
                    peers += 1;
                    assert!(item.iter().all(|(attr, _)| !ours(attr)), "{item:?}");
                }
            }
        }
        assert!(
            errors > 0 && refusals > 0 && peers > 0,
            "{text}: {errors} {refusals} {peers}"
        );
    }
}

#[test]
fn a_lost_attribute_of_a_limit_is_named_or_counts_as_used() {
    let mut bucket = Bucket::new(&["spend:5 per day", "parallel:5 at once for 10min"]);
    bucket
        .take(&[("spend", 5), ("parallel", 5)], noon_plus(0))
        .unwrap();
    let quota = QuotaField::REQUIRED.map(|field| Attr::Quota(name("spend"), field));
    let permits = PermitField::FIXED.map(|field| Attr::Permits(name("parallel"), field));
    for attr in quota.into_iter().chain(permits) {
        let mut item = bucket.item.clone();
        item.remove(&attr);
        assert_eq!(item.decode().unwrap_err().attribute, attr.to_string());
    }
    let epoch = bucket.attributes("c_parallel_e");
    let mut item = bucket.item.clone();
    item.remove(&Attr::parse(&epoch[0]));
    assert_eq!(admits(&item, &bucket.config, "parallel"), Ok(false));
}

/// Nothing else of the limit is left, but the etag says that the bucket has it.
#[test]
fn a_limit_that_is_wholly_lost_starts_used_up() {
    for (text, limit, later) in [
        ("spend:5 per day", "spend", at("2026-05-16T00:00:00Z")),
        ("parallel:5 at once for 10min", "parallel", noon_plus(752_000)),
    ] {
        let mut bucket = Bucket::new(&["rpm:100", text]);
        bucket.take(&[("rpm", 1), (limit, 1)], noon_plus(0)).unwrap();
        for attr in bucket.attributes("q_").into_iter().chain(bucket.attributes("c_")) {
            bucket.item.remove(&Attr::parse(&attr));
        }
        assert!(bucket.take(&[("rpm", 1), (limit, 1)], noon_plus(1)).is_none());
        bucket.take(&[("rpm", 1)], noon_plus(2)).unwrap();
        assert!(bucket.take(&[(limit, 1)], noon_plus(3)).is_none());
        bucket.take(&[(limit, 5)], later).unwrap();
        let image = bucket.image().unwrap();
        assert!(bucket.config.matches(&image));
        assert_eq!(bucket.left(limit, later), 0);
    }
}

/// The thresholds of the quota on the item.
fn alerts(bucket: &Bucket) -> Option<String> {
    match bucket.item.get(&Attr::Quota(name("spend"), QuotaField::Alerts)) {
        Some(Scalar::Text(text)) => Some(text.to_string()),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

#[test]
fn thresholds_come_to_the_bucket_with_its_parameters_and_leave_with_them() {
    let mut bucket = Bucket::new(&["spend:5 per day alert at 80% 100%"]);
    bucket.take(&[("spend", 1)], noon_plus(0)).unwrap();
    assert_eq!(alerts(&bucket).as_deref(), Some("80 100"));
    assert!(bucket.config.matches(&bucket.image().unwrap()));

    bucket.configure(&["spend:5 per day alert at 50%"]);
    assert!(!bucket.config.matches(&bucket.image().unwrap()));
    bucket.take(&[("spend", 1)], noon_plus(1)).unwrap();
    assert_eq!(alerts(&bucket).as_deref(), Some("50"));
    assert_eq!(bucket.left("spend", noon_plus(2)), 3);

    bucket.configure(&["spend:5 per day"]);
    bucket.take(&[("spend", 1)], noon_plus(3)).unwrap();
    assert_eq!(alerts(&bucket), None);
    assert!(bucket.config.matches(&bucket.image().unwrap()));

    bucket.configure(&["rpm:10", "spend:5 per day alert at 50%"]);
    bucket.take(&[("spend", 1)], noon_plus(4)).unwrap();
    bucket.configure(&["rpm:10"]);
    bucket.take(&[("rpm", 1)], at("2026-05-16T00:00:00Z")).unwrap();
    assert_eq!(bucket.attributes("q_"), [] as [String; 0]);
}

#[test]
fn damaged_thresholds_refuse_nobody_and_are_written_again() {
    let mut bucket = Bucket::new(&["spend:5 per day alert at 80%"]);
    bucket.take(&[("spend", 1)], noon_plus(0)).unwrap();
    let attr = Attr::Quota(name("spend"), QuotaField::Alerts);
    for damage in [Scalar::Text("eighty".into()), Scalar::Number(80)] {
        bucket.item.insert(attr.clone(), damage);
        assert!(!bucket.config.matches(&bucket.image().unwrap()));
        bucket.take(&[("spend", 1)], noon_plus(1)).unwrap();
        assert_eq!(alerts(&bucket).as_deref(), Some("80"));
    }
    bucket.item.remove(&attr);
    bucket.take(&[("spend", 1)], noon_plus(2)).unwrap();
    assert_eq!(alerts(&bucket).as_deref(), Some("80"));
    assert_eq!(bucket.left("spend", noon_plus(3)), 1);
}
