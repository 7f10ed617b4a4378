//! What is written is read back as it was, and whatever is read never panics.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zae_limiter_schema::bucket::{Attr, Attributes, Scalar};
use zae_limiter_schema::{
    AttributeValue, AuditAction, AuditEvent, AuditSubject, ConfigLevel, ConfigRecord, EntityConfigRegistry,
    EntityRecord, Item, LimitSet, Mode, OnUnavailable, Progress, ResourceRegistry, SystemSettings,
    TemporaryLimits, Timestamp, Ulid, Unknown, UsageSnapshot, Version, VersionRecord, WindowKind, keys,
};

use crate::common::{
    any_item, any_limit, attribute_value, config, entity_id, limit_name, put_limit, resource_name, second,
    token_bucket,
};

/// Attributes of a newer version: no name of ours starts like this, and no limit's.
fn unknown() -> impl Strategy<Value = Unknown> {
    proptest::collection::btree_map("_x[a-zA-Z0-9_.]{0,8}", attribute_value(), 0..3)
}

fn map() -> impl Strategy<Value = BTreeMap<String, AttributeValue>> {
    proptest::collection::btree_map(".{0,8}", attribute_value(), 0..4)
}

fn limits() -> impl Strategy<Value = LimitSet> {
    proptest::collection::btree_map(limit_name(), any_limit(), 0..4)
        .prop_map(|limits| LimitSet::new(limits.into_values()).unwrap_or_default())
}

fn optional_text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(".{0,12}")
}

fn entity() -> impl Strategy<Value = EntityRecord> {
    let parent = proptest::option::of(entity_id());
    (
        entity_id(),
        ".{0,12}",
        parent,
        any::<bool>(),
        map(),
        second(),
        any::<u64>(),
        unknown(),
    )
        .prop_map(
            |(id, name, parent, cascade, metadata, created_at, version, unknown)| EntityRecord {
                id,
                name,
                parent,
                cascade,
                metadata,
                created_at,
                version,
                unknown,
            },
        )
}

fn level() -> impl Strategy<Value = ConfigLevel> {
    prop_oneof![
        (entity_id(), resource_name()).prop_map(|(entity, resource)| ConfigLevel::Entity(entity, resource)),
        entity_id().prop_map(ConfigLevel::EntityDefault),
        resource_name().prop_map(ConfigLevel::Resource),
        Just(ConfigLevel::System),
    ]
}

fn config_record() -> impl Strategy<Value = ConfigRecord> {
    let policy = proptest::sample::select(vec![None, Some(OnUnavailable::Allow), Some(OnUnavailable::Block)]);
    let system = any::<(Option<u32>, Option<bool>, Option<bool>)>();
    let prices = proptest::option::of(crate::money::prices());
    let temporary = proptest::option::of((limits(), 0..=Timestamp::MAX.millis()));
    let limits = (limits(), temporary);
    let mode = proptest::option::of(proptest::sample::select(&Mode::ALL));
    let switches = (policy, mode);
    (level(), limits, switches, prices, any::<u64>(), system, unknown()).prop_map(
        |(level, (limits, temporary), (on_unavailable, mode), prices, config_version, system, unknown)| {
            ConfigRecord {
                level,
                limits,
                temporary: temporary.map(|(limits, until)| TemporaryLimits {
                    limits,
                    until: Timestamp::from_millis(until),
                }),
                on_unavailable,
                mode,
                prices,
                config_version,
                system: SystemSettings {
                    audit_retention_days: system.0,
                    auto_update: system.1,
                    strict_version: system.2,
                },
                unknown,
            }
        },
    )
}

fn version() -> impl Strategy<Value = VersionRecord> {
    (
        ".{0,9}",
        ".{0,9}",
        optional_text(),
        second(),
        optional_text(),
        unknown(),
    )
        .prop_map(
            |(schema_version, client_min_version, lambda_version, updated_at, updated_by, unknown)| {
                VersionRecord {
                    schema_version,
                    client_min_version,
                    lambda_version,
                    updated_at,
                    updated_by,
                    unknown,
                }
            },
        )
}

fn subject() -> impl Strategy<Value = AuditSubject> {
    prop_oneof![
        entity_id().prop_map(AuditSubject::Entity),
        resource_name().prop_map(AuditSubject::Resource),
        Just(AuditSubject::System),
    ]
}

fn audit_event() -> impl Strategy<Value = AuditEvent> {
    let id = (second(), any::<u128>()).prop_map(|(time, random)| Ulid::new(time, random));
    let action = prop_oneof![
        proptest::sample::select(vec![
            "entity_created",
            "entity_updated",
            "entity_deleted",
            "limits_set",
            "limits_deleted"
        ])
        .prop_map(str::to_owned),
        ".{0,12}",
    ];
    let texts = (optional_text(), optional_text());
    (
        id,
        subject(),
        second(),
        action,
        texts,
        map(),
        any::<Option<i64>>(),
        unknown(),
    )
        .prop_map(
            |(id, subject, timestamp, action, (principal, resource), details, ttl, unknown)| AuditEvent {
                id,
                subject,
                timestamp,
                action: AuditAction::from(action.as_str()),
                principal,
                resource,
                details,
                ttl,
                unknown,
            },
        )
}

fn usage() -> impl Strategy<Value = UsageSnapshot> {
    let window = (proptest::sample::select(WindowKind::ALL.to_vec()), second())
        .prop_map(|(kind, time)| kind.window_at(time));
    let progress = proptest::option::of((".{1,20}", optional_text(), optional_text(), optional_text()))
        .prop_map(|progress| {
            progress.map(|(sequence, newest, link, gaps)| Progress {
                sequence,
                newest,
                link,
                gaps,
            })
        });
    let counters = proptest::collection::btree_map(limit_name(), any::<i64>(), 0..4);
    let percentages = proptest::collection::btree_set(1..=100u8, 1..4);
    let thresholds = proptest::collection::btree_map(limit_name(), percentages, 0..3);
    let counts = (
        counters,
        any::<u32>(),
        any::<i64>(),
        thresholds,
        any::<Option<i64>>(),
    );
    (entity_id(), resource_name(), window, counts, progress, unknown()).prop_map(
        |(
            entity,
            resource,
            window,
            (counters, total_events, refusals, thresholds, ttl),
            progress,
            unknown,
        )| {
            UsageSnapshot {
                entity,
                resource,
                window,
                counters,
                total_events: i64::from(total_events),
                refusals,
                observed: refusals / 2,
                thresholds,
                ttl,
                progress,
                unknown,
            }
        },
    )
}

fn text_of<'a>(item: &'a Item, attribute: &str) -> &'a str {
    match item.get(attribute) {
        Some(AttributeValue::S(text)) => text,
        other => panic!("{attribute} is {other:?}"),
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn entities(record in entity()) {
        let item = record.to_item();
        prop_assert_eq!(EntityRecord::from_item(&item).unwrap(), record);
        prop_assert_eq!(item.get("GSI1PK").is_some(), item.get("parent_id") != Some(&AttributeValue::Null(true)));
    }

    #[test]
    fn configurations(record in config_record()) {
        let item = record.to_item();
        prop_assert_eq!(ConfigRecord::from_item(&item).unwrap(), record.clone());
        prop_assert_eq!(item.get("GSI3PK").is_some(), record.level.entity().is_some());
    }

    #[test]
    fn versions(record in version()) {
        prop_assert_eq!(VersionRecord::from_item(&record.to_item()).unwrap(), record);
    }

    #[test]
    fn audit_events(record in audit_event()) {
        let item = record.to_item();
        prop_assert_eq!(text_of(&item, "PK"), keys::audit_partition(&record.subject.to_string()));
        prop_assert_eq!(AuditEvent::from_item(&item).unwrap(), record);
    }

    #[test]
    fn usage_snapshots(record in usage()) {
        prop_assert_eq!(UsageSnapshot::from_item(&record.to_item()).unwrap(), record);
    }

    #[test]
    fn registries(
        names in proptest::collection::btree_set("[a-zA-Z][a-zA-Z0-9_./-]{0,12}", 0..6),
        counts in proptest::collection::btree_map(resource_name().prop_map(|name| name.to_string()), any::<i64>(), 0..6),
    ) {
        let resources = ResourceRegistry(names);
        prop_assert_eq!(ResourceRegistry::from_item(&resources.to_item()).unwrap(), resources);
        let counts = EntityConfigRegistry(counts.into_iter().map(|(name, count)| (name, i128::from(count))).collect());
        prop_assert_eq!(EntityConfigRegistry::from_item(&counts.to_item()).unwrap(), counts.clone());
        prop_assert!(counts.resources().all(|name| counts.0[name] > 0));
    }

    #[test]
    fn buckets(limits in proptest::collection::btree_map(limit_name(), (token_bucket(), any::<i64>()), 0..4), others in unknown(), rf in 0..=Timestamp::MAX.millis()) {
        let mut bucket = Attributes::default();
        bucket.insert(Attr::RefilledAt, Scalar::Number(i128::from(rf)));
        for (name, (token_bucket, consumed)) in &limits {
            put_limit(&mut bucket, name, *token_bucket, i128::from(*consumed));
        }
        let mut item = bucket.to_item();
        item.inner_mut().extend(others.clone());
        let again = Attributes::from_item(&item);
        let image = crate::records::examples::decoded(&again);
        prop_assert_eq!(image.refilled_at.millis(), rf);
        prop_assert_eq!(image.limits.len(), limits.len());
        for (name, (token_bucket, consumed)) in &limits {
            prop_assert_eq!(image.limits[name].token_bucket, *token_bucket);
            prop_assert_eq!(image.limits[name].consumed, i128::from(*consumed));
        }
        let back = again.to_item();
        for (name, value) in others.iter().filter(|(_, value)| !matches!(value, AttributeValue::N(_))) {
            prop_assert_eq!(back.get(name.as_str()), Some(value), "unknown attributes survive");
        }
    }

    #[test]
    fn attributes_of_any_item(item in any_item()) {
        let attributes = Attributes::from_item(&item);
        prop_assert_eq!(Attributes::from_item(&attributes.to_item()), attributes);
    }

    #[test]
    fn attribute_names(name in prop_oneof![".{0,20}", "[bo]_[a-z_]{0,6}_?(tk|cp|bx|ra|rp|tc|rr)?", "o_[a-z0-9]{4}"]) {
        prop_assert_eq!(Attr::parse(&name).to_string(), name);
    }

    #[test]
    fn version_numbers(text in prop_oneof![".{0,16}", "v?[0-9]{1,3}(\\.[0-9]{1,21}){1,3}(-[a-z0-9.]{0,5}|\\.dev[0-9]?)?"]) {
        if let Ok(version) = text.parse::<Version>() {
            prop_assert_eq!(version.to_string().parse::<Version>(), Ok(version));
        }
    }

    #[test]
    fn distinct_records_have_distinct_keys(
        one in (entity_id(), resource_name(), second()),
        two in (entity_id(), resource_name(), second()),
    ) {
        let all = |(entity, resource, time): &(_, _, Timestamp)| {
            let mut all = vec![keys::entity_meta(entity), keys::bucket(entity, resource)];
            all.extend(ConfigLevel::chain(entity, resource).iter().take(3).map(keys::config));
            all.extend(WindowKind::ALL.map(|kind| keys::usage(entity, resource, kind.window_at(*time))));
            all
        };
        let mut of_one = all(&one);
        let fixed = [keys::version(), keys::resource_registry(), keys::entity_config_registry(), keys::config(&ConfigLevel::System)];
        of_one.extend(fixed);
        let count = of_one.len();
        of_one.sort();
        of_one.dedup();
        prop_assert_eq!(of_one.len(), count);
        if one.0 != two.0 && one.1 != two.1 {
            prop_assert!(all(&two).iter().all(|key| !of_one.contains(key)));
        }
    }
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn no_item_makes_a_decoder_panic_and_every_refusal_names_an_attribute(item in any_item()) {
        let refusals = [
            EntityRecord::from_item(&item).err(),
            ConfigRecord::from_item(&item).err(),
            VersionRecord::from_item(&item).err(),
            AuditEvent::from_item(&item).err(),
            UsageSnapshot::from_item(&item).err(),
            ResourceRegistry::from_item(&item).err(),
            EntityConfigRegistry::from_item(&item).err(),
            Attributes::from_item(&item).decode().err(),
        ];
        let readable = ConfigRecord::readable(ConfigLevel::System, &item);
        if let Ok(record) = ConfigRecord::from_item(&item) {
            prop_assert_eq!(ConfigRecord { level: ConfigLevel::System, ..record }, readable);
        }
        for refusal in refusals.into_iter().flatten() {
            // Either it stands in the item and is wrong, or it should and does not.
            let stored = item.get(&refusal.attribute);
            let as_said = match refusal.reason.as_str() {
                "is missing" => matches!(stored, None | Some(AttributeValue::Null(_))),
                _ => stored.is_some(),
            };
            prop_assert!(as_said, "{refusal}");
            prop_assert!(refusal.to_string().contains(&format!("attribute {:?}", refusal.attribute)), "{}", refusal);
        }
    }
}
