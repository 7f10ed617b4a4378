use zae_limiter_dynamo::CallError;

use super::*;

fn from_call(cause: CallError) -> Error {
    Error::from(zae_limiter_dynamo::Error::Call {
        operation: "GetItem",
        table: "limiter".to_owned(),
        place: "eu-west-1".to_owned(),
        within: Duration::from_secs(1),
        cause,
    })
}

#[test]
fn denials_missing_tables_and_bad_requests_are_never_unavailability() {
    let text = || "text".to_owned();
    for cause in [
        CallError::Denied(text()),
        CallError::TableMissing,
        CallError::Invalid(text()),
        CallError::Refused(text()),
        CallError::Canceled(text()),
        CallError::ConditionFailed,
    ] {
        let error = from_call(cause);
        assert!(!error.is_unavailable(), "{error}");
    }
}

#[test]
fn what_was_retried_in_vain_is_unavailability() {
    for cause in [
        CallError::Conflict("text".to_owned()),
        CallError::Throttled("text".to_owned()),
        CallError::Unavailable("text".to_owned()),
        CallError::NotSent("text".to_owned()),
        CallError::FileHeld("limiter.db".into()),
    ] {
        let error = from_call(cause);
        assert!(error.is_unavailable(), "{error}");
    }
    let path = PathBuf::from("limiter.db");
    let held = Error::from(zae_limiter_dynamo::Error::FileHeld { path });
    assert!(held.is_unavailable(), "{held}");
}
