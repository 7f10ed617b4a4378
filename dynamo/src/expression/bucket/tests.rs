#![allow(clippy::unwrap_used, clippy::panic)]

use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketConfig, BucketKey, Decoded, Demand, Evaluation, Field, Incarnation, Params,
    Scalar, Slot, SlotBefore, SlotIndex, TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;

use super::*;

const NOW: i64 = 1_769_860_800_000;

fn key() -> BucketKey {
    BucketKey {
        entity: "user-1".parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    }
}

fn terms() -> BucketConfig {
    let limits = ["rpm:60", "tpm:600"].map(|text| text.parse::<Limit>().unwrap());
    BucketConfig::new(
        LimitSet::new(limits.to_vec()).unwrap(),
        None,
        false,
        TtlRule::from_multiplier(7),
    )
}

fn item(terms: &BucketConfig, tokens: [i128; 2]) -> Attributes {
    let mut item = Attributes::default();
    item.insert(Attr::RefilledAt, Scalar::Number(i128::from(NOW) - 3_000));
    item.insert(Attr::Etag, Scalar::Text(terms.etag("BBBBBB").as_str().into()));
    item.insert(Attr::Cascade, Scalar::Flag(false));
    item.insert(Attr::Slot(SlotIndex::FIRST), Scalar::Number(7));
    item.insert(Attr::ExpiresAt, Scalar::Number(i128::from(NOW / 1000) + 600));
    for (limit, tokens) in terms.limits().iter().zip(tokens) {
        let params = Params::from(limit.rate().unwrap());
        let fields = [
            (Field::Tokens, tokens),
            (Field::Capacity, params.capacity()),
            (Field::Burst, params.burst()),
            (Field::Amount, params.amount()),
            (Field::Period, params.period()),
            (Field::Consumed, 0),
        ];
        for (field, value) in fields {
            item.insert(Attr::Limit(limit.name().clone(), field), Scalar::Number(value));
        }
    }
    item
}

/// Update and condition of a write with these debits on a bucket with these levels, with names and numbers in place of placeholders.
fn expressions(tokens: [i128; 2], debits: [i128; 2]) -> [String; 2] {
    let terms = terms();
    let Ok(Decoded::Bucket(image)) = item(&terms, tokens).decode() else {
        panic!("no bucket")
    };
    let mut batch = Batch {
        acquires: 1,
        ..Batch::default()
    };
    for (limit, debit) in terms.limits().iter().zip(debits) {
        batch.add(
            limit.name(),
            Demand {
                debit,
                ..Demand::default()
            },
        );
    }
    let slot = Slot {
        index: SlotIndex::FIRST,
        before: SlotBefore::Own(7),
        number: i128::from(NOW),
    };
    let evaluation = Evaluation::live(&image, &terms, Timestamp::from_millis(NOW));
    let write = evaluation
        .write(key(), &batch, slot, Incarnation::from_random(1))
        .unwrap();
    let parts = Update::from(&write).into_parts();
    let (names, values) = (parts.names.unwrap(), parts.values.unwrap());
    [parts.update, parts.condition.unwrap()].map(|text| {
        let mut readable = String::new();
        let mut rest = text.as_str();
        while let Some(start) = rest.find(['#', ':']) {
            let digits = rest[start + 1..].find(|c: char| !c.is_ascii_digit());
            let end = digits.map_or(rest.len(), |digits| start + 1 + digits);
            let placeholder = &rest[start..end];
            readable.push_str(&rest[..start]);
            match (names.get(placeholder), values.get(placeholder)) {
                (Some(name), _) => readable.push_str(name),
                (_, Some(SdkValue::N(value) | SdkValue::S(value))) => readable.push_str(value),
                other => panic!("{placeholder}: {other:?}"),
            }
            rest = &rest[end..];
        }
        (readable + rest).replace(terms.etag("BBBBBB").as_str(), "ETAG")
    })
}

#[test]
fn a_touch_adds_within_the_range_for_which_it_is_exact() {
    let [update, condition] = expressions([10_000, 100_000], [1_000, 5_000]);
    assert_eq!(
        update,
        "SET o_0=1769860800000 ADD b_rpm_tk -1000,b_rpm_tc 1000,b_tpm_tk -5000,b_tpm_tc 5000,ev 1"
    );
    // Three seconds have brought 3 and 30 tokens, which must still fit under 60 and 600.
    assert_eq!(
        condition,
        "cf=ETAG AND o_0=7 AND rf>=1769860797000 AND b_rpm_tk BETWEEN 1000 AND 57000 \
         AND b_tpm_tk BETWEEN 5000 AND 570000 AND (attribute_not_exists(ttl) OR ttl>1769861219)"
    );
}

#[test]
fn a_refill_moves_the_time_of_refill_with_rows_for_every_limit() {
    // The first needs its refill, the second is full.
    let [update, condition] = expressions([500, 590_000], [2_000, 0]);
    assert_eq!(
        update,
        "SET o_0=1769860800000,rf=1769860800000,ttl=1769861430,b_tpm_tk=600000 \
         REMOVE b_rpm_rr,b_tpm_rr ADD b_rpm_tk 1000,b_rpm_tc 2000,ev 1"
    );
    assert_eq!(
        condition,
        "cf=ETAG AND o_0=7 AND rf=1769860797000 AND b_rpm_tk BETWEEN -1000 AND 57000 \
         AND b_tpm_tk>=570000 AND (attribute_not_exists(ttl) OR ttl<=1769861430)"
    );
}
