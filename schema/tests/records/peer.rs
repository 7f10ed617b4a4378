//! Items exactly as `zae-limiter` 0.9.1 (Python) writes them.

use serde_json::{Value, json};
use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketConfig, BucketKey, BucketWrite, Decoded, Evaluation, Incarnation, Params, Slot,
    SlotBefore, SlotIndex, TtlRule, WriteKind,
};
use zae_limiter_schema::{
    AuditAction, AuditEvent, AuditSubject, ConfigLevel, ConfigRecord, EntityConfigRegistry, EntityRecord,
    Item, LimitName, OnUnavailable, ResourceRegistry, Timestamp, UsageSnapshot, VersionRecord, WindowKind,
};

use crate::common::{entity, name, resource};
use crate::records::examples::{decoded, limits, text};

fn item(json: Value) -> Item {
    serde_json::from_value(json).unwrap()
}

/// The write that a client of ours would send with nothing to book.
fn planned(evaluation: &Evaluation<'_>) -> Option<BucketWrite> {
    let key = BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    };
    let slot = Slot {
        index: SlotIndex::new(1),
        before: SlotBefore::Empty,
        number: 1,
    };
    evaluation.write(key, &Batch::default(), slot, Incarnation::from_random(3))
}

fn peers_bucket() -> Item {
    item(json!({
        "PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#BUCKET#gpt-4"},
        "entity_id": {"S": "user-1"}, "resource": {"S": "gpt-4"},
        "rf": {"N": "1706000000000"}, "cascade": {"BOOL": true}, "parent_id": {"S": "org-1"},
        "ttl": {"N": "1706000420"},
        "GSI2PK": {"S": "RESOURCE#gpt-4"}, "GSI2SK": {"S": "BUCKET#user-1"},
        "b_rpm_tk": {"N": "99000"}, "b_rpm_cp": {"N": "100000"}, "b_rpm_bx": {"N": "100000"},
        "b_rpm_ra": {"N": "100000"}, "b_rpm_rp": {"N": "60000"}, "b_rpm_tc": {"N": "1000"},
        "b_tok_per_min_tk": {"N": "-500000"}, "b_tok_per_min_cp": {"N": "10000000"},
        "b_tok_per_min_bx": {"N": "10000000"}, "b_tok_per_min_ra": {"N": "10000000"},
        "b_tok_per_min_rp": {"N": "60000"}, "b_tok_per_min_tc": {"N": "10500000"},
    }))
}

#[test]
fn an_entity_without_a_parent() {
    let record = EntityRecord::from_item(&item(json!({
        "PK": {"S": "ENTITY#org-1"}, "SK": {"S": "#META"},
        "entity_id": {"S": "org-1"}, "name": {"S": "org-1"}, "parent_id": {"NULL": true},
        "cascade": {"BOOL": false}, "metadata": {"M": {}}, "created_at": {"S": "2026-01-31T12:34:56Z"},
    })))
    .unwrap();
    assert_eq!((record.parent, record.cascade), (None, false));
}

#[test]
fn an_entity_with_a_parent_and_metadata_of_every_kind() {
    let stored = item(json!({
        "PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#META"},
        "entity_id": {"S": "user-1"}, "name": {"S": "User One"}, "parent_id": {"S": "org-1"},
        "cascade": {"BOOL": true}, "created_at": {"S": "2026-01-31T12:34:56Z"},
        "metadata": {"M": {"plan": {"S": "pro"}, "ratio": {"N": "0.5"}, "tags": {"L": [{"S": "a"}, {"NULL": true}]},
            "nested": {"M": {"deep": {"BOOL": true}}}}},
        "GSI1PK": {"S": "PARENT#org-1"}, "GSI1SK": {"S": "CHILD#user-1"},
    }));
    let record = EntityRecord::from_item(&stored).unwrap();
    assert_eq!(record.parent, Some(entity("org-1")));
    assert_eq!(record.metadata["plan"], text("pro"));
    assert_eq!(record.to_item(), stored, "we would write the very same item");
}

#[test]
fn a_bucket_and_limit_names_with_underscores() {
    let image = decoded(&Attributes::from_item(&peers_bucket()));
    assert_eq!(image.refilled_at, Timestamp::from_millis(1_706_000_000_000));
    assert_eq!((image.cascade, image.parent), (true, Some(entity("org-1"))));
    assert_eq!((image.etag, image.expires_at), (None, Some(1_706_000_420)));
    let rpm = image.limits[&name("rpm")];
    assert_eq!(
        (rpm.token_bucket.tokens, rpm.token_bucket.remainder, rpm.consumed),
        (99_000, 0, 1_000)
    );
    assert_eq!(
        rpm.token_bucket.params,
        Params::from(
            "rpm:100"
                .parse::<zae_limiter_schema::Limit>()
                .unwrap()
                .rate()
                .unwrap()
        )
    );
    assert_eq!(image.limits[&name("tok_per_min")].token_bucket.tokens, -500_000);
}

#[test]
fn a_bucket_of_the_peer_stays_readable_for_it_after_we_have_written() {
    let attributes = Attributes::from_item(&peers_bucket());
    let image = decoded(&attributes);
    let config = BucketConfig::new(
        limits(&["rpm:100", "tok_per_min:10000"]),
        Some(entity("org-1")),
        true,
        TtlRule::from_multiplier(7),
    );
    assert!(!config.matches(&image), "it has no etag of ours yet");
    let evaluation = Evaluation::parameters(&image, &config, image.refilled_at.plus_millis(1_001));
    let write = planned(&evaluation).unwrap();
    assert_eq!(write.kind, WriteKind::Reconfigure);
    let after = attributes.apply(&write.statement()).unwrap().to_item();
    for (name, value) in peers_bucket()
        .iter()
        .filter(|(name, _)| !["PK", "SK"].contains(&name.as_str()))
    {
        let now = after.get(name).unwrap_or_else(|| panic!("{name} is gone"));
        assert_eq!(
            std::mem::discriminant(now),
            std::mem::discriminant(value),
            "{name}"
        );
    }
    let added: Vec<_> = after
        .keys()
        .filter(|name| !peers_bucket().contains_key(*name))
        .collect();
    // What begins with b_ and ends in _tk or _tc would be a limit to the peer.
    assert!(
        added
            .iter()
            .all(|name| !name.ends_with("_tk") && !name.ends_with("_tc")),
        "{added:?}"
    );
    assert!(config.matches(&decoded(&Attributes::from_item(&after))));
}

#[test]
fn what_an_adjust_of_the_peer_leaves_of_an_expired_bucket_is_a_stub() {
    let stub = item(json!({
        "PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#BUCKET#gpt-4"},
        "b_rpm_tk": {"N": "-3000"}, "b_rpm_tc": {"N": "3000"},
    }));
    assert_eq!(Attributes::from_item(&stub).decode(), Ok(Decoded::Stub));
}

#[test]
fn configurations_of_all_four_levels() {
    let limit = json!({
        "l_rpm_cp": {"N": "100"}, "l_rpm_bx": {"N": "150"}, "l_rpm_ra": {"N": "100"}, "l_rpm_rp": {"N": "60"},
        "config_version": {"N": "1"},
    });
    let with = |others: Value| {
        let mut all = limit.clone();
        all.as_object_mut()
            .unwrap()
            .extend(others.as_object().unwrap().clone());
        item(all)
    };
    let user = entity("user-1");
    for (stored, level) in [
        (
            with(json!({
                "PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#CONFIG#gpt-4"},
                "entity_id": {"S": "user-1"}, "resource": {"S": "gpt-4"},
                "GSI3PK": {"S": "ENTITY_CONFIG#gpt-4"}, "GSI3SK": {"S": "user-1"},
            })),
            ConfigLevel::Entity(user.clone(), resource("gpt-4")),
        ),
        (
            with(json!({
                "PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#CONFIG#_default_"},
                "entity_id": {"S": "user-1"}, "resource": {"S": "_default_"},
                "GSI3PK": {"S": "ENTITY_CONFIG#_default_"}, "GSI3SK": {"S": "user-1"},
            })),
            ConfigLevel::EntityDefault(user),
        ),
        (
            with(json!({
                "PK": {"S": "RESOURCE#gpt-4"}, "SK": {"S": "#CONFIG"}, "resource": {"S": "gpt-4"},
            })),
            ConfigLevel::Resource(resource("gpt-4")),
        ),
        (
            with(json!({
                "PK": {"S": "SYSTEM#"}, "SK": {"S": "#CONFIG"}, "on_unavailable": {"S": "allow"},
                "audit_retention_days": {"N": "90"},
            })),
            ConfigLevel::System,
        ),
    ] {
        let record = ConfigRecord::from_item(&stored).unwrap();
        assert_eq!(record.level, level);
        assert_eq!(record.limits, limits(&["rpm:100:150"]));
        assert_eq!(record.config_version, 1);
        assert_eq!(record.unknown.len(), 0);
        assert_eq!(record.to_item(), stored, "we would write the very same item");
    }
}

#[test]
fn a_configuration_without_limits_and_one_with_a_name_that_we_refuse() {
    let system = item(json!({
        "PK": {"S": "SYSTEM#"}, "SK": {"S": "#CONFIG"}, "audit_retention_days": {"N": "30"},
    }));
    let record = ConfigRecord::from_item(&system).unwrap();
    assert!(record.limits.is_empty());
    assert_eq!(record.system.audit_retention_days, Some(30));
    assert_eq!(record.on_unavailable, None::<OnUnavailable>);
    let named_ttl = item(json!({
        "PK": {"S": "RESOURCE#gpt-4"}, "SK": {"S": "#CONFIG"}, "resource": {"S": "gpt-4"},
        "l_ttl_cp": {"N": "1"}, "l_ttl_bx": {"N": "1"}, "l_ttl_ra": {"N": "1"}, "l_ttl_rp": {"N": "1"},
    }));
    let record = ConfigRecord::from_item(&named_ttl).unwrap();
    assert!(record.limits.names().all(LimitName::is_reserved));
    assert_eq!(record.limits.len(), 1);
}

#[test]
fn both_registries() {
    let resources = ResourceRegistry::from_item(&item(json!({
        "PK": {"S": "SYSTEM#"}, "SK": {"S": "#RESOURCES"}, "resources": {"SS": ["gpt-4", "claude-3"]},
    })));
    assert_eq!(
        resources.unwrap().0,
        ["claude-3", "gpt-4"].map(str::to_owned).into()
    );
    let counts = EntityConfigRegistry::from_item(&item(json!({
        "PK": {"S": "SYSTEM#"}, "SK": {"S": "#ENTITY_CONFIG_RESOURCES"},
        "gpt-4": {"N": "2"}, "_default_": {"N": "1"}, "gone": {"N": "0"}, "below": {"N": "-1"},
    })));
    assert_eq!(
        counts.unwrap().resources().collect::<Vec<_>>(),
        ["_default_", "gpt-4"]
    );
}

#[test]
fn the_version_with_and_without_a_function() {
    let stored = |lambda: Value| {
        item(json!({
            "PK": {"S": "SYSTEM#"}, "SK": {"S": "#VERSION"},
            "schema_version": {"S": "0.8.0"}, "client_min_version": {"S": "0.0.0"}, "lambda_version": lambda,
            "updated_at": {"S": "2026-01-31T12:34:56Z"}, "updated_by": {"S": "cli:0.9.1"},
        }))
    };
    let record = VersionRecord::from_item(&stored(json!({"NULL": true}))).unwrap();
    assert_eq!(record.schema_version, VersionRecord::SCHEMA_VERSION);
    assert_eq!(record.lambda_version, None);
    let record = VersionRecord::from_item(&stored(json!({"S": "0.9.1"}))).unwrap();
    assert_eq!(record.lambda_version.as_deref(), Some("0.9.1"));
}

#[test]
fn audit_events_of_every_subject() {
    for (subject, expected, about) in [
        (
            "user-1",
            AuditSubject::Entity(entity("user-1")),
            json!({"S": "gpt-4"}),
        ),
        (
            "$RESOURCE:gpt-4",
            AuditSubject::Resource(resource("gpt-4")),
            json!({"S": "gpt-4"}),
        ),
        ("$SYSTEM", AuditSubject::System, json!({"NULL": true})),
    ] {
        let stored = item(json!({
            "PK": {"S": format!("AUDIT#{subject}")}, "SK": {"S": "#AUDIT#01ARYZ6S410000000000000000"},
            "entity_id": {"S": subject}, "event_id": {"S": "01ARYZ6S410000000000000000"},
            "timestamp": {"S": "2016-07-30T22:36:16Z"}, "action": {"S": "limits_set"},
            "principal": {"NULL": true}, "resource": about, "ttl": {"N": "1477694176"},
            "details": {"M": {"limits": {"L": [{"M": {"name": {"S": "rpm"}, "capacity": {"N": "100"},
                "burst": {"N": "100"}, "refill_amount": {"N": "100"}, "refill_period_seconds": {"N": "60"}}}]}}},
        }));
        let event = AuditEvent::from_item(&stored).unwrap();
        assert_eq!(
            (&event.subject, &event.action),
            (&expected, &AuditAction::LimitsSet)
        );
        assert_eq!(event.id.timestamp(), Timestamp::from_millis(1_469_918_176_385));
        assert_eq!(event.to_item(), stored, "we would write the very same item");
    }
}

#[test]
fn a_day_under_the_key_of_its_first_hour() {
    let stored = item(json!({
        "PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#USAGE#gpt-4#2026-01-01T00:00:00Z"},
        "entity_id": {"S": "user-1"}, "resource": {"S": "gpt-4"},
        "window": {"S": "daily"}, "window_start": {"S": "2026-01-01T00:00:00Z"},
        "rpm": {"N": "12"}, "tpm": {"N": "-3"}, "total_events": {"N": "24"},
        "GSI2PK": {"S": "RESOURCE#gpt-4"}, "GSI2SK": {"S": "USAGE#2026-01-01T00:00:00Z#user-1"},
        "ttl": {"N": "1775000000"},
    }));
    let usage = UsageSnapshot::from_item(&stored).unwrap();
    assert_eq!(usage.window.kind(), WindowKind::Daily);
    assert_eq!(usage.counters, [(name("rpm"), 12), (name("tpm"), -3)].into());
    assert_eq!((usage.total_events, usage.progress), (24, None));
}
