//! Expressions of the protocol, word for word.

use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, Decoded, Demand, Evaluation, Field, Incarnation, Params, Scalar,
    Slot, SlotBefore, SlotIndex, TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use super::{NOW, key};
use crate::{Update, UpdateParts};

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
        let params = Params::from(limit);
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

fn parts(tokens: [i128; 2], debits: [i128; 2]) -> UpdateParts {
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
    Update::from(&write).into_parts()
}

fn value(parts: &UpdateParts, name: &str) -> String {
    match &parts.values.as_ref().unwrap()[name] {
        AttributeValue::N(text) | AttributeValue::S(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_touch_adds_within_the_range_for_which_it_is_exact() {
    let parts = parts([10_000, 100_000], [1_000, 5_000]);
    assert_eq!(
        parts.update,
        "SET #a0 = :v0 ADD #a1 :v1, #a2 :v2, #a3 :v3, #a4 :v4, #a5 :v5"
    );
    assert_eq!(
        parts.condition.as_deref().unwrap(),
        "#a6 = :v6 AND #a0 = :v7 AND #a7 >= :v8 AND #a1 >= :v9 AND #a1 <= :v10 AND #a3 >= :v11 AND #a3 <= :v12 \
         AND (attribute_not_exists(#a8) OR #a8 > :v13)"
    );
    let names: Vec<_> = (0..9)
        .map(|index| parts.names.as_ref().unwrap()[&format!("#a{index}")].as_str())
        .collect();
    let expected = [
        "o_0", "b_rpm_tk", "b_rpm_tc", "b_tpm_tk", "b_tpm_tc", "ev", "cf", "rf", "ttl",
    ];
    assert_eq!(names, expected);
    // Three seconds have brought 3 and 30 tokens, which must still fit under 60 and 600.
    for (name, expected) in [
        (":v1", "-1000"),
        (":v2", "1000"),
        (":v9", "1000"),
        (":v10", "57000"),
        (":v11", "5000"),
        (":v12", "570000"),
        (":v7", "7"),
    ] {
        assert_eq!(value(&parts, name), expected, "{name}");
    }
}

#[test]
fn a_settle_moves_the_moment_of_refill_with_rows_for_every_limit() {
    // The first needs its refill, the second is full.
    let parts = parts([500, 590_000], [2_000, 0]);
    assert_eq!(
        parts.update,
        "SET #a0 = :v0, #a1 = :v1, #a2 = :v2, #a6 = :v5 REMOVE #a4, #a7 ADD #a3 :v3, #a5 :v4, #a8 :v6"
    );
    assert_eq!(
        parts.condition.as_deref().unwrap(),
        "#a9 = :v7 AND #a0 = :v8 AND #a1 = :v9 AND #a3 >= :v10 AND #a3 <= :v11 AND #a6 >= :v12 \
         AND (attribute_not_exists(#a2) OR #a2 <= :v13)"
    );
    let names: Vec<_> = (0..10)
        .map(|index| parts.names.as_ref().unwrap()[&format!("#a{index}")].as_str())
        .collect();
    let expected = [
        "o_0", "rf", "ttl", "b_rpm_tk", "b_rpm_rr", "b_rpm_tc", "b_tpm_tk", "b_tpm_rr", "ev", "cf",
    ];
    assert_eq!(names, expected);
    for (name, expected) in [
        (":v1", NOW.to_string().as_str()),
        (":v3", "1000"),
        (":v4", "2000"),
        (":v5", "600000"),
        (":v10", "-1000"),
        (":v11", "57000"),
        (":v12", "570000"),
    ] {
        assert_eq!(value(&parts, name), expected, "{name}");
    }
}
