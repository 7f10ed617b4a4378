//! Buckets that have lost attributes: an error or a refusal, never tokens that were used up.

use std::collections::BTreeMap;

use crate::common::{entity, name, resource};
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, Decoded, Demand, Evaluation, Field, Incarnation,
    Params, Scalar, Slot, SlotBefore, SlotIndex, TokenBucket, TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn config() -> BucketConfig {
    let limits = [Limit::per_minute("rpm", 60).unwrap()];
    BucketConfig::new(LimitSet::new(limits).unwrap(), None, false, TtlRule::Never)
}

fn taking(tokens: i128) -> Batch {
    let debit = Demand {
        debit: tokens * 1000,
        ..Demand::default()
    };
    Batch {
        demands: BTreeMap::from([(name("rpm"), debit)]),
        acquires: 1,
        ..Batch::default()
    }
}

fn booked(item: &Attributes, evaluation: &Evaluation<'_>, batch: &Batch, number: i128) -> Attributes {
    let key = BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    };
    let slot = Slot {
        index: SlotIndex::FIRST,
        before: SlotBefore::Any,
        number,
    };
    let write = evaluation
        .write(key, batch, slot, Incarnation::from_random(7))
        .unwrap();
    item.apply(&write.statement()).unwrap()
}

/// A bucket of which every token was taken at T0.
fn used_up() -> Attributes {
    let config = config();
    let evaluation = Evaluation::create(&config, T0);
    booked(&Attributes::default(), &evaluation, &taking(60), 1)
}

fn without(attrs: &[Attr]) -> Attributes {
    let mut item = used_up();
    for attr in attrs {
        item.remove(attr);
    }
    item
}

fn of_rpm(field: Field) -> Attr {
    Attr::Limit(name("rpm"), field)
}

/// Whether a token is there at T0, or which attribute is at fault.
fn admits(item: &Attributes) -> Result<bool, String> {
    let config = config();
    Ok(match item.decode().map_err(|malformed| malformed.attribute)? {
        Decoded::Stub => Evaluation::create(&config, T0).fits(&taking(1)),
        Decoded::Bucket(image) if config.matches(&image) => {
            Evaluation::live(&image, &config, T0).fits(&taking(1))
        }
        Decoded::Bucket(image) => Evaluation::parameters(&image, &config, T0).fits(&taking(1)),
    })
}

#[test]
fn a_bucket_that_lacks_one_attribute_never_starts_full() {
    let one_missing = |attr: Attr| admits(&without(&[attr]));
    for attr in [
        Attr::RefilledAt,
        Attr::Etag,
        of_rpm(Field::Tokens),
        of_rpm(Field::Capacity),
        of_rpm(Field::Burst),
        of_rpm(Field::Amount),
        of_rpm(Field::Period),
    ] {
        assert_eq!(one_missing(attr.clone()), Err(attr.to_string()));
    }
    for attr in [
        Attr::Events,
        Attr::Slot(SlotIndex::FIRST),
        of_rpm(Field::Consumed),
    ] {
        assert_eq!(one_missing(attr.clone()), Ok(false), "{attr}");
    }
}

/// All 2^16 or so subsets. What only this library writes shows that the rest was there too. Without any of it, an item may be
/// one that the Python peer leaves, which starts full.
#[test]
fn a_bucket_that_has_lost_any_attributes_gives_nothing_away() {
    let whole = used_up();
    let attrs: Vec<Attr> = whole.iter().map(|(attr, _)| attr.clone()).collect();
    assert!(attrs.len() >= 14, "{attrs:?}");
    let (mut errors, mut refusals, mut peers) = (0, 0, 0);
    for subset in 0..1u32 << attrs.len() {
        let mut item = whole.clone();
        for (place, attr) in attrs.iter().enumerate() {
            if subset & (1 << place) != 0 {
                item.remove(attr);
            }
        }
        let ours = |attr: &Attr| matches!(attr, Attr::Etag | Attr::Events | Attr::Slot(_));
        match admits(&item) {
            Err(_) => errors += 1,
            Ok(false) => refusals += 1,
            Ok(true) => {
                peers += 1;
                assert!(item.iter().all(|(attr, _)| !ours(attr)), "{item:?}");
            }
        }
    }
    println!("{errors} errors, {refusals} refusals, {peers} items as the peer leaves them");
    assert!(errors > 0 && refusals > 0 && peers > 0);
}

/// Only the Python peer's own operations take a limit off such a bucket, when its configuration is deleted and set again.
#[test]
fn a_limit_that_the_etag_names_but_the_item_lacks_counts_as_empty_since_the_last_refill() {
    let all = Field::ALL.map(of_rpm);
    let level_and_count = [Field::Tokens, Field::Consumed].map(of_rpm);
    let params = [Field::Capacity, Field::Burst, Field::Amount, Field::Period].map(of_rpm);
    for lost in [&all[..], &level_and_count[..], &params[..]] {
        let item = without(lost);
        let Decoded::Bucket(image) = item.decode().unwrap() else {
            panic!("a stub")
        };
        let config = config();
        let after = |millis: i64| {
            let now = Timestamp::from_millis(T0.millis() + millis);
            Evaluation::parameters(&image, &config, now)
        };
        assert!(!after(2_999).fits(&taking(3)), "a token a second comes back");
        assert!(after(3_000).fits(&taking(3)));
        assert!(!after(3_600_000).fits(&taking(61)), "never above the burst");
        let item = booked(&item, &after(3_500), &taking(3), 2);
        let Decoded::Bucket(image) = item.decode().unwrap() else {
            panic!("a stub")
        };
        assert!(config.matches(&image));
        assert_eq!(image.limits[&name("rpm")].token_bucket.tokens, 500);
        assert_eq!(image.limits[&name("rpm")].token_bucket.remainder, 0);
    }
}

/// A write that was planned for a lost limit does not happen if the limit is whole by then.
#[test]
fn a_lost_limit_is_replaced_only_while_it_is_lost() {
    let params = [Field::Capacity, Field::Burst, Field::Amount, Field::Period].map(of_rpm);
    let item = without(&params);
    let Decoded::Bucket(image) = item.decode().unwrap() else {
        panic!("a stub")
    };
    let config = config();
    let now = Timestamp::from_millis(T0.millis() + 5_000);
    let write = Evaluation::parameters(&image, &config, now).write(
        BucketKey {
            entity: entity("user-1"),
            resource: resource("gpt-4"),
        },
        &taking(1),
        Slot {
            index: SlotIndex::FIRST,
            before: SlotBefore::Any,
            number: 2,
        },
        Incarnation::from_random(7),
    );
    let statement = write.unwrap().statement();
    assert!(item.apply(&statement).is_ok());
    assert!(used_up().apply(&statement).is_err());
}

/// A count of refusals may be written to what the peer leaves of an expired bucket.
#[test]
fn levels_and_counts_alone_are_no_bucket() {
    let mut stub = Attributes::default();
    stub.insert(of_rpm(Field::Tokens), Scalar::Number(-3_000));
    stub.insert(of_rpm(Field::Consumed), Scalar::Number(3_000));
    stub.insert(Attr::Refusals, Scalar::Number(1));
    assert_eq!(stub.decode(), Ok(Decoded::Stub));
    stub.insert(of_rpm(Field::Remainder), Scalar::Number(1));
    assert_eq!(stub.decode().unwrap_err().attribute, "rf");
}

#[test]
fn what_the_peer_leaves_of_a_limit_or_adds_of_one_is_no_damage() {
    let peers = |fields: &[(Field, i128)]| {
        let mut item = without(&Field::ALL.map(of_rpm));
        for attr in [Attr::Etag, Attr::Events, Attr::Slot(SlotIndex::FIRST)] {
            item.remove(&attr);
        }
        for (field, value) in fields {
            item.insert(of_rpm(*field), Scalar::Number(*value));
        }
        item
    };
    let params = [
        (Field::Capacity, 60_000),
        (Field::Burst, 60_000),
        (Field::Amount, 60_000),
        (Field::Period, 60_000),
    ];
    let again: Vec<_> = params.into_iter().chain([(Field::Remainder, 7)]).collect();
    // An adjustment of a limit that has left the bucket; its count alone; a limit that was just configured, for the first time
    // or after it was removed.
    for fields in [
        &[(Field::Tokens, -3_000), (Field::Consumed, 3_000)][..],
        &[(Field::Consumed, 3_000)][..],
        &params[..],
        &again[..],
        &[][..],
    ] {
        assert_eq!(admits(&peers(fields)), Ok(true), "{fields:?}");
    }
    let counted: Vec<_> = params.into_iter().chain([(Field::Consumed, 3_000)]).collect();
    assert_eq!(admits(&peers(&counted)), Err("b_rpm_tk".to_owned()));
}

/// Beyond these, arithmetic could overflow.
#[test]
fn a_number_out_of_its_range_is_an_error_that_names_it() {
    let (tokens, counter) = (TokenBucket::MAX_TOKENS, 10i128.pow(36));
    let (amount, latest) = (Params::MAX_AMOUNT, i128::from(Timestamp::MAX.millis()));
    let ranges = [
        (Attr::RefilledAt, 0..=latest),
        (Attr::ExpiresAt, 0..=latest),
        (Attr::Events, -counter..=counter),
        (of_rpm(Field::Tokens), -tokens..=tokens),
        (of_rpm(Field::Consumed), -counter..=counter),
        (of_rpm(Field::Remainder), 0..=amount),
        (of_rpm(Field::Capacity), 1..=amount),
        (of_rpm(Field::Burst), 1..=amount),
        (of_rpm(Field::Amount), 1..=amount),
        (of_rpm(Field::Period), 1..=Params::MAX_PERIOD),
    ];
    for (attr, range) in ranges {
        let with = |number| {
            let mut item = used_up();
            item.insert(attr.clone(), Scalar::Number(number));
            item.decode()
        };
        for inside in [*range.start(), *range.end()] {
            assert!(matches!(with(inside), Ok(Decoded::Bucket(_))), "{attr} {inside}");
        }
        for outside in [range.start() - 1, range.end() + 1] {
            let malformed = with(outside).unwrap_err();
            assert_eq!(malformed.attribute, attr.to_string());
            assert_eq!(malformed.reason, format!("is out of range: {outside}"));
        }
    }
}
