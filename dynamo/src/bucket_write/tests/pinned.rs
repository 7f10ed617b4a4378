//! The request of a bucket that holds only rates, text by text: other kinds of limits must not change it.

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use zae_limiter_schema::bucket::{
    Batch, BucketConfig, ClientTag, Decoded, Demand, Evaluation, Incarnation, Slot, SlotBefore, SlotIndex,
    TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use super::{Engine, NOW, key};
use crate::Update;

/// A write in three lines: what it does, its condition, and its names and values by index.
fn request(update: Update) -> [String; 3] {
    let parts = update.into_parts();
    let mut named: Vec<_> = parts.names.unwrap_or_default().into_iter().collect();
    named.sort_by_key(|(sign, _)| sign[1..].parse::<usize>().unwrap());
    let mut values: Vec<_> = parts.values.unwrap_or_default().into_iter().collect();
    values.sort_by_key(|(sign, _)| sign[1..].parse::<usize>().unwrap());
    let value = |value: SdkValue| match value {
        SdkValue::N(text) | SdkValue::S(text) => text,
        other => format!("{other:?}"),
    };
    let names = named.into_iter().map(|(_, name)| name);
    let listed: Vec<String> = names.chain(values.into_iter().map(|(_, of)| value(of))).collect();
    [
        parts.update,
        parts.condition.unwrap_or_default(),
        listed.join(" "),
    ]
}

#[test]
fn a_bucket_of_rates_is_written_as_it_always_was_and_costs_one_unit() {
    let limits = ["rpm:100", "tpm:10000"].map(|text| text.parse::<Limit>().unwrap());
    let config = BucketConfig::new(LimitSet::new(limits).unwrap(), None, false, TtlRule::Never);
    let mut batch = Batch {
        acquires: 1,
        ..Batch::default()
    };
    batch.add(&"rpm".parse().unwrap(), Demand::debit(1_000));
    let slot = |before| Slot {
        index: SlotIndex::FIRST,
        before,
        number: ClientTag::from_random(7).number(1, 0),
    };
    let now = Timestamp::from_millis(NOW);
    let (engine, incarnation) = (Engine::new(), Incarnation::from_random(42));
    let create = Evaluation::create(&config, now);
    let create = create
        .write(key(), &batch, slot(SlotBefore::Empty), incarnation)
        .unwrap();
    let item = engine.write(&create).unwrap();
    let Decoded::Bucket(image) = item.decode().unwrap() else {
        panic!("{item:?}")
    };
    let before = engine.meter.consumed();
    let live = Evaluation::live(&image, &config, now.plus_millis(10));
    let own = SlotBefore::Own(slot(SlotBefore::Empty).number);
    let touch = live
        .write(key(), &batch, slot(own), Incarnation::from_random(43))
        .unwrap();
    assert_eq!(
        request((&touch).into()),
        [
            "SET #0=:0 ADD #1 :1,#2 :2,#3 :3",
            "#4=:4 AND #0=:5 AND #5>=:6 AND #1 BETWEEN :7 AND :8",
            "o_0 b_rpm_tk b_rpm_tc ev cf rf 1000000000000007 -1000 1000 1 NRCS3Y4aksp.qAAAAA 1000000000000007 \
             1769860800000 1000 99983",
        ]
    );
    engine.write(&touch).unwrap();
    let after = engine.meter.consumed();
    assert!((after.write_units - before.write_units - 1.0).abs() < f64::EPSILON);
}
