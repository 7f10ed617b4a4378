#![allow(clippy::unwrap_used)]

use serde_json::Value;
use zae_limiter_schema::keys::Key;

use crate::CallError;
use crate::script::Script;

fn key(sk: &str) -> Key {
    Key {
        pk: "ENTITY#user-1".to_owned(),
        sk: sk.to_owned(),
    }
}

/// A response that leaves one deletion undone.
const LEFT: &str = r##"{"UnprocessedItems":{"limiter":[{"DeleteRequest":{"Key":{"PK":{"S":"ENTITY#user-1"},"SK":{"S":"#META"}}}}]}}"##;

#[tokio::test(start_paused = true)]
async fn deletions_that_are_left_are_sent_again_alone() {
    let script = Script::default();
    script.responds(200, &[], LEFT.into());
    let keys = [key("#META"), key("#BUCKET#gpt-4")];
    script.table().batch_delete(&keys).await.unwrap();
    let sent = script.sent.lock().unwrap();
    let requests = sent.iter().map(|sent| {
        let body: Value = serde_json::from_str(&sent.body).unwrap();
        body["RequestItems"]["limiter"].as_array().unwrap().len()
    });
    assert_eq!(requests.collect::<Vec<_>>(), [2, 1]);
    assert!(sent[1].body.contains("#META"), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn deletions_that_stay_undone_are_an_error() {
    let script = Script::default();
    for _ in 0..1_000 {
        script.responds(200, &[], LEFT.into());
    }
    let error = script.table().batch_delete(&[key("#META")]).await.unwrap_err();
    assert!(
        matches!(error.cause(), Some(CallError::Throttled(text)) if text.starts_with("1 keys")),
        "{error:?}"
    );
}
