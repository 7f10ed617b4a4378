//! One example of every record.

use std::collections::BTreeMap;

use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketConfig, BucketKey, Decoded, Demand, Evaluation, Image, Incarnation, Slot,
    SlotBefore, SlotIndex, TtlRule,
};
use zae_limiter_schema::money::Prices;
use zae_limiter_schema::{
    AttributeValue, AuditAction, AuditEvent, AuditSubject, ConfigLevel, ConfigRecord, EntityConfigRegistry,
    EntityRecord, Item, Limit, LimitSet, Mode, OnUnavailable, Progress, ResourceRegistry, SystemSettings,
    Timestamp, Ulid, Unknown, UsageSnapshot, VersionRecord, WindowKind,
};

use crate::common::{entity, name, resource};

pub(crate) fn time() -> Timestamp {
    Timestamp::parse("2026-01-31T12:34:56Z").unwrap()
}

pub(crate) fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

pub(crate) fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn limits(texts: &[&str]) -> LimitSet {
    LimitSet::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
}

pub(crate) fn entity_alone() -> EntityRecord {
    EntityRecord {
        id: entity("org-1"),
        name: "Example Ltd".to_owned(),
        parent: None,
        cascade: false,
        metadata: BTreeMap::new(),
        created_at: time(),
        version: 1,
        unknown: Unknown::new(),
    }
}

pub(crate) fn entity_child() -> EntityRecord {
    EntityRecord {
        id: entity("user-1"),
        name: "user-1".to_owned(),
        parent: Some(entity("org-1")),
        cascade: true,
        metadata: BTreeMap::from([
            ("plan".to_owned(), text("pro")),
            ("seats".to_owned(), number(3)),
            ("trial".to_owned(), AttributeValue::Bool(false)),
        ]),
        ..entity_alone()
    }
}

fn config() -> BucketConfig {
    BucketConfig::new(
        limits(&["rpm:100", "tpm:10000:15000"]),
        Some(entity("org-1")),
        true,
        TtlRule::from_multiplier(TtlRule::DEFAULT_MULTIPLIER),
    )
}

fn take(rpm: i128, tpm: i128) -> Batch {
    let debit = |debit| Demand {
        debit,
        ..Demand::default()
    };
    Batch {
        demands: BTreeMap::from([(name("rpm"), debit(rpm)), (name("tpm"), debit(tpm))]),
        acquires: 1,
        ..Batch::default()
    }
}

/// The item of a bucket: its attributes after the write, under its key.
fn written(evaluation: &Evaluation<'_>, onto: &Attributes, batch: &Batch, before: SlotBefore) -> Item {
    let key = BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    };
    let last = match before {
        SlotBefore::Own(number) => number,
        SlotBefore::Any | SlotBefore::Empty => 0,
    };
    let slot = Slot {
        index: SlotIndex::new(1),
        before,
        number: i128::from(evaluation.now().millis()).max(last + 1),
    };
    let write = evaluation
        .write(key.clone(), batch, slot, Incarnation::from_random(42))
        .unwrap();
    let mut item = onto.apply(&write.statement()).unwrap().to_item();
    item.inner_mut().insert("PK".to_owned(), text(&key.key().pk));
    item.inner_mut().insert("SK".to_owned(), text(&key.key().sk));
    item
}

/// A bucket as its first write leaves it: 1 of 100 and 500 of 15,000 taken.
pub(crate) fn bucket_new() -> Item {
    let config = config();
    let evaluation = Evaluation::create(&config, time());
    written(
        &evaluation,
        &Attributes::default(),
        &take(1_000, 500_000),
        SlotBefore::Empty,
    )
}

/// The same bucket emptied and, 1,001 ms later, settled: the remainders of the division are kept.
pub(crate) fn bucket_settled() -> Item {
    let config = config();
    let created = Attributes::from_item(&bucket_new());
    let image = decoded(&created);
    let emptying = Evaluation::live(&image, &config, time());
    let last = |image: &Image| SlotBefore::Own(image.slots[&SlotIndex::new(1)]);
    let empty = written(&emptying, &created, &take(99_000, 14_500_000), last(&image));
    let empty = Attributes::from_item(&empty);
    let image = decoded(&empty);
    let settling = Evaluation::live(&image, &config, time().plus_millis(1_001));
    let mut item = written(&settling, &empty, &take(1_000, 100_000), last(&image));
    item.inner_mut()
        .insert("rj".to_owned(), AttributeValue::N("3".to_owned()));
    item.inner_mut()
        .insert("ro".to_owned(), AttributeValue::N("5".to_owned()));
    item
}

pub(crate) fn decoded(attributes: &Attributes) -> Image {
    let Decoded::Bucket(image) = attributes.decode().unwrap() else {
        panic!("a stub")
    };
    image
}

/// Prices with every attribute.
fn prices() -> Prices {
    let money = |text: &str| Some(text.parse().unwrap());
    Prices {
        input: money("$2.50"),
        output: money("$10"),
        cached_input: money("$1.25"),
        cache_write: money("$3.125"),
        per_call: money("$0.01"),
        default_output: Some(1_000),
        max_output: Some(16_384),
        ..Prices::default()
    }
}

pub(crate) fn configs() -> [(&'static str, ConfigRecord); 4] {
    let (user, gpt) = (entity("user-1"), resource("gpt-4"));
    let policy = |policy, record| ConfigRecord {
        on_unavailable: Some(policy),
        ..record
    };
    let system = ConfigRecord {
        config_version: 7,
        system: SystemSettings {
            audit_retention_days: Some(90),
            auto_update: Some(true),
            strict_version: Some(false),
        },
        ..ConfigRecord::new(ConfigLevel::System, limits(&["rpm:60"]))
    };
    [
        (
            "entity",
            policy(
                OnUnavailable::Allow,
                ConfigRecord::new(
                    ConfigLevel::Entity(user.clone(), gpt.clone()),
                    limits(&["rpm:100", "tpm:10000:15000"]),
                ),
            ),
        ),
        (
            "entity_default",
            ConfigRecord {
                mode: Some(Mode::Observe),
                ..ConfigRecord::new(ConfigLevel::EntityDefault(user), limits(&["rps:10/sec:20"]))
            },
        ),
        (
            "resource",
            ConfigRecord {
                prices: Some(prices()),
                ..ConfigRecord::new(ConfigLevel::Resource(gpt), limits(&["tpd:1000000/day@500000"]))
            },
        ),
        ("system", policy(OnUnavailable::Block, system)),
    ]
}

pub(crate) fn resource_registry() -> ResourceRegistry {
    ResourceRegistry(["claude-3.5-sonnet", "gpt-4"].map(str::to_owned).into())
}

pub(crate) fn entity_config_registry() -> EntityConfigRegistry {
    EntityConfigRegistry([("_default_".to_owned(), 2), ("gpt-4".to_owned(), 1)].into())
}

pub(crate) fn version() -> VersionRecord {
    VersionRecord::current(time(), "client:0.1.0")
}

/// A limit as the details of an event name it.
fn limit_details(limit: &Limit) -> AttributeValue {
    let numbers = [
        ("capacity", limit.capacity().get()),
        ("burst", limit.burst().get()),
        ("refill_amount", limit.rate().unwrap().refill_amount().get()),
        (
            "refill_period_seconds",
            limit.rate().unwrap().refill_period_seconds(),
        ),
    ];
    let numbers = numbers.map(|(name, value)| (name.to_owned(), AttributeValue::N(value.to_string())));
    let name = ("name".to_owned(), text(limit.name().as_str()));
    AttributeValue::M(numbers.into_iter().chain([name]).collect())
}

fn event(random: u128, subject: AuditSubject, action: AuditAction, resource: Option<&str>) -> AuditEvent {
    AuditEvent {
        id: Ulid::new(time().plus_millis(789), random),
        subject,
        timestamp: time(),
        action,
        principal: Some("arn:aws:sts::123456789012:assumed-role/ops/ci".to_owned()),
        resource: resource.map(str::to_owned),
        details: BTreeMap::new(),
        ttl: Some(time().seconds() + 90 * 86_400),
        unknown: Unknown::new(),
    }
}

pub(crate) fn audit_events() -> Vec<(&'static str, AuditEvent)> {
    let user = || AuditSubject::Entity(entity("user-1"));
    let gpt = || AuditSubject::Resource(resource("gpt-4"));
    let set = |limits: &LimitSet| {
        BTreeMap::from([(
            "limits".to_owned(),
            AttributeValue::L(limits.iter().map(limit_details).collect()),
        )])
    };
    let rpm = limits(&["rpm:100"]);
    let mut created = event(1, user(), AuditAction::EntityCreated, None);
    created.details = BTreeMap::from([
        ("name".to_owned(), text("user-1")),
        ("parent_id".to_owned(), text("org-1")),
        ("cascade".to_owned(), AttributeValue::Bool(true)),
        ("metadata".to_owned(), AttributeValue::M([].into())),
    ]);
    let mut updated = event(2, user(), AuditAction::EntityUpdated, None);
    updated.details = BTreeMap::from([("name".to_owned(), text("User One"))]);
    let mut deleted = event(3, user(), AuditAction::EntityDeleted, None);
    deleted.details = BTreeMap::from([("records_deleted".to_owned(), number(4))]);
    let mut entity_set = event(4, user(), AuditAction::LimitsSet, Some("gpt-4"));
    entity_set.details = set(&rpm);
    let mut default_set = event(5, user(), AuditAction::LimitsSet, Some("_default_"));
    default_set.details = set(&rpm);
    let mut resource_set = event(6, gpt(), AuditAction::LimitsSet, Some("gpt-4"));
    resource_set.details = set(&rpm);
    let mut system_set = event(7, AuditSubject::System, AuditAction::LimitsSet, None);
    system_set.details = set(&rpm);
    system_set
        .details
        .insert("on_unavailable".to_owned(), text("allow"));
    let mut system_deleted = event(10, AuditSubject::System, AuditAction::LimitsDeleted, None);
    system_deleted.principal = None;
    system_deleted.details = BTreeMap::from([
        ("limits".to_owned(), AttributeValue::L(vec![text("rpm")])),
        ("on_unavailable".to_owned(), AttributeValue::Null(true)),
    ]);
    vec![
        ("entity_created", created),
        ("entity_updated", updated),
        ("entity_deleted", deleted),
        ("limits_set_entity", entity_set),
        ("limits_set_entity_default", default_set),
        ("limits_set_resource", resource_set),
        ("limits_set_system", system_set),
        (
            "limits_deleted_entity",
            event(8, user(), AuditAction::LimitsDeleted, Some("gpt-4")),
        ),
        (
            "limits_deleted_resource",
            event(9, gpt(), AuditAction::LimitsDeleted, Some("gpt-4")),
        ),
        ("limits_deleted_system", system_deleted),
    ]
}

pub(crate) fn usage(kind: WindowKind) -> UsageSnapshot {
    let label = "2026-01-01T00:00:00.000";
    UsageSnapshot {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
        window: kind.window_at(Timestamp::parse("2026-01-01T00:15:00Z").unwrap()),
        counters: BTreeMap::from([(name("rpm"), 12), (name("tpm"), 3_400)]),
        total_events: 12,
        refusals: 3,
        observed: 5,
        thresholds: BTreeMap::from([(name("rpm"), [80, 100].into())]),
        ttl: Some(time().seconds() + 90 * 86_400),
        progress: Some(Progress {
            sequence: format!("{label}/{:040}", 12_345),
            newest: Some("1767226500".to_owned()),
            link: Some("3f6c1e0a9b72d458".to_owned()),
            gaps: Some(format!(
                "{label}/{:040},8a1d5c07e3f94b26,{label}/{:040},51c9e0d2b7a8f364",
                12_001, 12_003
            )),
        }),
        unknown: Unknown::new(),
    }
}
