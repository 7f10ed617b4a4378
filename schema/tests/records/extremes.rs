//! Buckets with the largest numbers that are read: every decision about them is made, and none overflows.

use proptest::prelude::*;
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, Demand, Evaluation, Field, Incarnation, Params, Scalar,
    Slot, SlotBefore, SlotIndex, TokenBucket, TtlRule,
};
use zae_limiter_schema::{LimitName, LimitSet, Timestamp, Tokens};

use crate::common::{config, entity, limit, name, resource};
use crate::records::examples::decoded;

fn up_to(most: i128) -> impl Strategy<Value = i128> + Clone {
    prop_oneof![Just(0), Just(1), Just(most), Just(most - 1), 0..=most]
}

fn either_way(most: i128) -> impl Strategy<Value = i128> {
    (up_to(most), any::<bool>()).prop_map(|(number, below)| if below { -number } else { number })
}

fn value(field: Field) -> BoxedStrategy<i128> {
    match field {
        Field::Tokens => either_way(TokenBucket::MAX_TOKENS).boxed(),
        Field::Consumed => either_way(10i128.pow(36)).boxed(),
        Field::Remainder => up_to(Params::MAX_AMOUNT).boxed(),
        Field::Period => up_to(Params::MAX_PERIOD).prop_map(|value| value.max(1)).boxed(),
        _ => up_to(Params::MAX_AMOUNT).prop_map(|value| value.max(1)).boxed(),
    }
}

/// All of a limit's attributes, or those that the Python peer leaves of one or writes of a new one.
fn fields() -> impl Strategy<Value = Vec<(Field, i128)>> {
    let all: Vec<_> = Field::ALL
        .into_iter()
        .map(|field| (Just(field), value(field)))
        .collect();
    (all, 0..16usize).prop_map(|(mut all, form)| {
        all.retain(|(field, _)| match (form, field) {
            (0, Field::Consumed) | (1, Field::Remainder) => false,
            (2, field) => matches!(field, Field::Tokens | Field::Consumed),
            (3, field) => !matches!(field, Field::Tokens | Field::Consumed | Field::Remainder),
            _ => true,
        });
        all
    })
}

fn bucket() -> impl Strategy<Value = Attributes> {
    let time = up_to(i128::from(Timestamp::MAX.millis()));
    let slots = proptest::collection::vec((2..16u8, any::<i128>()), 0..12);
    let etag = proptest::option::of(".{0,20}");
    (
        time.clone(),
        fields(),
        fields(),
        slots,
        etag,
        proptest::option::of(time),
    )
        .prop_map(|(refilled_at, rpm, tpm, slots, etag, expires_at)| {
            let mut bucket = Attributes::default();
            bucket.insert(Attr::RefilledAt, Scalar::Number(refilled_at));
            for (limit, fields) in [("rpm", rpm), ("tpm", tpm)] {
                for (field, value) in fields {
                    bucket.insert(Attr::Limit(name(limit), field), Scalar::Number(value));
                }
            }
            if let Some(etag) = etag {
                for (index, number) in slots {
                    bucket.insert(Attr::Slot(SlotIndex::new(index)), Scalar::Number(number));
                }
                bucket.insert(Attr::Etag, Scalar::Text(etag.as_str().into()));
            }
            if let Some(seconds) = expires_at {
                bucket.insert(Attr::ExpiresAt, Scalar::Number(seconds));
            }
            bucket
        })
}

/// What many callers with the largest amounts give back, correct and take.
fn demand() -> impl Strategy<Value = Demand> {
    let most = i128::from(Tokens::MAX) * 1_000_000;
    (up_to(most), up_to(most), either_way(most)).prop_map(|(credit, adjust, recount)| Demand {
        credit,
        adjust,
        debit: 0,
        recount,
        top_up: 0,
    })
}

/// A slot that no other client has.
fn slot() -> Slot {
    Slot {
        index: SlotIndex::new(1),
        before: SlotBefore::Empty,
        number: 1,
    }
}

fn key() -> BucketKey {
    BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn whatever_bucket_can_be_read_can_be_decided_about_and_given_new_parameters(
        bucket in bucket(),
        rpm in limit(),
        other in limit(),
        demands in (demand(), demand()),
        now in up_to(i128::from(Timestamp::MAX.millis())),
        multiplier in any::<u32>(),
    ) {
        let renamed = |limit: LimitName, like: &zae_limiter_schema::Limit| {
            let (capacity, burst) = (like.capacity().get(), like.burst().get());
            zae_limiter_schema::Limit::from_parts(limit, capacity, burst, like.rate().unwrap().refill_amount().get(), like.rate().unwrap().refill_period_seconds()).unwrap()
        };
        let limits = LimitSet::new([renamed(name("rpm"), &rpm), renamed(name("other"), &other)]).unwrap();
        let config = BucketConfig::new(limits, None, false, TtlRule::from_multiplier(multiplier));
        let batch = Batch { demands: [(name("rpm"), demands.0), (name("tpm"), demands.1)].into(), acquires: 1, ..Batch::default() };
        let now = Timestamp::from_millis(i64::try_from(now).unwrap());
        let image = decoded(&bucket);

        let live = Evaluation::live(&image, &config, now);
        for limit in image.limits.keys() {
            prop_assert!(live.outlook(limit, &batch, 1_000).is_some());
        }
        prop_assert!(live.write(key(), &batch, slot(), Incarnation::from_random(3)).is_some());

        let write = Evaluation::parameters(&image, &config, now).write(key(), &batch, slot(), Incarnation::from_random(3)).unwrap();
        let after = bucket.apply(&write.statement());
        prop_assert!(after.is_ok(), "{:?}", after);
        let after = after.unwrap();
        prop_assert_eq!(after.number(&Attr::Slot(slot().index)), Some(1));
        prop_assert_eq!(after.number(&Attr::Limit(name("rpm"), Field::Burst)), Some(rpm.burst().millis()));
    }
}
