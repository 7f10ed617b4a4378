//! Every record as DynamoDB JSON. These files are what other processes, and the peer, read.

use zae_limiter_schema::WindowKind;

use crate::records::examples;

/// One file a record, attributes sorted.
macro_rules! snapshot {
    ($name:expr, $item:expr) => {
        insta::with_settings!({ sort_maps => true, omit_expression => true }, {
            insta::assert_json_snapshot!($name, $item);
        })
    };
}

#[test]
fn entities() {
    snapshot!("entity", examples::entity_alone().to_item());
    snapshot!("entity_with_parent", examples::entity_child().to_item());
}

#[test]
fn buckets() {
    snapshot!("bucket_new", examples::bucket_new());
    snapshot!("bucket_settled", examples::bucket_settled());
}

#[test]
fn configurations_of_all_four_levels() {
    for (level, record) in examples::configs() {
        snapshot!(format!("config_{level}"), record.to_item());
    }
}

#[test]
fn registries() {
    snapshot!("registry_of_resources", examples::resource_registry().to_item());
    snapshot!(
        "registry_of_entity_configs",
        examples::entity_config_registry().to_item()
    );
}

#[test]
fn the_version() {
    snapshot!("version", examples::version().to_item());
}

#[test]
fn audit_events_of_every_action_and_subject() {
    for (name, event) in examples::audit_events() {
        snapshot!(format!("audit_{name}"), event.to_item());
    }
}

#[test]
fn usage_of_an_hour_a_day_and_a_month() {
    for kind in WindowKind::ALL {
        snapshot!(format!("usage_{kind}"), examples::usage(kind).to_item());
    }
}
