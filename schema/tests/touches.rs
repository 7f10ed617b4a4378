//! When a write leaves the time of the last refill as it is, so that the images of other clients stay usable.

use crate::common::{entity, name, put_limit, resource};
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, BucketWrite, Decoded, Demand, Evaluation, Image,
    Incarnation, Params, RefillClause, Remainder, RowForm, Scalar, Slot, SlotBefore, SlotIndex, TokenBucket,
    TtlRule, WriteKind,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

const T0: i64 = 1_700_000_000_000;

/// 60 tokens a minute: a millitoken comes back every millisecond.
fn config() -> BucketConfig {
    let limit: Limit = "rpm:60".parse().unwrap();
    BucketConfig::new(LimitSet::new([limit]).unwrap(), None, false, TtlRule::Never)
}

fn image(config: &BucketConfig, tokens: i128) -> Image {
    let limit = config.limits().iter().next().unwrap();
    let mut item = Attributes::default();
    item.insert(Attr::RefilledAt, Scalar::Number(i128::from(T0)));
    item.insert(Attr::Etag, Scalar::Text(config.etag("AAAAAA").as_str().into()));
    let token_bucket = TokenBucket {
        tokens,
        ..TokenBucket::full(Params::from(limit.rate().unwrap()))
    };
    put_limit(&mut item, limit.name(), token_bucket, 0);
    match item.decode().unwrap() {
        Decoded::Bucket(image) => image,
        Decoded::Stub => panic!("a stub"),
    }
}

/// The write that takes `debit` from a bucket with `tokens`, `millis` after its last refill.
fn taking(tokens: i128, millis: i64, debit: i128) -> BucketWrite {
    let demand = Demand {
        debit,
        ..Demand::default()
    };
    writing(tokens, millis, demand)
}

fn writing(tokens: i128, millis: i64, demand: Demand) -> BucketWrite {
    let config = config();
    let image = image(&config, tokens);
    let mut batch = Batch::default();
    batch.add(&name("rpm"), demand);
    let key = BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    };
    let slot = Slot {
        index: SlotIndex::FIRST,
        before: SlotBefore::Empty,
        number: 1,
    };
    Evaluation::live(&image, &config, Timestamp::from_millis(T0 + millis))
        .write(key, &batch, slot, Incarnation::from_random(1))
        .unwrap()
}

#[test]
fn a_full_bucket_is_touched_as_long_as_that_leaves_no_debt() {
    // Of 60,000, what has come back in two seconds is left out: it is still to come.
    let touch = taking(60_000, 2_000, 58_000);
    assert_eq!(touch.kind, WriteKind::Touch);
    assert_eq!(
        touch.refill,
        RefillClause::Exactly(Timestamp::from_millis(T0)),
        "a level that is set is right for one time only"
    );
    let form = RowForm::Full {
        floor: 58_000,
        set: 0,
        remainder: Remainder::Keep,
    };
    assert_eq!(touch.rows[0].rate().unwrap().form, form);
    assert_eq!(taking(60_000, 2_000, 58_001).kind, WriteKind::Refill);
    // At the time of the refill nothing has come back.
    assert_eq!(taking(60_000, 0, 60_000).kind, WriteKind::Touch);
}

#[test]
fn a_bucket_with_room_is_touched_as_long_as_its_level_suffices_without_refill() {
    let touch = taking(10_000, 2_000, 10_000);
    assert_eq!(touch.kind, WriteKind::Touch);
    assert_eq!(
        touch.refill,
        RefillClause::AtLeast(Timestamp::from_millis(T0)),
        "a later refill is as good"
    );
    let form = RowForm::Open {
        floor: Some(10_000),
        ceiling: 58_000,
        add: -10_000,
        remainder: Remainder::Keep,
    };
    assert_eq!(touch.rows[0].rate().unwrap().form, form);
    assert_eq!(taking(10_000, 2_000, 10_001).kind, WriteKind::Refill);
}

/// A refill moves the time of the last one, which it cannot where no time has passed.
#[test]
fn debt_at_the_time_of_the_last_refill_is_written_without_a_refill() {
    let correction = Demand {
        credit: 5_000,
        adjust: 61_000,
        ..Demand::default()
    };
    assert_eq!(writing(60_000, 0, correction).kind, WriteKind::Touch);
    assert_eq!(writing(60_000, 2_000, correction).kind, WriteKind::Refill);
}
