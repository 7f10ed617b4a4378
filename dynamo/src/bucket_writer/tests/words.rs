//! Expressions of the protocol, word for word.

use serde_json::Value;
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, Decoded, Demand, Evaluation, Field, Incarnation, Params, Scalar,
    Slot, SlotBefore, SlotIndex, TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use super::{NOW, key};
use crate::BucketRequest;

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

fn parts(tokens: [i128; 2], debits: [i128; 2]) -> (BucketRequest, Value) {
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
    let request = BucketRequest::new("limiter", &write);
    let body = serde_json::from_str(request.body()).unwrap();
    (request, body)
}

fn number<'a>(body: &'a Value, name: &str) -> &'a str {
    body["ExpressionAttributeValues"][name]["N"].as_str().unwrap()
}

fn names(body: &Value) -> Vec<&str> {
    let names = body["ExpressionAttributeNames"].as_object().unwrap();
    (0..names.len())
        .map(|index| names[&format!("#{index}")].as_str().unwrap())
        .collect()
}

#[test]
fn a_touch_adds_within_the_range_for_which_it_is_exact() {
    let (request, body) = parts([10_000, 100_000], [1_000, 5_000]);
    assert_eq!(request.update(), "SET #0=:0 ADD #1 :1,#2 :2,#3 :3,#4 :4,#5 :5");
    assert_eq!(
        request.condition(),
        "#6=:6 AND #0=:7 AND #7>=:8 AND #1 BETWEEN :9 AND :10 AND #3 BETWEEN :11 AND :12 \
         AND (attribute_not_exists(#8) OR #8>:13)"
    );
    let expected = [
        "o_0", "b_rpm_tk", "b_rpm_tc", "b_tpm_tk", "b_tpm_tc", "ev", "cf", "rf", "ttl",
    ];
    assert_eq!(names(&body), expected);
    // Three seconds have brought 3 and 30 tokens, which must still fit under 60 and 600.
    for (name, expected) in [
        (":1", "-1000"),
        (":2", "1000"),
        (":7", "7"),
        (":9", "1000"),
        (":10", "57000"),
        (":11", "5000"),
        (":12", "570000"),
    ] {
        assert_eq!(number(&body, name), expected, "{name}");
    }
    assert_eq!(body["TableName"], "limiter");
    assert_eq!(body["Key"]["PK"]["S"], "ENTITY#user-1");
    assert_eq!(body["Key"]["SK"]["S"], "#BUCKET#gpt-4");
    assert_eq!(body["UpdateExpression"], request.update());
    assert_eq!(body["ConditionExpression"], request.condition());
    assert_eq!(body["ReturnValues"], "ALL_NEW");
    assert_eq!(body["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
}

#[test]
fn a_settle_moves_the_moment_of_refill_with_rows_for_every_limit() {
    // The first needs its refill, the second is full.
    let (request, body) = parts([500, 590_000], [2_000, 0]);
    assert_eq!(
        request.update(),
        "SET #0=:0,#1=:1,#2=:2,#3=:3 REMOVE #4,#5 ADD #6 :4,#7 :5,#8 :6"
    );
    assert_eq!(
        request.condition(),
        "#9=:7 AND #0=:8 AND #1=:9 AND #6 BETWEEN :10 AND :11 AND #3>=:12 \
         AND (attribute_not_exists(#2) OR #2<=:13)"
    );
    let expected = [
        "o_0", "rf", "ttl", "b_tpm_tk", "b_rpm_rr", "b_tpm_rr", "b_rpm_tk", "b_rpm_tc", "ev", "cf",
    ];
    assert_eq!(names(&body), expected);
    for (name, expected) in [
        (":1", NOW.to_string().as_str()),
        (":3", "600000"),
        (":4", "1000"),
        (":5", "2000"),
        (":10", "-1000"),
        (":11", "57000"),
        (":12", "570000"),
    ] {
        assert_eq!(number(&body, name), expected, "{name}");
    }
}
