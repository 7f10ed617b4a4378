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

#[test]
fn throttling_conflicts_and_server_errors_are_repeated() {
    for (code, status) in [
        ("ProvisionedThroughputExceededException", 400),
        ("ThrottlingException", 400),
        ("RequestLimitExceeded", 400),
        ("TransactionConflictException", 400),
        ("TransactionInProgressException", 400),
        ("InternalServerError", 500),
        ("", 503),
    ] {
        assert!(from_code(code, status).is_transient(), "{code} {status}");
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

#[test]
fn a_code_behind_a_namespace_is_the_same_code() {
    let code = "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException";
    assert_eq!(from_code(code, 400), CallError::TableMissing);
}
