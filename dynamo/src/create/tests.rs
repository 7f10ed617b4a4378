#![allow(clippy::unwrap_used)]

use aws_smithy_types::body::SdkBody;
use tokio::time::Instant;

use crate::script::Script;
use crate::{CallError, Error};

fn described(status: &str) -> SdkBody {
    SdkBody::from(format!(
        r#"{{"Table":{{"TableName":"limiter","TableStatus":"{status}"}}}}"#
    ))
}

fn error(code: &str) -> SdkBody {
    SdkBody::from(format!(r#"{{"__type":"{code}","message":"text"}}"#))
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_being_created_is_waited_for() {
    let script = Script::default();
    for status in ["CREATING", "CREATING", "ACTIVE"] {
        script.responds(200, &[], described(status));
    }
    assert!(script.table().exists().await.unwrap());
    assert_eq!(script.operations(), ["DescribeTable"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_table_whose_creation_takes_too_long_is_unavailable() {
    let script = Script::default();
    for _ in 0..1_000 {
        script.responds(200, &[], described("CREATING"));
    }
    let (table, started) = (script.table(), Instant::now());
    let error = table.exists().await.unwrap_err();
    assert!(
        matches!(error.cause(), Some(CallError::Unavailable(text)) if text.contains("still being created")),
        "{error:?}"
    );
    assert!(started.elapsed() <= table.budget);
    assert!(script.operations().len() > 1);
}

#[tokio::test]
async fn whether_a_table_exists_is_not_guessed() {
    let script = Script::default();
    script.responds(400, &[], error("ResourceNotFoundException"));
    script.responds(400, &[], error("AccessDeniedException"));
    assert!(!script.table().exists().await.unwrap());
    let denied = script.table().exists().await.unwrap_err();
    assert!(matches!(denied.cause(), Some(CallError::Denied(_))), "{denied:?}");
}

#[tokio::test]
async fn a_creation_that_is_denied_is_reported_as_such() {
    let script = Script::default();
    script.responds(400, &[], error("AccessDeniedException"));
    script.responds(400, &[], error("ResourceNotFoundException"));
    let denied = script.table().create().await.unwrap_err();
    assert!(
        matches!(
            &denied,
            Error::Call {
                operation: "CreateTable",
                cause: CallError::Denied(_),
                ..
            }
        ),
        "{denied:?}"
    );
    assert_eq!(script.operations(), ["CreateTable", "DescribeTable"]);
}

#[tokio::test]
async fn a_table_that_another_process_created_is_as_good() {
    let script = Script::default();
    script.responds(400, &[], error("ResourceInUseException"));
    script.responds(200, &[], described("ACTIVE"));
    // Not every local endpoint supports time to live.
    script.responds(400, &[], error("UnknownOperationException"));
    script.table().create().await.unwrap();
    assert_eq!(
        script.operations(),
        ["CreateTable", "DescribeTable", "UpdateTimeToLive"]
    );
}
