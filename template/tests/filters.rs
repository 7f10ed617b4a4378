//! The filters, on stream records of items as they are really written.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zae_limiter_schema::keys::{self, Key};
use zae_limiter_schema::{
    AttributeValue, AuditAction, AuditEvent, AuditSubject, ConfigLevel, EntityId, EntityRecord, Item,
    Resource, Timestamp, Ulid, UsageSnapshot, VersionRecord, WindowKind,
};
use zae_limiter_template::filters;

const CHANGES: [&str; 3] = ["INSERT", "MODIFY", "REMOVE"];

fn record(change: &str, key: &Key) -> Value {
    json!({ "eventName": change, "dynamodb": { "Keys": { "PK": { "S": key.pk }, "SK": { "S": key.sk } } } })
}

fn key_of(item: &Item) -> Key {
    let text = |name: &str| match item.get(name) {
        Some(AttributeValue::S(text)) => text.clone(),
        other => unreachable!("{name} is {other:?}"),
    };
    Key {
        pk: text("PK"),
        sk: text("SK"),
    }
}

fn audit_event(subject: AuditSubject) -> Key {
    let event = AuditEvent {
        id: Ulid::parse("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap(),
        subject,
        timestamp: Timestamp::from_seconds(0),
        action: AuditAction::LimitsSet,
        principal: None,
        resource: None,
        details: BTreeMap::new(),
        ttl: None,
        unknown: BTreeMap::new(),
    };
    key_of(&event.to_item())
}

fn changes_that_reach(matches: impl Fn(&Value) -> bool, key: &Key) -> Vec<&'static str> {
    CHANGES
        .into_iter()
        .filter(|change| matches(&record(change, key)))
        .collect()
}

fn reach(key: &Key) -> (Vec<&'static str>, Vec<&'static str>) {
    let (aggregator, archiver) = (filters::aggregator(), filters::archiver());
    (
        changes_that_reach(|record| aggregator.matches(record), key),
        changes_that_reach(|record| archiver.matches(record), key),
    )
}

fn entity() -> EntityId {
    EntityId::parse("user-1").unwrap()
}

fn resource() -> Resource {
    Resource::parse("openai/gpt-4").unwrap()
}

#[test]
fn buckets_that_are_created_or_changed_go_to_the_aggregator() {
    assert_eq!(
        reach(&keys::bucket(&entity(), &resource())),
        (vec!["INSERT", "MODIFY"], vec![])
    );
}

#[test]
fn audit_events_that_are_written_go_to_the_archiver() {
    for subject in [
        AuditSubject::Entity(entity()),
        AuditSubject::System,
        AuditSubject::Resource(resource()),
    ] {
        assert_eq!(
            reach(&audit_event(subject.clone())),
            (vec![], vec!["INSERT"]),
            "{subject}"
        );
    }
}

#[test]
fn everything_else_goes_to_nobody() {
    let window = WindowKind::Daily.window_at(Timestamp::from_seconds(0));
    let snapshot = UsageSnapshot {
        entity: entity(),
        resource: resource(),
        window,
        counters: BTreeMap::new(),
        total_events: 1,
        refusals: 0,
        observed: 0,
        thresholds: BTreeMap::new(),
        ttl: None,
        progress: None,
        unknown: BTreeMap::new(),
    };
    let meta = EntityRecord {
        id: entity(),
        name: "a user".to_owned(),
        parent: None,
        cascade: false,
        metadata: BTreeMap::new(),
        created_at: Timestamp::from_seconds(0),
        version: 1,
        unknown: BTreeMap::new(),
    };
    let version = VersionRecord::current(Timestamp::from_seconds(0), "client:0.1.0");
    let others = [
        key_of(&snapshot.to_item()),
        key_of(&meta.to_item()),
        key_of(&version.to_item()),
        keys::config(&ConfigLevel::System),
        keys::config(&ConfigLevel::Resource(resource())),
        keys::config(&ConfigLevel::EntityDefault(entity())),
        keys::config(&ConfigLevel::Entity(entity(), resource())),
        keys::resource_registry(),
        keys::entity_config_registry(),
    ];
    for key in others {
        assert_eq!(reach(&key), (vec![], vec![]), "{key:?}");
    }
}
