#![allow(clippy::unwrap_used, clippy::panic)]

use aws_sdk_dynamodb::types::error::TransactionCanceledException;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;

use super::*;

fn canceled(codes: &[&str]) -> SdkError<TransactWriteItemsError, HttpResponse> {
    let reasons = codes
        .iter()
        .map(|code| CancellationReason::builder().code(*code).build());
    let error = TransactionCanceledException::builder()
        .set_cancellation_reasons(Some(reasons.collect()))
        .build();
    let response = HttpResponse::new(StatusCode::try_from(400).unwrap(), SdkBody::empty());
    SdkError::service_error(
        TransactWriteItemsError::TransactionCanceledException(error),
        response,
    )
}

#[test]
fn conflicts_and_throttling_alone_are_sent_again() {
    for codes in [
        &["TransactionConflict"][..],
        &["None", "TransactionConflict"],
        &["ThrottlingError", "None"],
        &["None", "ProvisionedThroughputExceeded"],
    ] {
        let error = failed_conditions(&canceled(codes)).unwrap_err();
        assert!(error.is_transient(), "{codes:?}: {error:?}");
    }
}

#[test]
fn a_false_condition_decides_even_beside_a_conflict() {
    for codes in [
        &["ConditionalCheckFailed", "None"][..],
        &["TransactionConflict", "ConditionalCheckFailed"],
        &["ConditionalCheckFailed", "ThrottlingError"],
    ] {
        let reasons = failed_conditions(&canceled(codes)).unwrap();
        assert_eq!(reasons.len(), codes.len(), "{codes:?}");
    }
}

#[test]
fn what_stays_wrong_is_not_sent_again() {
    for codes in [
        &["ValidationError"][..],
        &["None", "ItemCollectionSizeLimitExceeded"],
        &["None"],
    ] {
        let error = failed_conditions(&canceled(codes)).unwrap_err();
        assert!(matches!(error, CallError::Canceled(_)), "{codes:?}: {error:?}");
    }
}
