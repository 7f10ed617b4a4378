//! A malformed item gives an error that names the attribute at fault.

use zae_limiter_schema::bucket::Attributes;
use zae_limiter_schema::{
    AttributeValue, AuditEvent, ConfigRecord, EntityConfigRegistry, EntityRecord, Item, Malformed,
    ResourceRegistry, UsageSnapshot, VersionRecord, WindowKind,
};

use crate::records::examples::{self, decoded, number, text};

/// The attribute that a decoder blames after one attribute of a good item was replaced.
fn blamed<T: std::fmt::Debug>(
    item: &Item,
    attribute: &str,
    value: AttributeValue,
    decode: impl Fn(&Item) -> Result<T, Malformed>,
) -> String {
    let mut item = item.clone();
    decode(&item).unwrap_or_else(|error| panic!("the example itself is malformed: {error}"));
    item.inner_mut().insert(attribute.to_owned(), value);
    decode(&item).unwrap_err().attribute
}

/// Each of the attributes, replaced by a value of no type that any of ours has, is blamed itself.
fn each_is_blamed<T: std::fmt::Debug>(
    item: &Item,
    attributes: &[&str],
    decode: impl Fn(&Item) -> Result<T, Malformed>,
) {
    for attribute in attributes {
        let value = AttributeValue::B(vec![1]);
        assert_eq!(&blamed(item, attribute, value, &decode), attribute);
    }
}

#[test]
fn entities() {
    let item = examples::entity_child().to_item();
    each_is_blamed(
        &item,
        &[
            "entity_id",
            "name",
            "parent_id",
            "cascade",
            "metadata",
            "created_at",
        ],
        EntityRecord::from_item,
    );
    assert_eq!(
        blamed(&item, "entity_id", text("a#b"), EntityRecord::from_item),
        "entity_id"
    );
    assert_eq!(
        blamed(&item, "created_at", text("yesterday"), EntityRecord::from_item),
        "created_at"
    );
}

#[test]
fn configurations() {
    let [(_, entity), _, (_, resource), (_, system)] = examples::configs();
    each_is_blamed(
        &system.to_item(),
        &[
            "PK",
            "SK",
            "on_unavailable",
            "config_version",
            "audit_retention_days",
            "auto_update",
            "strict_version",
            "l_rpm_cp",
            "l_rpm_bx",
            "l_rpm_ra",
            "l_rpm_rp",
        ],
        ConfigRecord::from_item,
    );
    let item = resource.to_item();
    each_is_blamed(
        &item,
        &[
            "p_usd", "p_tok", "p_in", "p_out", "p_cr", "p_cw", "p_call", "p_est", "p_max",
        ],
        ConfigRecord::from_item,
    );
    let too_much = || number(1_000_000_000_001);
    for attribute in ["p_in", "p_call", "p_est", "p_max"] {
        assert_eq!(
            blamed(&item, attribute, too_much(), ConfigRecord::from_item),
            attribute
        );
    }
    let names = AttributeValue::Ss(vec!["9".to_owned()]);
    assert_eq!(blamed(&item, "p_tok", names, ConfigRecord::from_item), "p_tok");
    let item = entity.to_item();
    let blamed = |attribute, value| blamed(&item, attribute, value, ConfigRecord::from_item);
    assert_eq!(blamed("l_tpm_bx", number(9)), "l_tpm_bx", "below the capacity");
    assert_eq!(blamed("l_tpm_ra", number(0)), "l_tpm_ra");
    assert_eq!(blamed("l_tpm_rp", number(0)), "l_tpm_rp");
    assert_eq!(blamed("l_tpm_cp", number(-1)), "l_tpm_cp");
    assert_eq!(
        blamed("l_tpm_cp", AttributeValue::N("1.5".to_owned())),
        "l_tpm_cp"
    );
    assert_eq!(blamed("l_9_cp", number(1)), "l_9_cp", "no name of a limit");
    assert_eq!(blamed("l_new_cp", number(1)), "l_new_bx", "which is missing");
    assert_eq!(blamed("on_unavailable", text("perhaps")), "on_unavailable");
    assert_eq!(blamed("mode", text("off")), "mode");
    assert_eq!(blamed("mode", number(1)), "mode");
    assert_eq!(blamed("PK", text("ENTITY#a#b")), "PK");
    assert_eq!(blamed("SK", text("#CONFIG#9")), "SK");
    assert_eq!(blamed("SK", text("#META")), "SK");
}

#[test]
fn versions() {
    let attributes = [
        "schema_version",
        "client_min_version",
        "lambda_version",
        "updated_at",
        "updated_by",
    ];
    each_is_blamed(
        &examples::version().to_item(),
        &attributes,
        VersionRecord::from_item,
    );
}

#[test]
fn audit_events() {
    let attributes = [
        "event_id",
        "entity_id",
        "timestamp",
        "action",
        "principal",
        "resource",
        "details",
        "ttl",
    ];
    for (_, event) in examples::audit_events() {
        each_is_blamed(&event.to_item(), &attributes, AuditEvent::from_item);
    }
    let item = examples::audit_events()[0].1.to_item();
    let blamed = |attribute, value| blamed(&item, attribute, text(value), AuditEvent::from_item);
    assert_eq!(blamed("event_id", "not a ulid"), "event_id");
    assert_eq!(blamed("entity_id", "$RESOURCE:"), "entity_id");
    assert_eq!(blamed("entity_id", "$OTHER"), "entity_id");
}

#[test]
fn usage_snapshots() {
    let item = examples::usage(WindowKind::Hourly).to_item();
    let attributes = [
        "entity_id",
        "resource",
        "window",
        "window_start",
        "total_events",
        "ttl",
        "_sq",
        "_sa",
    ];
    each_is_blamed(&item, &attributes, UsageSnapshot::from_item);
    let blamed = |attribute, value| blamed(&item, attribute, value, UsageSnapshot::from_item);
    assert_eq!(blamed("window", text("weekly")), "window");
    assert_eq!(blamed("rpm", AttributeValue::N("1.5".to_owned())), "rpm");
    assert_eq!(
        blamed("window_start", text("2026-01-01T00:30:00Z")),
        "window_start",
        "no hour starts then"
    );
}

#[test]
fn registries() {
    let resources = examples::resource_registry().to_item();
    each_is_blamed(&resources, &["resources"], ResourceRegistry::from_item);
    let counts = examples::entity_config_registry().to_item();
    let half = AttributeValue::N("0.5".to_owned());
    assert_eq!(
        blamed(&counts, "gpt-4", half, EntityConfigRegistry::from_item),
        "gpt-4"
    );
}

#[test]
fn buckets() {
    let item = examples::bucket_settled();
    let decode = |item: &Item| Attributes::from_item(item).decode();
    let attributes = [
        "rf",
        "cf",
        "ev",
        "ttl",
        "parent_id",
        "b_rpm_tk",
        "b_rpm_cp",
        "b_rpm_bx",
        "b_rpm_ra",
        "b_rpm_rp",
        "b_rpm_tc",
        "b_rpm_rr",
    ];
    each_is_blamed(&item, &attributes, decode);
    let blamed = |attribute, value| blamed(&item, attribute, value, decode);
    assert_eq!(blamed("rf", number(-1)), "rf");
    assert_eq!(blamed("b_rpm_rp", number(1_000_000_000_001)), "b_rpm_rp");
    assert_eq!(blamed("b_rpm_bx", number(1_000_000_000_000_000_001)), "b_rpm_bx");
    assert_eq!(blamed("parent_id", text("a#b")), "parent_id");
    let huge = AttributeValue::N(format!("-1{}", "0".repeat(24) + "0"));
    assert_eq!(blamed("b_rpm_tk", huge), "b_rpm_tk");
}

#[test]
fn a_limit_of_a_bucket_that_lacks_a_parameter_or_has_one_of_zero_is_blamed() {
    for attribute in ["b_tpm_cp", "b_tpm_bx", "b_tpm_ra", "b_tpm_rp"] {
        let mut item = examples::bucket_settled();
        item.inner_mut().remove(attribute);
        let blamed = |item: &Item| Attributes::from_item(item).decode().unwrap_err();
        assert_eq!(blamed(&item).attribute, attribute);
        assert_eq!(blamed(&item).reason, "is missing");
        item.inner_mut().insert(attribute.to_owned(), number(0));
        assert_eq!(blamed(&item).attribute, attribute);
    }
}

#[test]
fn a_limit_of_a_bucket_without_any_parameter_is_broken_and_the_rest_is_usable() {
    let mut item = examples::bucket_settled();
    for attribute in ["b_tpm_cp", "b_tpm_bx", "b_tpm_ra", "b_tpm_rp"] {
        item.inner_mut().remove(attribute);
    }
    let image = decoded(&Attributes::from_item(&item));
    assert!(image.broken.contains("tpm") && image.limits.contains_key("rpm"));
}

#[test]
fn an_error_says_what_kind_of_record_it_was() {
    let error = VersionRecord::from_item(&Item::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "malformed version in the table: attribute \"schema_version\" is missing"
    );
}
