//! A table that an earlier commit wrote, as `earlier/table.json`: the last one before the client was rebuilt, b6d4ea6f. Two of its
//! processes made calls on it, and its aggregator counted the usage. `earlier/writes.json` has the writes that the same processes sent
//! afterwards.
//!
//! The table is at 12:00:18.5 of [`DAY`]. `key-1` and its parents `team-1` and `acme` have consumed 17 of `rpm` and 8,300 of `tpm`; `key-2`,
//! which does not cascade, owes 2,000 of `tpm`; `loner` has a bucket with the limits of a call.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::audit::AuditSubject;
use zae_limiter::usage::{UsageQuery, WindowKind};
use zae_limiter::versions::{Compatibility, Migrate};
use zae_limiter::{
    ConfigLevel, ConfigOrigin, Error, Limit, OnUnavailable, PageRequest, RateLimiter, Repository, Timestamp,
};
use zae_limiter_schema::{Item, LimitSet};

use crate::store::peer::peer;
use crate::store::support::{Stage, configured_resources, page, rpm, to_sdk, tpm};

const DAY: &str = "2026-11-18T12:00:00Z";
const LEVELS: [&str; 3] = ["key-1", "team-1", "acme"];

type SdkItem = HashMap<String, AttributeValue>;

/// The table of this stage becomes the one of the earlier commit. A limiter on it starts when the earlier processes end.
async fn earlier(stage: &Stage) -> RateLimiter {
    stage
        .clock
        .set(Timestamp::parse(DAY).unwrap().plus_millis(18_500));
    stage.repository().await;
    let items: Vec<Item> = serde_json::from_str(include_str!("earlier/table.json")).unwrap();
    assert_eq!(items.len(), 54);
    stage.put(items).await;
    stage.limiter().await
}

/// All items of the table, by key.
async fn all_items(stage: &Stage) -> HashMap<(String, String), SdkItem> {
    let client = stage.client().await;
    let scan = client.scan().table_name(&stage.name).consistent_read(true).send();
    let items = scan.await.unwrap().items.unwrap();
    let text = |item: &SdkItem, name: &str| item[name].as_s().unwrap().clone();
    items
        .into_iter()
        .map(|item| ((text(&item, "PK"), text(&item, "SK")), item))
        .collect()
}

/// The bucket of an entity, as anybody would see it.
async fn bucket(stage: &Stage, entity: &str) -> SdkItem {
    stage
        .item(&format!("ENTITY#{entity}"), "#BUCKET#gpt-4")
        .await
        .unwrap()
}

fn number(item: &SdkItem, name: &str) -> i64 {
    item[name].as_n().unwrap().parse().unwrap()
}

/// What was consumed of `rpm` and `tpm`.
async fn consumed(stage: &Stage, entity: &str) -> (i64, i64) {
    let item = bucket(stage, entity).await;
    (
        number(&item, "b_rpm_tc") / 1_000,
        number(&item, "b_tpm_tc") / 1_000,
    )
}

async fn take(limiter: &RateLimiter, entity: &str, tokens: u64) -> Result<(), Error> {
    let call = limiter.acquire(entity, "gpt-4").consume("rpm", 1);
    call.consume("tpm", tokens).commit().await
}

#[tokio::test]
async fn a_table_of_an_earlier_commit_is_read() {
    let stage = Stage::memory();
    let limiter = earlier(&stage).await;
    let repository = limiter.repository();
    assert_eq!(
        repository.get_compatibility().await.unwrap(),
        Some(Compatibility::Compatible)
    );

    let key = repository.get_entity("key-1").await.unwrap().unwrap();
    assert_eq!(
        (
            key.name.as_str(),
            key.parent.as_ref().unwrap().as_str(),
            key.cascade,
            key.version
        ),
        ("Key", "team-1", true, 2)
    );
    assert_eq!(repository.get_entity("gone").await.unwrap(), None);
    let children = repository.list_children("team-1", &page(10)).await.unwrap();
    let children: Vec<_> = children.items.iter().map(|child| child.id.as_str()).collect();
    assert_eq!(children, ["key-1", "key-2"]);

    let resource = [rpm(20).with_burst(25).unwrap(), tpm(4_000)];
    for (entity, on, limits, from) in [
        (
            "key-1",
            "gpt-4",
            vec![rpm(600), tpm(60_000)],
            ConfigOrigin::Entity,
        ),
        (
            "key-1",
            "embeddings",
            vec![Limit::per_day("tpd", 1_000_000).unwrap()],
            ConfigOrigin::EntityDefault,
        ),
        ("key-2", "gpt-4", resource.to_vec(), ConfigOrigin::Resource),
        (
            "loner",
            "gpt-3",
            vec![rpm(100), tpm(10_000)],
            ConfigOrigin::System,
        ),
    ] {
        let resolved = repository.resolve_limits(entity, on).await.unwrap();
        assert_eq!(
            (&resolved.limits, resolved.limits_from),
            (&LimitSet::new(limits).unwrap(), Some(from)),
            "{entity} on {on}"
        );
        assert_eq!(resolved.on_unavailable, OnUnavailable::Allow);
    }
    assert_eq!(configured_resources(repository).await, ["_default_", "gpt-4"]);
    let system = repository
        .get_config(&ConfigLevel::System)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(system.system.audit_retention_days, Some(30));

    let actions = async |entity: &str| -> Vec<String> {
        let subject = AuditSubject::Entity(entity.parse().unwrap());
        let events = repository.list_audit_events(&subject, &page(10)).await.unwrap();
        let mut actions: Vec<_> = events
            .items
            .iter()
            .map(|event| event.action.to_string())
            .collect();
        actions.sort();
        actions
    };
    assert_eq!(
        actions("key-1").await,
        ["entity_created", "entity_updated", "limits_set", "limits_set"]
    );
    assert_eq!(actions("gone").await, ["entity_created", "entity_deleted"]);

    for window in WindowKind::ALL {
        for entity in LEVELS {
            let query = UsageQuery::of_entity(entity).unwrap().resource("gpt-4").unwrap();
            let usage = repository.get_usage_summary(&query, window).await.unwrap();
            assert_eq!(
                (usage.totals["rpm"], usage.totals["tpm"]),
                (17, 8_300),
                "{entity} {window:?}"
            );
            assert_eq!(usage.total_events, 20);
        }
    }
    assert_eq!(
        buckets(repository, "key-1").await,
        ["embeddings: 1 writers", "gpt-4: 2 writers"]
    );
    assert_eq!(
        buckets(repository, "loner").await,
        ["gpt-3: 1 writers", "search: 1 writers"]
    );
}

/// The buckets of an entity, and how many processes wrote them.
async fn buckets(repository: &Repository, entity: &str) -> Vec<String> {
    let buckets = repository
        .list_buckets(entity, &PageRequest::new(10))
        .await
        .unwrap();
    let shown = buckets
        .items
        .iter()
        .map(|bucket| format!("{}: {} writers", bucket.resource, bucket.writers.len()));
    shown.collect()
}

#[tokio::test]
async fn a_table_of_an_earlier_commit_is_migrated_without_a_change() {
    let stage = Stage::memory();
    let limiter = earlier(&stage).await;
    let repository = limiter.repository();
    let before = all_items(&stage).await;
    let pending = repository.migrate(Migrate::pending()).await.unwrap();
    assert!(pending.steps.is_empty(), "the format is the same: {pending:?}");
    let all = Migrate::pending().from("0.7.0".parse().unwrap());
    let report = repository.migrate(all).await.unwrap();
    assert!(!report.steps.is_empty());
    for step in report.steps {
        assert_eq!(
            (step.found, step.written, step.removed, step.problems),
            (0, 0, 0, vec![]),
            "{}",
            step.name
        );
    }
    let mut after = all_items(&stage).await;
    let version = ("SYSTEM#".to_owned(), "#VERSION".to_owned());
    let record = after.insert(version.clone(), before[&version].clone()).unwrap();
    assert_eq!(record["schema_version"], before[&version]["schema_version"]);
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_table_of_an_earlier_commit_is_used() {
    let stage = Stage::memory();
    let limiter = earlier(&stage).await;
    let before = bucket(&stage, "key-1").await;
    for _ in 0..10 {
        take(&limiter, "key-1", 100).await.unwrap();
    }
    for entity in LEVELS {
        assert_eq!(consumed(&stage, entity).await, (27, 9_300), "{entity}");
    }
    // The bucket is not created again: it keeps its etag and the numbers of the earlier processes.
    let after = bucket(&stage, "key-1").await;
    assert_eq!(after["cf"], before["cf"]);
    let slots = |item: &SdkItem| item.keys().filter(|name| name.starts_with("o_")).count();
    assert_eq!((slots(&before), slots(&after)), (2, 3));
    for slot in before.keys().filter(|name| name.starts_with("o_")) {
        assert_eq!(after[slot], before[slot]);
    }

    // Debt is a debt: 300 of 2,000 tokens have come back at 12:00:18.5, and the rest in 26 seconds more.
    let refused = take(&limiter, "key-2", 1).await.unwrap_err();
    let Error::Refused(refusal) = refused else {
        panic!("{refused}")
    };
    assert_eq!(
        refusal
            .statuses()
            .iter()
            .find(|status| status.refused)
            .unwrap()
            .available,
        -1_700
    );
    stage.clock.advance(Duration::from_secs(26));
    take(&limiter, "key-2", 1).await.unwrap();

    // Limits of a call stay on its bucket.
    let pages = |tokens| {
        limiter
            .acquire("loner", "search")
            .limits([Limit::per_hour("pages", 50).unwrap()])
            .consume("pages", tokens)
    };
    let left = pages(1).peek().await.unwrap().tokens("pages");
    assert_eq!(left, Some(43));
    pages(43).commit().await.unwrap();
    assert!(matches!(pages(1).commit().await, Err(Error::Refused(_))));
}

#[tokio::test]
async fn a_bucket_of_an_earlier_commit_gets_new_kinds_of_limits_and_keeps_its_counts() {
    let stage = Stage::memory();
    let limiter = earlier(&stage).await;
    let limits = [
        "rpm:600",
        "tpm:60000",
        "spend:10 per month",
        "parallel:2 at once for 1min",
    ];
    let limits = limits.map(|limit| limit.parse::<Limit>().unwrap());
    limiter
        .repository()
        .set_limits("key-1", "gpt-4", limits)
        .await
        .unwrap();
    let call = |amount| {
        let call = limiter.acquire("key-1", "gpt-4").consume("rpm", 1);
        call.consume("spend", amount).consume("parallel", 1)
    };
    let first = call(4).await.unwrap();
    let second = call(6).await.unwrap();
    assert!(matches!(call(1).await, Err(Error::Refused(_))));
    first.commit().await.unwrap();
    second.rollback().await.unwrap();
    limiter.settled().await;
    assert_eq!(consumed(&stage, "key-1").await, (18, 8_300));
    assert_eq!(consumed(&stage, "team-1").await, (18, 8_300));
    let item = bucket(&stage, "key-1").await;
    assert_eq!(
        (number(&item, "q_spend_us"), number(&item, "c_parallel_n")),
        (4_000, 0)
    );
}

/// Sends a recorded write of an earlier process. True if its condition holds.
async fn sends(stage: &Stage, write: &serde_json::Value) -> bool {
    let part = |name: &str| -> SdkItem {
        let item: Item = serde_json::from_value(write[name].clone()).unwrap();
        to_sdk(item)
    };
    let text = |name: &str| write[name].as_str().unwrap();
    let names: HashMap<String, String> =
        serde_json::from_value(write["ExpressionAttributeNames"].clone()).unwrap();
    let client = stage.client().await;
    let sent = client
        .update_item()
        .table_name(&stage.name)
        .set_key(Some(part("Key")))
        .update_expression(text("UpdateExpression"))
        .condition_expression(text("ConditionExpression"))
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(part("ExpressionAttributeValues")))
        .send()
        .await;
    match sent {
        Ok(_) => true,
        Err(error) => {
            let refused = error.into_service_error().is_conditional_check_failed_exception();
            assert!(refused, "{write}");
            false
        }
    }
}

fn writes() -> Vec<serde_json::Value> {
    serde_json::from_str(include_str!("earlier/writes.json")).unwrap()
}

/// What a recorded write adds to the counts of `rpm` and `tpm`.
fn counts(write: &serde_json::Value) -> (i64, i64) {
    let names = write["ExpressionAttributeNames"].as_object().unwrap();
    let count = |attribute: &str| -> i64 {
        let found = names.iter().find(|(_, name)| name.as_str() == Some(attribute));
        found.map_or(0, |(placeholder, _)| {
            let value = placeholder.replace('#', ":");
            let digits = write["ExpressionAttributeValues"][value.as_str()]["N"].as_str();
            digits.unwrap().parse::<i64>().unwrap() / 1_000
        })
    };
    (count("b_rpm_tc"), count("b_tpm_tc"))
}

/// Six calls of two processes, on three levels, each of two writes. A write whose condition no longer holds after a call of ours
/// changes nothing; its process would plan another one.
#[tokio::test]
async fn processes_of_an_earlier_commit_go_on_beside_ours() {
    let stage = Stage::memory();
    let limiter = earlier(&stage).await;
    let writes = writes();
    assert_eq!(writes.len(), 36);
    let mut theirs: HashMap<String, (i64, i64)> = HashMap::new();
    let (mut accepted, mut ours) = (0, 0);
    for (at, write) in writes.iter().enumerate() {
        if sends(&stage, write).await {
            let (requests, tokens) = counts(write);
            let key = write["Key"]["PK"]["S"].as_str().unwrap();
            let sum = theirs.entry(key.to_owned()).or_default();
            *sum = (sum.0 + requests, sum.1 + tokens);
            accepted += 1;
        }
        // The first three refill the buckets as they were.
        if at > 2 && at % 2 == 1 {
            take(&limiter, "key-1", 50).await.unwrap();
            ours += 1;
        }
    }
    assert!(accepted > 4, "none was accepted after a call of ours");
    for entity in LEVELS {
        let (requests, tokens) = theirs[&format!("ENTITY#{entity}")];
        let expected = (17 + ours + requests, 8_300 + 50 * ours + tokens);
        assert_eq!(consumed(&stage, entity).await, expected, "{entity}");
    }
}

/// An earlier process does not know the quota. Its writes require the etag of the configuration that it knows.
#[tokio::test]
async fn a_write_of_an_earlier_process_is_refused_once_the_bucket_has_a_quota() {
    let stage = Stage::memory();
    let limiter = earlier(&stage).await;
    let writes = writes();
    let (first, second) = writes.split_at(18);
    for write in first {
        assert!(sends(&stage, write).await, "{write}");
    }
    let limits = ["rpm:600", "tpm:60000", "spend:1 per month"].map(|limit| limit.parse::<Limit>().unwrap());
    limiter
        .repository()
        .set_limits("key-1", "gpt-4", limits)
        .await
        .unwrap();
    let call = limiter.acquire("key-1", "gpt-4").consume("rpm", 1);
    call.consume("spend", 1).commit().await.unwrap();
    let before = consumed(&stage, "key-1").await;
    for write in second
        .iter()
        .filter(|write| write["Key"]["PK"]["S"] == "ENTITY#key-1")
    {
        assert!(!sends(&stage, write).await, "{write}");
    }
    assert_eq!(consumed(&stage, "key-1").await, before);
}

#[tokio::test]
async fn the_python_package_goes_on_with_a_table_of_an_earlier_commit() {
    let stage = Stage::http();
    let limiter = earlier(&stage).await;
    let seen = peer(&stage, "read").await;
    assert_eq!(seen["entity"][0], "key-1");
    assert_eq!(seen["children"], serde_json::json!(["team-1"]));
    assert_eq!(seen["version"], "0.8.0");
    take(&limiter, "key-1", 100).await.unwrap();
    let used = peer(&stage, "use").await;
    assert_eq!(used, serde_json::json!({ "admitted": 3 }));
    take(&limiter, "key-1", 100).await.unwrap();
    // It charges the parent, and not the parent of that.
    for (entity, theirs) in LEVELS.iter().zip([(3, 45), (3, 45), (0, 0)]) {
        let expected = (17 + 2 + theirs.0, 8_300 + 200 + theirs.1);
        assert_eq!(consumed(&stage, entity).await, expected, "{entity}");
    }
}
