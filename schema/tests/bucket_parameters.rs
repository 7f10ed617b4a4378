//! New parameters on an existing bucket.

use std::collections::BTreeMap;

use crate::common::{config, elapsed, entity, limit, name, put_limit, resource, token_bucket};
use proptest::prelude::*;
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, Decoded, Demand, Evaluation, Field, Image, Incarnation,
    Params, Scalar, Slot, SlotBefore, SlotIndex, TokenBucket, TtlRule, WriteKind,
};
use zae_limiter_schema::{Limit, LimitName, LimitSet, Timestamp};

const T0: i64 = 1_700_000_000_000;

fn write_onto(
    item: &Attributes,
    config: &BucketConfig,
    batch: &Batch,
    now: Timestamp,
) -> (WriteKind, Attributes) {
    let seen = image(item);
    let evaluation = Evaluation::parameters(&seen, config, now);
    let key = BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    };
    let client = SlotIndex::new(1);
    let last = seen.slots.get(&client).copied();
    let before = last.map_or(SlotBefore::Empty, SlotBefore::Own);
    let write = evaluation
        .write(
            key,
            batch,
            Slot {
                index: client,
                before,
                number: last.unwrap_or(0) + 1,
            },
            Incarnation::from_random(5),
        )
        .unwrap();
    (write.kind, item.apply(&write.statement()).unwrap())
}

fn image(item: &Attributes) -> Image {
    match item.decode().unwrap() {
        Decoded::Bucket(image) => image,
        Decoded::Stub => panic!("a stub"),
    }
}

fn bucket(limits: &[(LimitName, TokenBucket)], etag: Option<&str>) -> Attributes {
    let mut item = Attributes::default();
    item.insert(Attr::RefilledAt, Scalar::Number(i128::from(T0)));
    if let Some(etag) = etag {
        item.insert(Attr::Etag, Scalar::Text(etag.into()));
    }
    for (name, token_bucket) in limits {
        put_limit(&mut item, name, *token_bucket, 0);
    }
    item
}

fn bucket_config(limits: impl IntoIterator<Item = Limit>) -> BucketConfig {
    BucketConfig::new(LimitSet::new(limits).unwrap(), None, false, TtlRule::Never)
}

fn after(millis: i128) -> Timestamp {
    Timestamp::from_millis(T0 + i64::try_from(millis).unwrap())
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn a_kept_limit_refills_at_the_old_rate_and_is_cut_to_the_smaller_burst(
        old in token_bucket(), new in limit(), elapsed in elapsed(),
    ) {
        let item = bucket(&[(new.name().clone(), old)], Some("other.gen001"));
        let config = bucket_config([new.clone()]);
        let (kind, item) = write_onto(&item, &config, &Batch::default(), after(elapsed));
        let image = image(&item);
        prop_assert_eq!(kind, WriteKind::Reconfigure);
        let level = old.available(elapsed).min(new.burst().millis());
        prop_assert_eq!(image.limits[new.name()].token_bucket.tokens, level);
        prop_assert_eq!(image.limits[new.name()].token_bucket.params, Params::from(new.rate().unwrap()));
        prop_assert_eq!(image.refilled_at, after(elapsed));
        prop_assert!(config.matches(&image));
        prop_assert_eq!(image.incarnation(), "gen001");
    }

    #[test]
    fn removing_and_adding_a_limit_again_gives_nothing_away(
        level in token_bucket(), limit in limit(), first in elapsed(), second in elapsed(),
    ) {
        let gone = name("gone-limit");
        let other = Limit::from_parts(name("other-limit"), 10, 10, 10, 60).unwrap();
        let with_both = bucket_config([
            other.clone(),
            Limit::from_parts(gone.clone(), limit.capacity().get(), limit.burst().get(), limit.rate().unwrap().refill_amount().get(), limit.rate().unwrap().refill_period_seconds()).unwrap(),
        ]);
        let token_bucket = TokenBucket { params: Params::from(limit.rate().unwrap()), tokens: level.tokens.min(limit.burst().millis()), remainder: 0 };
        let item = bucket(&[(gone.clone(), token_bucket), (other.name().clone(), TokenBucket::full(Params::from(other.rate().unwrap())))], Some("a.gen001"));
        let (_, dropped) = write_onto(&item, &bucket_config([other.clone()]), &Batch::default(), after(first));
        let (_, again) = write_onto(&dropped, &with_both, &Batch::default(), after(first + second));
        let expected = token_bucket.available(first + second);
        prop_assert_eq!(image(&again).limits[&gone].token_bucket.tokens, expected);
    }

    #[test]
    fn new_limits_start_full_less_what_is_taken(limit in limit(), part in 0..=1000i128) {
        let item = bucket(&[], Some("a.gen001"));
        let debit = limit.burst().millis() * part / 1000;
        let batch = Batch {
            demands: BTreeMap::from([(limit.name().clone(), Demand { debit, ..Demand::default() })]),
            acquires: 1,
            ..Batch::default()
        };
        let (_, item) = write_onto(&item, &bucket_config([limit.clone()]), &batch, after(0));
        let on_item = image(&item).limits[limit.name()];
        prop_assert_eq!(on_item.token_bucket.tokens, limit.burst().millis() - debit);
        prop_assert_eq!(on_item.consumed, debit);
    }
}

#[test]
fn what_an_adjustment_of_the_peer_leaves_of_a_limit_is_made_anew() {
    let rpm = Limit::per_minute("rpm", 10).unwrap();
    let mut item = bucket(&[], Some("a.gen001"));
    for (field, value) in [(Field::Tokens, 0), (Field::Consumed, 3_000)] {
        item.insert(Attr::Limit(name("rpm"), field), Scalar::Number(value));
    }
    assert!(image(&item).broken.contains(rpm.name()));
    let (_, item) = write_onto(&item, &bucket_config([rpm.clone()]), &Batch::default(), after(5));
    let on_item = image(&item).limits[rpm.name()];
    assert_eq!(
        on_item.token_bucket,
        TokenBucket::full(Params::from(rpm.rate().unwrap()))
    );
    assert_eq!(on_item.consumed, 3_000, "the count goes on");
}

#[test]
fn a_bucket_of_the_peer_is_taken_over_with_its_level() {
    let rpm = Limit::per_minute("rpm", 10).unwrap();
    let token_bucket = TokenBucket {
        tokens: 4_000,
        ..TokenBucket::full(Params::from(rpm.rate().unwrap()))
    };
    let item = bucket(&[(name("rpm"), token_bucket)], None);
    let (_, item) = write_onto(&item, &bucket_config([rpm]), &Batch::default(), after(6_000));
    let image = image(&item);
    assert_eq!(image.limits[&name("rpm")].token_bucket.tokens, 5_000);
    assert_eq!(image.incarnation(), Incarnation::from_random(5).to_string());
}

#[test]
fn a_remainder_that_belongs_to_another_period_counts_as_none() {
    let day = Limit::per_day("day", 1).unwrap();
    let token_bucket = TokenBucket {
        params: Params::from(day.rate().unwrap()),
        tokens: 0,
        remainder: 86_399_999,
    };
    // The peer rewrites the period without knowing about the remainder.
    let second = Params::from(Limit::per_second("day", 1).unwrap().rate().unwrap());
    assert_eq!(
        TokenBucket {
            params: second,
            ..token_bucket
        }
        .available(0),
        0
    );
    assert_eq!(
        TokenBucket {
            params: second,
            ..token_bucket
        }
        .available(1),
        1
    );
}

#[test]
fn full_leftovers_leave_with_the_next_settle_and_others_stay() {
    let rpm = Limit::per_minute("rpm", 10).unwrap();
    let (low, full) = (name("low"), name("zfull"));
    let old = Params::from(Limit::per_hour("x", 10).unwrap().rate().unwrap());
    let token_buckets = [
        (
            low.clone(),
            TokenBucket {
                params: old,
                tokens: 0,
                remainder: 0,
            },
        ),
        (name("rpm"), TokenBucket::full(Params::from(rpm.rate().unwrap()))),
        (full.clone(), TokenBucket::full(old)),
    ];
    let (_, item) = write_onto(
        &bucket(&token_buckets, Some("a.gen001")),
        &bucket_config([rpm]),
        &Batch::default(),
        after(1),
    );
    let image = image(&item);
    assert!(image.limits.contains_key(&low), "it is not full yet");
    assert!(!image.limits.contains_key(&full));
    assert!(
        item.iter()
            .all(|(attr, _)| !attr.to_string().starts_with("b_zfull"))
    );
}
