#![allow(clippy::panic)]

use super::*;

fn from_code(code: &str, status: u16) -> CallError {
    CallError::from_code(code, "text", status)
}

#[test]
fn denials_missing_tables_and_bad_requests_are_not_repeated() {
    for code in [
        "AccessDeniedException",
        "UnrecognizedClientException",
        "ResourceNotFoundException",
        "ValidationException",
        "SomethingNew",
    ] {
        assert!(!from_code(code, 400).is_transient(), "{code}");
    }
}

/// Every error that a retry may resolve, and what it means for a write: a conflict and throttling did not change anything,
/// an unavailable service may have. A code that is missing here is a code that nobody retries.
const TRANSIENT: [(&str, u16, &str); 17] = [
    ("TransactionConflictException", 400, "conflict"),
    ("TransactionInProgressException", 400, "conflict"),
    // Another region of a global table with strong consistency is writing the item.
    ("ReplicatedWriteConflictException", 400, "conflict"),
    ("ProvisionedThroughputExceededException", 400, "throttled"),
    ("ThrottlingException", 400, "throttled"),
    ("Throttling", 400, "throttled"),
    ("RequestLimitExceeded", 400, "throttled"),
    ("RequestThrottled", 400, "throttled"),
    ("RequestThrottledException", 400, "throttled"),
    ("TooManyRequestsException", 429, "throttled"),
    ("LimitExceededException", 400, "throttled"),
    ("SlowDown", 503, "throttled"),
    ("SomethingNew", 429, "throttled"),
    ("InternalServerError", 500, "unavailable"),
    ("RequestTimeout", 400, "unavailable"),
    ("ServiceUnavailable", 503, "unavailable"),
    ("", 503, "unavailable"),
];

#[test]
fn every_transient_error_is_repeated_and_known_for_what_it_is() {
    for (code, status, class) in TRANSIENT {
        for code in [
            code.to_owned(),
            format!("com.amazonaws.dynamodb.v20120810#{code}"),
        ] {
            let error = from_code(&code, status);
            assert!(error.is_transient(), "{code} {status}");
            let found = match error {
                CallError::Conflict(_) => "conflict",
                CallError::Throttled(_) => "throttled",
                CallError::Unavailable(_) => "unavailable",
                other => panic!("{code} {status}: {other:?}"),
            };
            assert_eq!(found, class, "{code} {status}");
        }
    }
}

#[test]
fn a_request_is_invalid_only_if_its_code_says_so() {
    assert!(matches!(
        from_code("ValidationException", 400),
        CallError::Invalid(_)
    ));
    assert!(matches!(from_code("SomethingNew", 400), CallError::Refused(_)));
    assert!(matches!(from_code("SomethingNew", 403), CallError::Denied(_)));
}

#[test]
fn what_fails_every_request_until_somebody_fixes_it_is_a_denial() {
    for (status, code) in [
        (400, "AccessDeniedException"),
        (400, "ExpiredTokenException"),
        (400, "KMSDisabledException"),
        (400, "KMS.DisabledException"),
        (400, "AWS.SimpleQueueService.NonExistentQueue"),
        (400, "QueueDoesNotExist"),
        (404, "NoSuchBucket"),
        (403, "SomethingNew"),
    ] {
        assert!(matches!(from_code(code, status), CallError::Denied(_)), "{code}");
    }
}

#[test]
fn a_message_includes_its_causes_and_no_dump() {
    let cause = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
    let error: SdkError<aws_sdk_dynamodb::operation::get_item::GetItemError, HttpResponse> =
        SdkError::dispatch_failure(aws_smithy_runtime_api::client::result::ConnectorError::io(
            cause.into(),
        ));
    let CallError::NotSent(text) = CallError::from(&error) else {
        panic!("not refused")
    };
    assert!(text.ends_with("connection refused"), "{text}");
    assert!(!text.contains('{'), "{text}");
}

#[test]
fn a_connection_that_broke_may_have_carried_the_request() {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof};

    for kind in [ConnectionReset, BrokenPipe, UnexpectedEof, TimedOut] {
        let cause = std::io::Error::from(kind);
        let error: SdkError<aws_sdk_dynamodb::operation::get_item::GetItemError, HttpResponse> =
            SdkError::dispatch_failure(aws_smithy_runtime_api::client::result::ConnectorError::io(
                cause.into(),
            ));
        let failed = CallError::from(&error);
        assert!(matches!(failed, CallError::Unavailable(_)), "{kind:?}");
    }
}

type Failed = SdkError<aws_sdk_dynamodb::operation::get_item::GetItemError, HttpResponse>;

#[test]
fn an_unconfirmed_response_is_told_from_a_request_that_was_never_built() {
    use aws_smithy_runtime_api::http::StatusCode;
    use aws_smithy_types::body::SdkBody;

    let response = |status: u16| {
        let status = StatusCode::try_from(status).unwrap_or_else(|_| panic!("{status}"));
        Failed::response_error("no JSON", HttpResponse::new(status, SdkBody::empty()))
    };
    for unconfirmed in [Failed::timeout_error("late"), response(200), response(502)] {
        let error = CallError::from(&unconfirmed);
        assert!(matches!(error, CallError::Unavailable(_)), "{error:?}");
    }
    let CallError::Unavailable(text) = CallError::from(&response(200)) else {
        panic!("not unconfirmed")
    };
    assert!(
        text.contains("unreadable response") && text.contains("no JSON"),
        "{text}"
    );
    let error = CallError::from(&Failed::construction_failure("no region"));
    assert!(
        matches!(&error, CallError::Invalid(text) if text.contains("no region")) && !error.is_transient(),
        "{error:?}"
    );
}

#[test]
fn an_error_without_a_message_is_reported_by_its_status() {
    let CallError::Refused(text) = CallError::from_code("SomethingNew", "", 418) else {
        panic!("not refused")
    };
    assert_eq!(text, "SomethingNew (status 418)");
}

#[test]
fn a_code_behind_a_namespace_is_the_same_code() {
    let code = "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException";
    assert_eq!(from_code(code, 400), CallError::TableMissing);
}
