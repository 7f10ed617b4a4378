//! The Python peer (0.9.1) on the same table: each reads what the other writes.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use zae_limiter::audit::AuditSubject;
use zae_limiter::{ConfigChange, ConfigLevel, ConfigOrigin, EntityChange, Limit, NewEntity, OnUnavailable};
use zae_limiter_schema::{AttributeValue, LimitSet};

use crate::store::support::{Stage, configured_resources, page, rpm, tpm};

fn python() -> PathBuf {
    let path = std::env::var_os("ZAE_TEST_PEER_PYTHON").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.venv/peer/bin/python"),
        PathBuf::from,
    );
    assert!(
        path.exists(),
        "there is no Python peer at {}: run `make setup`",
        path.display()
    );
    path
}

pub(crate) async fn peer(stage: &Stage, what: &str) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/store/peer.py");
    let mut command = Command::new(python());
    command
        .args([script, &stage.name, stage.endpoint(), what])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "the peer failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn the_peer_reads_what_we_write() {
    let stage = Stage::http();
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    let key = NewEntity::new("key-1")
        .parent("acme")
        .cascade(true)
        .name("Key")
        .metadata([("tier", "gold")]);
    repository.create_entity(key).await.unwrap();
    let change = ConfigChange::new()
        .limits([rpm(10)])
        .on_unavailable(OnUnavailable::Allow)
        .audit_retention_days(30);
    repository.set_config(&ConfigLevel::System, change).await.unwrap();
    repository
        .set_resource_defaults("gpt-4", [rpm(20).with_burst(25).unwrap()])
        .await
        .unwrap();
    repository
        .set_default_limits("key-1", [Limit::per_day("tpd", 30).unwrap()])
        .await
        .unwrap();
    repository.set_limits("key-1", "gpt-4", [rpm(1)]).await.unwrap();
    repository
        .set_limits("key-1", "gpt-4", [tpm(40), rpm(2)])
        .await
        .unwrap();
    let change = EntityChange::new().metadata([("seats", 3)]);
    let changed = repository.update_entity("key-1", change).await.unwrap();
    assert_eq!(changed.version, 2);
    let expected = json!({
        "entity": ["key-1", "Key", "acme", true, { "tier": "gold", "seats": 3 }],
        "children": ["key-1"],
        "resolved": [[["rpm", 2, 2, 2, 60], ["tpm", 40, 40, 40, 60]], "allow", "entity"],
        "default": [["tpd", 30, 30, 30, 86400]],
        "resource": [["rpm", 20, 25, 20, 60]],
        "system": [[["rpm", 10, 10, 10, 60]], "allow"],
        "resources": ["gpt-4"],
        "entity_configs": ["_default_", "gpt-4"],
        "custom": ["key-1"],
        "audit": [
            ["entity_updated", "tester", null],
            ["limits_set", "tester", "gpt-4"],
            ["limits_set", "tester", "gpt-4"],
            ["limits_set", "tester", "_default_"],
            ["entity_created", "tester", null],
        ],
        "version": "0.8.0",
    });
    let mut seen = peer(&stage, "read").await;
    // The peer keeps limits in the order in which their attributes come.
    seen["resolved"][0]
        .as_array_mut()
        .unwrap()
        .sort_by_key(|limit| limit[0].to_string());
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn we_read_what_the_peer_writes() {
    let stage = Stage::http();
    let repository = stage.repository().await;
    peer(&stage, "write").await;

    let key = repository.get_entity("key-1").await.unwrap().unwrap();
    assert_eq!(
        (
            key.name.as_str(),
            key.parent.as_ref().unwrap().as_str(),
            key.cascade
        ),
        ("Key", "acme", true)
    );
    let acme = repository.get_entity("acme").await.unwrap().unwrap();
    assert_eq!(acme.metadata["tier"], AttributeValue::S("gold".to_owned()));
    assert_eq!(
        repository.list_children("acme", &page(10)).await.unwrap().items,
        [key]
    );

    let resolved = repository.resolve_limits("key-1", "gpt-4").await.unwrap();
    let theirs = Limit::custom("tpm", 40, 40, 4, 7).unwrap();
    assert_eq!(
        (&resolved.limits, resolved.limits_from),
        (&LimitSet::new([theirs]).unwrap(), Some(ConfigOrigin::Entity))
    );
    assert_eq!(
        (resolved.on_unavailable, resolved.on_unavailable_from),
        (OnUnavailable::Allow, ConfigOrigin::System)
    );
    let other = repository.resolve_limits("key-1", "gpt-3").await.unwrap();
    assert_eq!(
        other.limits,
        LimitSet::new([Limit::per_day("tpd", 30).unwrap()]).unwrap()
    );
    let stranger = repository.resolve_limits("stranger", "gpt-4").await.unwrap();
    assert_eq!(
        stranger.limits,
        LimitSet::new([rpm(20).with_burst(25).unwrap()]).unwrap()
    );
    assert_eq!(configured_resources(&repository).await, ["_default_", "gpt-4"]);

    let events = repository
        .list_audit_events(&AuditSubject::Entity("key-1".parse().unwrap()), &page(10))
        .await
        .unwrap()
        .items;
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.action.to_string(), event.principal.clone().unwrap()))
        .collect();
    assert_eq!(
        told,
        ["limits_set", "limits_set", "entity_created"].map(|action| (action.to_owned(), "peer".to_owned()))
    );

    let scope = zae_limiter::usage::CapacityScope::Everyone;
    let capacity = repository
        .get_resource_capacity("gpt-4", "tpm", scope)
        .await
        .unwrap();
    assert_eq!((capacity.entities.len(), capacity.total_capacity), (1, 40));

    // Its entities have no version, and are changed all the same.
    let change = EntityChange::new().metadata([("seats", 3)]);
    let changed = repository.update_entity("acme", change).await.unwrap();
    assert_eq!((acme.version, changed.version), (0, 1));
    assert_eq!(changed.metadata.len(), 2);

    // And what the peer has configured is counted down when we delete it.
    repository.delete_entity("key-1").await.unwrap();
    assert!(configured_resources(&repository).await.is_empty());
}
