//! The bytes of messages: what Google's protobuf library for Python makes of them with the definitions of Envoy's API.

use prost::Message as _;

use crate::grpc::messages::{
    Code, DescriptorStatus, Entry, HeaderValue, ProtoDuration, RateLimit, RateLimitDescriptor,
    RateLimitRequest, RateLimitResponse, Unit,
};

#[test]
fn a_request_is_decoded_and_what_is_not_used_is_skipped() {
    // The first descriptor also overrides the limit (field 2); the second has an addend of 0.
    let bytes = b"\n\x01d\x12\x1d\n\x06\n\x01k\x12\x01v\n\x06\n\x01l\x12\x01w\x12\x04\x08\x07\x10\x02\x1a\x03\x08\xac\x02 \x01\
        \x12\x02\x1a\0\x18\x03";
    let entry = |key: &str, value: &str| Entry {
        key: key.into(),
        value: value.into(),
    };
    let descriptors = vec![
        RateLimitDescriptor {
            entries: vec![entry("k", "v"), entry("l", "w")],
            hits_addend: Some(300),
            is_negative_hits: true,
        },
        RateLimitDescriptor {
            hits_addend: Some(0),
            ..RateLimitDescriptor::default()
        },
    ];
    let expected = RateLimitRequest {
        domain: "d".to_owned(),
        descriptors,
        hits_addend: 3,
    };
    assert_eq!(RateLimitRequest::decode(&bytes[..]), Ok(expected));
}

#[test]
fn a_response_is_encoded() {
    let bytes = b"\x08\x02\x12\x16\x08\x01\x12\t\x08\n\x10\x07\x1a\x03rpm\x18\xc8\x01\"\x04\x08<\x10\x05\x1a\x06\n\x01a\x12\x01b*\x02{}";
    let status = DescriptorStatus {
        code: Code::Ok.into(),
        current_limit: Some(RateLimit {
            requests_per_unit: 10,
            unit: Unit::Week.into(),
            name: "rpm".to_owned(),
        }),
        limit_remaining: 200,
        duration_until_reset: Some(ProtoDuration {
            seconds: 60,
            nanos: 5,
        }),
    };
    let response = RateLimitResponse {
        overall_code: Code::OverLimit.into(),
        statuses: vec![status],
        response_headers_to_add: vec![HeaderValue {
            key: "a".to_owned(),
            value: "b".to_owned(),
        }],
        raw_body: b"{}".to_vec(),
    };
    assert_eq!(response.encode_to_vec(), bytes);
}
