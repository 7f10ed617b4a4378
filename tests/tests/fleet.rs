//! The whole fleet on the local cloud: a stack that the library deploys, the real functions on a real stream.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::{Duration, Instant};

use zae_limiter::audit::AuditSubject;
use zae_limiter::stack::{Change, Code, StackOptions};
use zae_limiter::usage::{UsageQuery, WindowKind};
use zae_limiter::{Limit, NewEntity, PageRequest, RateLimiter, StackSetup};
use zae_limiter_testing::{MiniStack, dev_functions};

/// How long the stream and the functions may take.
const PATIENCE: Duration = Duration::from_secs(120);

async fn limiter(name: &str) -> RateLimiter {
    let options = StackOptions::builder()
        .snapshot_windows("hourly,daily,monthly")
        .build()
        .unwrap();
    let setup = StackSetup::new(options).code(Code::Directory(dev_functions()));
    RateLimiter::builder(name)
        .sdk_config(MiniStack::shared().aws())
        .stack(setup)
        .await
        .unwrap()
}

/// LLM-like calls of two keys of one project, with estimates that are corrected and calls that fail. Returns what was
/// really used, by entity.
async fn traffic(limiter: &RateLimiter) -> BTreeMap<&'static str, (i64, i64)> {
    let mut used: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for call in 0..40_i64 {
        let key = if call % 3 == 0 { "key-2" } else { "key-1" };
        let mut lease = limiter
            .acquire(key, "gpt-4")
            .consume("rpm", 1)
            .consume("tpm", 100)
            .await
            .unwrap();
        if call % 7 == 0 {
            lease.rollback().await.unwrap();
            continue;
        }
        let tokens = 40 + call * 5;
        lease.adjust("tpm", tokens - 100);
        lease.commit().await.unwrap();
        for entity in [key, "project"] {
            let entry = used.entry(entity).or_default();
            *entry = (entry.0 + 1, entry.1 + tokens);
        }
    }
    used
}

async fn usage(limiter: &RateLimiter, entity: &str, window: WindowKind) -> (i64, i64) {
    let query = UsageQuery::of_entity(entity).unwrap().resource("gpt-4").unwrap();
    let summary = limiter
        .repository()
        .get_usage_summary(&query, window)
        .await
        .unwrap();
    let total = |limit: &str| {
        summary
            .totals
            .iter()
            .find(|(name, _)| name.as_str() == limit)
            .map_or(0, |(_, n)| *n)
    };
    (total("rpm"), total("tpm"))
}

/// Polls until the response is the expected one.
async fn eventually<T: PartialEq + std::fmt::Debug>(expected: &T, mut ask: impl AsyncFnMut() -> T) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let response = ask().await;
        if response == *expected {
            return;
        }
        if Instant::now() > deadline {
            let log = MiniStack::shared().log();
            panic!(
                "{response:?} is not {expected:?}; the cloud says: {}",
                &log[log.len().saturating_sub(4000)..]
            );
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The archived events by id, as JSON.
async fn archived(bucket: &str) -> BTreeMap<String, serde_json::Value> {
    let s3 = aws_sdk_s3::Client::from_conf(
        aws_sdk_s3::config::Builder::from(&MiniStack::shared().aws())
            .force_path_style(true)
            .build(),
    );
    let listed = s3
        .list_objects_v2()
        .bucket(bucket)
        .prefix("audit/")
        .send()
        .await
        .unwrap();
    let mut events = BTreeMap::new();
    for object in listed.contents() {
        let key = object.key().unwrap();
        let body = s3
            .get_object()
            .bucket(bucket)
            .key(key)
            .send()
            .await
            .unwrap()
            .body
            .collect()
            .await
            .unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&body.into_bytes()[..])
            .read_to_string(&mut text)
            .unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1, "one event an object");
        let event: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        let id = event["event_id"].as_str().unwrap().to_owned();
        assert!(key.ends_with(&format!("{id}.jsonl.gz")), "{key}");
        events.insert(id, event);
    }
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acquired_is_counted_and_what_is_changed_is_archived() {
    let limiter = limiter("fleet").await;
    let outcome = limiter.ensure_infrastructure().await.unwrap().unwrap();
    assert_eq!(outcome.change, Change::Created);
    let bucket = outcome.outputs["AuditArchiveBucketName"].clone();

    limiter
        .repository()
        .create_entity(NewEntity::new("project"))
        .await
        .unwrap();
    for key in ["key-1", "key-2"] {
        limiter
            .repository()
            .create_entity(NewEntity::new(key).parent("project").cascade(true))
            .await
            .unwrap();
    }
    let limits = [
        Limit::per_minute("rpm", 10_000).unwrap(),
        Limit::per_minute("tpm", 1_000_000).unwrap(),
    ];
    limiter
        .repository()
        .set_resource_defaults("gpt-4", limits)
        .await
        .unwrap();

    let used = traffic(&limiter).await;
    limiter.settled().await;
    for (entity, expected) in &used {
        for window in [WindowKind::Hourly, WindowKind::Daily, WindowKind::Monthly] {
            eventually(expected, async || usage(&limiter, entity, window).await).await;
        }
    }

    let mut written = Vec::new();
    for subject in ["project", "key-1", "key-2", "$RESOURCE:gpt-4", "$SYSTEM"] {
        let subject: AuditSubject = subject.parse().unwrap();
        let page = limiter
            .repository()
            .list_audit_events(&subject, &PageRequest::default())
            .await
            .unwrap();
        written.extend(page.items.into_iter().map(|event| event.id.to_string()));
    }
    written.sort();
    assert!(written.len() >= 4, "{written:?}");
    eventually(&written, async || {
        archived(&bucket).await.into_keys().collect::<Vec<_>>()
    })
    .await;

    let again = limiter.ensure_infrastructure().await.unwrap().unwrap();
    assert_eq!(again.change, Change::None);
}
