//! When a bucket may be forgotten, and which slots.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{entity, put_limit, resource};
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, BucketWrite, Condition, Decoded, Demand, Evaluation,
    Expiry, Image, Incarnation, LegacyClient, Params, RateImage, Scalar, Slot, SlotBefore, SlotIndex,
    TokenBucket, TtlRule, WriteKind,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

const T0: i64 = 1_700_000_000_000;

fn bucket_config(limit: &Limit, ttl: TtlRule) -> BucketConfig {
    BucketConfig::new(LimitSet::new([limit.clone()]).unwrap(), None, false, ttl)
}

fn write(
    limit: &Limit,
    ttl: TtlRule,
    tokens: i128,
    expires_in: Option<i64>,
    demand: Demand,
    elapsed: i64,
) -> BucketWrite {
    let config = bucket_config(limit, ttl);
    let mut item = Attributes::default();
    item.insert(Attr::RefilledAt, Scalar::Number(i128::from(T0)));
    item.insert(Attr::Etag, Scalar::Text(config.etag("gen001").as_str().into()));
    for (client, age) in [("old1", 60_001), ("new1", 60_000)] {
        item.insert(
            Attr::LegacySlot(LegacyClient::parse(client).unwrap()),
            Scalar::Number(i128::from(T0 + elapsed - age)),
        );
    }
    if let Some(seconds) = expires_in {
        item.insert(Attr::ExpiresAt, Scalar::Number(i128::from(T0 / 1000 + seconds)));
    }
    put_limit(
        &mut item,
        limit.name(),
        TokenBucket {
            tokens,
            ..TokenBucket::full(Params::from(limit.rate().unwrap()))
        },
        0,
    );
    let Decoded::Bucket(image) = item.decode().unwrap() else {
        panic!("a stub")
    };
    let evaluation = Evaluation::live(&image, &config, Timestamp::from_millis(T0 + elapsed));
    let batch = Batch {
        demands: [(limit.name().clone(), demand)].into(),
        acquires: 1,
        ..Batch::default()
    };
    let slot = Slot {
        index: SlotIndex::new(1),
        before: SlotBefore::Empty,
        number: 1,
    };
    let key = BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    };
    evaluation
        .write(key, &batch, slot, Incarnation::from_random(0))
        .unwrap()
}

const ONE: Demand = Demand {
    debit: 1_000,
    credit: 0,
    adjust: 0,
    recount: 0,
    top_up: 0,
};

#[test]
fn seven_fill_times_as_in_the_seeds() {
    let rule = TtlRule::from_multiplier(TtlRule::DEFAULT_MULTIPLIER);
    let rpm = Params::from(Limit::per_minute("rpm", 100).unwrap().rate().unwrap());
    assert_eq!(rule.life_seconds(rpm.fill_time(), 0), Some(420));
    let slow = Params::from(Limit::custom("slow", 1000, 1000, 10, 60).unwrap().rate().unwrap());
    assert_eq!(rule.life_seconds(slow.fill_time(), 0), Some(42_000));
    assert_eq!(TtlRule::from_multiplier(0).life_seconds(rpm.fill_time(), 0), None);
}

#[test]
fn the_fill_time_is_that_of_the_burst() {
    let rule = TtlRule::from_multiplier(7);
    let bursty = Params::from(
        Limit::per_minute("rpm", 100)
            .unwrap()
            .with_burst(1000)
            .unwrap()
            .rate()
            .unwrap(),
    );
    assert_eq!(rule.life_seconds(bursty.fill_time(), 0), Some(4200));
}

#[test]
fn a_touch_renews_a_life_of_less_than_seven_fill_times() {
    let rpm = Limit::per_minute("rpm", 100).unwrap();
    let rule = TtlRule::from_multiplier(7);
    let fresh = write(&rpm, rule, 50_000, Some(420), ONE, 0);
    assert_eq!(
        (fresh.kind, fresh.expiry),
        (WriteKind::Touch, Expiry::Beyond(T0 / 1000 + 419))
    );
    let aging = write(&rpm, rule, 50_000, Some(419), ONE, 0);
    assert_eq!(
        (aging.kind, aging.expiry),
        (WriteKind::Touch, Expiry::Becomes(T0 / 1000 + 630))
    );
}

#[test]
fn an_expired_bucket_is_live_and_is_refreshed() {
    let rpm = Limit::per_minute("rpm", 100).unwrap();
    let expired = write(&rpm, TtlRule::from_multiplier(7), 0, Some(-5), ONE, 600_000);
    assert_eq!(
        (expired.kind, expired.expiry),
        (WriteKind::Refill, Expiry::Becomes(T0 / 1000 + 600 + 630))
    );
}

#[test]
fn debt_keeps_a_bucket_until_it_is_paid_twice_over() {
    let rpm = Limit::per_minute("rpm", 100).unwrap();
    let debt = Demand {
        adjust: 1_000_000,
        ..Demand::default()
    };
    let write = write(&rpm, TtlRule::from_multiplier(7), 0, Some(400), debt, 0);
    // 1,000 tokens of debt and 100 to full, at 100 a minute: 660 seconds, twice, and half as long again.
    assert_eq!(write.expiry, Expiry::Becomes(T0 / 1000 + 1_980));
}

#[test]
fn a_life_is_never_shortened() {
    let rpm = Limit::per_minute("rpm", 100).unwrap();
    let rule = TtlRule::from_multiplier(7);
    // Ten thousand seconds are left, for a debt that the image may no longer show.
    let settle = write(&rpm, rule, 0, Some(10_000), ONE, 1_000);
    assert_eq!(
        (settle.kind, settle.expiry),
        (WriteKind::Refill, Expiry::Beyond(T0 / 1000 + 1 + 419))
    );
    let touch = write(&rpm, rule, 50_000, Some(10_000), ONE, 0);
    assert_eq!(touch.expiry, Expiry::Beyond(T0 / 1000 + 419));
}

#[test]
fn a_new_life_must_be_longer_than_the_one_on_the_item() {
    let rpm = Limit::per_minute("rpm", 100).unwrap();
    for (tokens, elapsed, kind) in [(50_000, 0, WriteKind::Touch), (0, 1_000, WriteKind::Refill)] {
        let write = write(&rpm, TtlRule::from_multiplier(7), tokens, Some(100), ONE, elapsed);
        assert_eq!(write.kind, kind);
        let Expiry::Becomes(life) = write.expiry else {
            panic!("{:?}", write.expiry)
        };
        let holds = Condition::AnyOf(vec![
            vec![Condition::Missing(Attr::ExpiresAt)],
            vec![Condition::AtMost(Attr::ExpiresAt, i128::from(life))],
        ]);
        assert!(write.statement().conditions.contains(&holds), "{kind:?}");
    }
}

#[test]
fn a_bucket_whose_debt_outlives_it_is_known() {
    let rpm = Limit::per_minute("rpm", 100).unwrap();
    let expires_before_full = |tokens: i128, seconds: Option<i64>, elapsed: i64| {
        let image = Image {
            quotas: BTreeMap::new(),
            permits: BTreeMap::new(),
            refilled_at: Timestamp::from_millis(T0),
            etag: None,
            limits: [(
                rpm.name().clone(),
                RateImage {
                    token_bucket: TokenBucket {
                        tokens,
                        ..TokenBucket::full(Params::from(rpm.rate().unwrap()))
                    },
                    consumed: 0,
                },
            )]
            .into(),
            broken: BTreeSet::new(),
            slots: BTreeMap::new(),
            legacy_slots: BTreeMap::new(),
            events: 0,
            expires_at: seconds.map(|seconds| T0 / 1000 + seconds),
            cascade: false,
            parent: None,
        };
        image.expires_before_full(Timestamp::from_millis(T0 + elapsed))
    };
    // 900 tokens of debt and 100 to full, at 100 a minute: 600 seconds, whenever one looks.
    for elapsed in [0, 180_000] {
        assert!(expires_before_full(-900_000, Some(420), elapsed));
        // The second of the expiry is over before it is full, or just when it is.
        assert!(expires_before_full(-900_000, Some(598), elapsed));
        assert!(!expires_before_full(-900_000, Some(599), elapsed));
        assert!(!expires_before_full(-900_000, Some(600), elapsed));
    }
    assert!(!expires_before_full(-900_000, None, 0), "it never expires");
    assert!(!expires_before_full(100_000, Some(-5), 0), "full is full");
}

#[test]
fn limits_of_an_entitys_own_take_the_expiry_away() {
    let rpm = Limit::per_minute("rpm", 100).unwrap();
    assert_eq!(
        write(&rpm, TtlRule::Never, 50_000, Some(400), ONE, 0).expiry,
        Expiry::Removed
    );
    assert_eq!(
        write(&rpm, TtlRule::Never, 50_000, None, ONE, 0).expiry,
        Expiry::Leave
    );
    assert_eq!(
        write(&rpm, TtlRule::from_multiplier(7), 50_000, None, ONE, 0).expiry,
        Expiry::Becomes(T0 / 1000 + 630)
    );
}

#[test]
fn slots_of_an_earlier_release_are_removed_once_they_are_old_and_as_seen() {
    let rpm = Limit::per_minute("rpm", 100).unwrap();
    for (tokens, elapsed, kind) in [(50_000, 0, WriteKind::Touch), (0, 1_000, WriteKind::Refill)] {
        let write = write(&rpm, TtlRule::Never, tokens, None, ONE, elapsed);
        assert_eq!(write.kind, kind);
        let old = LegacyClient::parse("old1").unwrap();
        let seen = i128::from(T0 + elapsed - 60_001);
        assert_eq!(write.legacy_slots, [(old, seen)]);
        let as_seen = Condition::Is(Attr::LegacySlot(old), Scalar::Number(seen));
        assert!(write.statement().conditions.contains(&as_seen));
    }
}
