//! A write is exact for every item for which its conditions hold, whatever image it was planned from.

use std::collections::BTreeMap;

use crate::common::{batch_for, config, elapsed, entity, name, put_limit, resource, token_bucket};
use proptest::prelude::*;
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, BucketWrite, Decoded, Evaluation, Field, Image,
    Incarnation, Refused, Row, RowForm, Scalar, Slot, SlotBefore, SlotIndex, TokenBucket, TtlRule, WriteKind,
};
use zae_limiter_schema::{Limit, LimitName, LimitSet, Timestamp};

const T0: i64 = 1_700_000_000_000;

fn own_slot() -> SlotIndex {
    SlotIndex::new(1)
}

fn key() -> BucketKey {
    BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    }
}

fn slot(before: SlotBefore) -> Slot {
    Slot {
        index: own_slot(),
        before,
        number: 9_000_000_000_000,
    }
}

fn item(
    token_buckets: &BTreeMap<LimitName, TokenBucket>,
    refilled_at: i64,
    etag: Option<&str>,
) -> Attributes {
    let mut item = Attributes::default();
    item.insert(Attr::RefilledAt, Scalar::Number(i128::from(refilled_at)));
    item.insert(Attr::Cascade, Scalar::Flag(false));
    if let Some(etag) = etag {
        item.insert(Attr::Etag, Scalar::Text(etag.into()));
    }
    for (limit, token_bucket) in token_buckets {
        put_limit(&mut item, limit, *token_bucket, 7_000);
    }
    item
}

fn image(item: &Attributes) -> Image {
    match item.decode().unwrap() {
        Decoded::Bucket(image) => image,
        Decoded::Stub => panic!("a stub"),
    }
}

/// BucketConfig without expiry, so that only levels decide. The limits are not looked at by a live evaluation but for who leaves.
fn bucket_config(names: &[&LimitName]) -> BucketConfig {
    let limits = names
        .iter()
        .map(|name| Limit::from_parts((*name).clone(), 1, 1, 1, 1).unwrap());
    BucketConfig::new(LimitSet::new(limits).unwrap(), None, false, TtlRule::Never)
}

fn token_buckets() -> impl Strategy<Value = BTreeMap<LimitName, TokenBucket>> {
    proptest::collection::vec(token_bucket(), 1..4).prop_map(|token_buckets| {
        ["rpm", "tpd", "tpm"]
            .iter()
            .map(|text| name(text))
            .zip(token_buckets)
            .collect()
    })
}

/// What a limit should be after the batch, by the reference arithmetic on the item as it really is.
fn reference(token_bucket: TokenBucket, elapsed: i128, batch: &Batch, limit: &LimitName) -> TokenBucket {
    let demand = batch.demand(limit);
    token_bucket
        .credit(elapsed, demand.credit)
        .force_take(0, demand.adjust + demand.debit)
}

#[derive(Debug)]
struct Case {
    seen: Attributes,
    actual: Attributes,
    now: Timestamp,
    batch: Batch,
}

/// An item, the image a client has of it (the same, or stale in level and time), a batch and a time.
fn case() -> impl Strategy<Value = (BTreeMap<LimitName, TokenBucket>, Case)> {
    (token_buckets(), elapsed(), elapsed(), 0..4u8)
        .prop_flat_map(|(token_buckets, elapsed, moved, staleness)| {
            let shifts = proptest::collection::vec(-20_000..=20_000i128, token_buckets.len());
            (
                Just(token_buckets.clone()),
                batch_for(&token_buckets),
                shifts,
                Just((elapsed, moved, staleness)),
            )
        })
        .prop_map(|(token_buckets, batch, shifts, (elapsed, moved, staleness))| {
            let etag = Some("AAAAAAAAAAA.gen001");
            let seen = item(&token_buckets, T0, etag);
            let mut actual = token_buckets.clone();
            let mut refilled_at = T0;
            if staleness > 0 {
                for (token_bucket, shift) in actual.values_mut().zip(&shifts) {
                    token_bucket.tokens = (token_bucket.tokens + shift).min(token_bucket.params.burst());
                }
            }
            if staleness > 2 {
                let moved = i64::try_from(moved % (elapsed + 2)).unwrap();
                refilled_at += moved;
            }
            let now = Timestamp::from_millis(T0 + i64::try_from(elapsed).unwrap());
            (
                token_buckets,
                Case {
                    seen,
                    actual: item(&actual, refilled_at, etag),
                    now,
                    batch,
                },
            )
        })
}

/// Sorts out batches that do not fit: there is no write for them.
fn assume(write: Option<BucketWrite>) -> Result<BucketWrite, TestCaseError> {
    write.ok_or_else(|| TestCaseError::reject("it does not fit"))
}

/// Checks that each limit is what the reference says at `now` and later, and that no debit was admitted that
/// was not there. Returns false if the server refused.
fn check(
    write: &BucketWrite,
    actual: &Attributes,
    batch: &Batch,
    now: Timestamp,
) -> Result<bool, TestCaseError> {
    let after = match actual.apply(&write.statement()) {
        Err(Refused::Condition) => return Ok(false),
        Err(refused) => return Err(TestCaseError::fail(format!("{refused:?}"))),
        Ok(after) => after,
    };
    let (before, after) = (image(actual), image(&after));
    for (limit, was) in &before.limits {
        let demand = batch.demand(limit);
        let expected = reference(was.token_bucket, before.elapsed(now), batch, limit);
        let Some(is) = after.limits.get(limit) else {
            prop_assert!(
                expected.tokens >= expected.params.burst(),
                "a limit left before it was full"
            );
            continue;
        };
        let level_before_debit = expected.tokens + demand.debit;
        prop_assert!(
            demand.debit == 0 || level_before_debit >= demand.debit,
            "admitted what was not there"
        );
        let row = write
            .rows
            .iter()
            .find(|row| row.limit() == limit)
            .and_then(Row::rate);
        let touched = write.kind == WriteKind::Touch;
        let set = row.is_some_and(|row| matches!(row.form, RowForm::Full { .. }));
        // A level that is set without moving the time of the last refill rounds against the caller, by less than a millitoken,
        // if no time has passed: otherwise such a write settles.
        let down = i128::from(touched && set && before.elapsed(now) == 0);
        // A level that refill and credits bring to the burst loses its remainder, less than a millitoken, in the
        // reference; a write that does not move the time of the last refill keeps it.
        let filled = was.token_bucket.credit(before.elapsed(now), demand.credit);
        let reaches_burst = filled.tokens >= filled.params.burst();
        let up = i128::from(touched && reaches_burst && was.token_bucket.remainder > 0);
        for later in [0, 1, 1_000, 3_600_000] {
            let level = is.token_bucket.available(after.elapsed(now) + later);
            let right = expected.available(later);
            prop_assert!(
                level <= right + up && level >= right - down,
                "level {level}, reference {right} after {later}"
            );
        }
        prop_assert_eq!(is.consumed, was.consumed + demand.consumption());
    }
    prop_assert_eq!(after.events, before.events + i128::from(batch.acquires));
    prop_assert_eq!(after.slots.get(&own_slot()), Some(&write.slot.number));
    prop_assert!(
        after.refilled_at >= before.refilled_at,
        "the time of the last refill went backwards"
    );
    Ok(true)
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn a_write_that_applies_gives_the_reference_level_whatever_image_it_was_planned_from((token_buckets, case) in case()) {
        let names: Vec<_> = token_buckets.keys().collect();
        let config = bucket_config(&names);
        let seen = image(&case.seen);
        let evaluation = Evaluation::live(&seen, &config, case.now);
        let write = evaluation.write(key(), &case.batch, slot(SlotBefore::Empty), Incarnation::from_random(1));
        let write = assume(write)?;
        check(&write, &case.actual, &case.batch, case.now)?;
    }

    #[test]
    fn a_write_planned_from_the_true_image_always_applies((token_buckets, case) in case()) {
        let names: Vec<_> = token_buckets.keys().collect();
        let config = bucket_config(&names);
        let seen = image(&case.actual);
        let evaluation = Evaluation::live(&seen, &config, case.now);
        let write = evaluation.write(key(), &case.batch, slot(SlotBefore::Empty), Incarnation::from_random(1));
        let write = assume(write)?;
        prop_assert!(check(&write, &case.actual, &case.batch, evaluation.now())?);
    }

    #[test]
    fn of_a_rows_two_ranges_one_always_holds((token_buckets, case) in case(), level in any::<i64>()) {
        // The same time of the last refill, any level: planned from that level, the row takes the other form and applies.
        let names: Vec<_> = token_buckets.keys().collect();
        let config = bucket_config(&names);
        let mut batch = case.batch.clone();
        for demand in batch.demands.values_mut() {
            demand.debit = 0;
        }
        let mut other = case.seen.clone();
        for limit in &names {
            other.insert(Attr::Limit((*limit).clone(), Field::Tokens), Scalar::Number(i128::from(level)));
        }
        let seen = image(&other);
        let evaluation = Evaluation::live(&seen, &config, case.now);
        let write = evaluation.write(key(), &batch, slot(SlotBefore::Empty), Incarnation::from_random(1)).unwrap();
        prop_assert!(check(&write, &other, &batch, case.now)?);
    }

    #[test]
    fn a_write_happens_once_however_often_it_is_sent((token_buckets, case) in case(), previous in proptest::option::of(1..100i128)) {
        let names: Vec<_> = token_buckets.keys().collect();
        let config = bucket_config(&names);
        let mut actual = case.actual.clone();
        if let Some(previous) = previous {
            actual.insert(Attr::Slot(own_slot()), Scalar::Number(previous));
        }
        let seen = image(&actual);
        let evaluation = Evaluation::live(&seen, &config, case.now);
        let before = previous.map_or(SlotBefore::Empty, SlotBefore::Own);
        let write = evaluation.write(key(), &case.batch, slot(before), Incarnation::from_random(1));
        let write = assume(write)?.statement();
        let after = actual.apply(&write).unwrap();
        prop_assert_eq!(after.apply(&write), Err(Refused::Condition));
    }

    #[test]
    fn a_bucket_is_created_once_and_full((batch, token_buckets) in token_buckets().prop_flat_map(|m| (batch_for(&m), Just(m))), now in 0..T0) {
        let limits = token_buckets.keys().zip([(100, 150, 100, 60), (5, 5, 1, 86_400), (10_000, 15_000, 10_000, 60)]);
        let limits = limits.map(|(name, (c, b, a, p))| Limit::from_parts(name.clone(), c, b, a, p).unwrap());
        let config = BucketConfig::new(LimitSet::new(limits).unwrap(), Some(entity("org")), true, TtlRule::from_multiplier(7));
        let now = Timestamp::from_millis(now);
        let evaluation = Evaluation::create(&config, now);
        let write = assume(evaluation.write(key(), &batch, slot(SlotBefore::Empty), Incarnation::from_random(77)))?;
        let created = Attributes::default().apply(&write.statement()).unwrap();
        prop_assert_eq!(created.apply(&write.statement()), Err(Refused::Condition));
        let image = image(&created);
        for limit in config.limits() {
            let demand = batch.demand(limit.name());
            let on_item = image.limits[limit.name()];
            prop_assert_eq!(on_item.token_bucket.tokens, limit.burst().millis() - demand.adjust - demand.debit);
            prop_assert_eq!(on_item.consumed, demand.consumption());
        }
        prop_assert!(config.matches(&image));
        prop_assert!(image.expires_at.unwrap() > now.seconds());
    }
}
