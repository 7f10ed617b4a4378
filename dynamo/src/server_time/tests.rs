#![allow(clippy::unwrap_used)]

use std::time::UNIX_EPOCH;

use zae_limiter_schema::Timestamp;

use super::*;
use crate::script::Script;

/// The offset after responses with this status, request id and date, at 12:01.
async fn offset_after(status: u16, from_dynamodb: bool, date: &'static str) -> i64 {
    let local = LocalTime {
        now: Timestamp::parse("2026-01-31T12:01:00Z").unwrap(),
        elapsed: Duration::from_secs(7),
    };
    let (script, time) = (Script::default(), ServerTime::new(move || local));
    let client = time.watch(&Client::from_conf(script.config().build()));
    for _ in 0..5 {
        let mut headers = vec![("date", date)];
        if from_dynamodb {
            headers.push(("x-amzn-requestid", "id"));
        }
        script.responds(status, &headers, "{}".into());
        // Only the head of the response matters.
        drop(client.list_tables().send().await);
    }
    time.offset()
}

#[tokio::test]
async fn the_date_of_responses_shows_how_far_the_clock_is_off() {
    for status in [200, 400] {
        assert_eq!(
            offset_after(status, true, "Sat, 31 Jan 2026 12:00:00 GMT").await,
            -59_500
        );
        assert_eq!(
            offset_after(status, true, "Sat, 31 Jan 2026 12:00:59 GMT").await,
            0
        );
    }
}

#[tokio::test]
async fn what_is_no_date_changes_nothing() {
    assert_eq!(offset_after(200, true, "yesterday").await, 0);
}

#[tokio::test]
async fn responses_that_are_not_dynamodbs_own_change_nothing() {
    for (status, from_dynamodb) in [(200, false), (403, false), (500, true), (503, true)] {
        let offset = offset_after(status, from_dynamodb, "Sat, 31 Jan 2026 12:04:00 GMT").await;
        assert_eq!(offset, 0, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_cannot_sign_is_corrected_by_the_first_response_and_the_call_succeeds() {
    for refused in [
        "Signature expired: now earlier",
        "Signature not yet current: now later",
    ] {
        let local = LocalTime {
            now: Timestamp::from_millis(i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()),
            elapsed: Duration::from_secs(7),
        };
        let (script, time) = (Script::default(), ServerTime::new(move || local));
        let mut table = script.table();
        table.client = time.watch(&table.client);
        let body = format!(r#"{{"__type":"InvalidSignatureException","message":"{refused}"}}"#);
        let headers = [
            ("date", "Sat, 31 Jan 2099 13:00:00 GMT"),
            ("x-amzn-requestid", "id"),
        ];
        script.responds(400, &headers, body.into());
        assert!(
            table
                .get(&zae_limiter_schema::keys::version(), false)
                .await
                .is_ok()
        );
        let sent = script.sent.lock().unwrap();
        let signed = sent[1].header("x-amz-date").unwrap();
        assert!(signed.starts_with("20990131T1"), "{signed}");
        assert!(time.offset() > 0);
    }
}
