//! A write is exact for every item for which its conditions hold, whatever image it was planned from.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;

use common::{batch_for, config, elapsed, entity, meter, name, put_limit, resource};
use proptest::prelude::*;
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketKey, BucketWrite, ClientId, Decoded, Field, Footing, Image, Incarnation,
    Meter, Refused, RowForm, Scalar, Shape, Slot, SlotBefore, Terms, TtlRule,
};
use zae_limiter_schema::{Limit, LimitName, LimitSet, Timestamp};

const T0: i64 = 1_700_000_000_000;

fn client() -> ClientId {
    ClientId::parse("me01").unwrap()
}

fn key() -> BucketKey {
    BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    }
}

fn slot(before: SlotBefore) -> Slot {
    Slot {
        client: client(),
        before,
        number: 9_000_000_000_000,
    }
}

fn item(meters: &BTreeMap<LimitName, Meter>, refilled_at: i64, etag: Option<&str>) -> Attributes {
    let mut item = Attributes::default();
    item.insert(Attr::RefilledAt, Scalar::Number(i128::from(refilled_at)));
    item.insert(Attr::Cascade, Scalar::Flag(false));
    if let Some(etag) = etag {
        item.insert(Attr::Etag, Scalar::Text(etag.into()));
    }
    for (limit, meter) in meters {
        put_limit(&mut item, limit, *meter, 7_000);
    }
    item
}

fn image(item: &Attributes) -> Image {
    match item.decode().unwrap() {
        Decoded::Bucket(image) => image,
        Decoded::Stub => panic!("a stub"),
    }
}

/// Terms without expiry, so that only levels decide. The limits are not looked at by a live footing but for who leaves.
fn terms(names: &[&LimitName]) -> Terms {
    let limits = names
        .iter()
        .map(|name| Limit::from_parts((*name).clone(), 1, 1, 1, 1).unwrap());
    Terms::new(LimitSet::new(limits).unwrap(), None, false, TtlRule::Never)
}

fn meters() -> impl Strategy<Value = BTreeMap<LimitName, Meter>> {
    proptest::collection::vec(meter(), 1..4).prop_map(|meters| {
        ["rpm", "tpd", "tpm"]
            .iter()
            .map(|text| name(text))
            .zip(meters)
            .collect()
    })
}

/// What a limit should be after the batch, by the reference arithmetic on the item as it really is.
fn reference(meter: Meter, elapsed: i128, batch: &Batch, limit: &LimitName) -> Meter {
    let demand = batch.demand(limit);
    meter
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

/// An item, the image a client has of it (the same, or stale in level and moment), a batch and a time.
fn case() -> impl Strategy<Value = (BTreeMap<LimitName, Meter>, Case)> {
    (meters(), elapsed(), elapsed(), 0..4u8)
        .prop_flat_map(|(meters, elapsed, moved, staleness)| {
            let shifts = proptest::collection::vec(-20_000..=20_000i128, meters.len());
            (
                Just(meters.clone()),
                batch_for(&meters),
                shifts,
                Just((elapsed, moved, staleness)),
            )
        })
        .prop_map(|(meters, batch, shifts, (elapsed, moved, staleness))| {
            let etag = Some("AAAAAAAAAAA.gen001");
            let seen = item(&meters, T0, etag);
            let mut actual = meters.clone();
            let mut refilled_at = T0;
            if staleness > 0 {
                for (meter, shift) in actual.values_mut().zip(&shifts) {
                    meter.tokens = (meter.tokens + shift).min(meter.params.burst());
                }
            }
            if staleness > 2 {
                let moved = i64::try_from(moved % (elapsed + 2)).unwrap();
                refilled_at += moved;
            }
            let now = Timestamp::from_millis(T0 + i64::try_from(elapsed).unwrap());
            (
                meters,
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
        let expected = reference(was.meter, before.elapsed(now), batch, limit);
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
        let row = write.rows.iter().find(|row| row.limit == *limit);
        let touched = write.shape == Shape::Touch;
        let set = row.is_some_and(|row| matches!(row.form, RowForm::Full { .. }));
        // A level that is set without moving the moment of refill rounds against the caller, by less than a millitoken,
        // if no time has passed: otherwise such a write settles.
        let down = i128::from(touched && set && before.elapsed(now) == 0);
        // A level that refill and credits bring to the burst loses its remainder, less than a millitoken, in the
        // reference; a write that does not move the moment of refill keeps it.
        let filled = was.meter.credit(before.elapsed(now), demand.credit);
        let reaches_burst = filled.tokens >= filled.params.burst();
        let up = i128::from(touched && reaches_burst && was.meter.remainder > 0);
        for later in [0, 1, 1_000, 3_600_000] {
            let level = is.meter.available(after.elapsed(now) + later);
            let right = expected.available(later);
            prop_assert!(
                level <= right + up && level >= right - down,
                "level {level}, reference {right} after {later}"
            );
        }
        prop_assert_eq!(is.consumed, was.consumed + demand.consumption());
    }
    prop_assert_eq!(after.events, before.events + i128::from(batch.acquires));
    prop_assert_eq!(after.slots.get(&client()), Some(&write.slot.number));
    prop_assert!(
        after.refilled_at >= before.refilled_at,
        "the moment of refill went backwards"
    );
    Ok(true)
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn a_write_that_applies_gives_the_reference_level_whatever_image_it_was_planned_from((meters, case) in case()) {
        let names: Vec<_> = meters.keys().collect();
        let terms = terms(&names);
        let seen = image(&case.seen);
        let footing = Footing::live(&seen, &terms, case.now);
        let write = footing.write(key(), &case.batch, slot(SlotBefore::Absent), Incarnation::from_random(1));
        let write = assume(write)?;
        check(&write, &case.actual, &case.batch, case.now)?;
    }

    #[test]
    fn a_write_planned_from_the_true_image_always_applies((meters, case) in case()) {
        let names: Vec<_> = meters.keys().collect();
        let terms = terms(&names);
        let seen = image(&case.actual);
        let footing = Footing::live(&seen, &terms, case.now);
        let write = footing.write(key(), &case.batch, slot(SlotBefore::Absent), Incarnation::from_random(1));
        let write = assume(write)?;
        prop_assert!(check(&write, &case.actual, &case.batch, footing.now())?);
    }

    #[test]
    fn of_a_rows_two_ranges_one_always_holds((meters, case) in case(), level in any::<i64>()) {
        // The same moment of refill, any level: planned from that level, the row takes the other form and applies.
        let names: Vec<_> = meters.keys().collect();
        let terms = terms(&names);
        let mut batch = case.batch.clone();
        for demand in batch.demands.values_mut() {
            demand.debit = 0;
        }
        let mut other = case.seen.clone();
        for limit in &names {
            other.insert(Attr::Limit((*limit).clone(), Field::Tokens), Scalar::Number(i128::from(level)));
        }
        let seen = image(&other);
        let footing = Footing::live(&seen, &terms, case.now);
        let write = footing.write(key(), &batch, slot(SlotBefore::Absent), Incarnation::from_random(1)).unwrap();
        prop_assert!(check(&write, &other, &batch, case.now)?);
    }

    #[test]
    fn a_write_happens_once_however_often_it_is_sent((meters, case) in case(), previous in proptest::option::of(1..100i128)) {
        let names: Vec<_> = meters.keys().collect();
        let terms = terms(&names);
        let mut actual = case.actual.clone();
        if let Some(previous) = previous {
            actual.insert(Attr::Slot(client()), Scalar::Number(previous));
        }
        let seen = image(&actual);
        let footing = Footing::live(&seen, &terms, case.now);
        let before = previous.map_or(SlotBefore::Absent, SlotBefore::Number);
        let write = footing.write(key(), &case.batch, slot(before), Incarnation::from_random(1));
        let write = assume(write)?.statement();
        let after = actual.apply(&write).unwrap();
        prop_assert_eq!(after.apply(&write), Err(Refused::Condition));
    }

    #[test]
    fn a_bucket_is_created_once_and_full((batch, meters) in meters().prop_flat_map(|m| (batch_for(&m), Just(m))), now in 0..T0) {
        let limits = meters.keys().zip([(100, 150, 100, 60), (5, 5, 1, 86_400), (10_000, 15_000, 10_000, 60)]);
        let limits = limits.map(|(name, (c, b, a, p))| Limit::from_parts(name.clone(), c, b, a, p).unwrap());
        let terms = Terms::new(LimitSet::new(limits).unwrap(), Some(entity("org")), true, TtlRule::from_multiplier(7));
        let now = Timestamp::from_millis(now);
        let footing = Footing::create(&terms, now);
        let write = assume(footing.write(key(), &batch, slot(SlotBefore::Absent), Incarnation::from_random(77)))?;
        let created = Attributes::default().apply(&write.statement()).unwrap();
        prop_assert_eq!(created.apply(&write.statement()), Err(Refused::Condition));
        let image = image(&created);
        for limit in terms.limits() {
            let demand = batch.demand(limit.name());
            let on_item = image.limits[limit.name()];
            prop_assert_eq!(on_item.meter.tokens, limit.burst().millis() - demand.adjust - demand.debit);
            prop_assert_eq!(on_item.consumed, demand.consumption());
        }
        prop_assert!(terms.match_image(&image));
        prop_assert!(image.expires_at.unwrap() > now.seconds());
    }
}
