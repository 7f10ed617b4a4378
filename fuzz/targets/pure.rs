//! Items of the table, files and names: what the pure crates read.

use zae_limiter_schema::bucket::{Attributes, Batch, BucketConfig, Decoded, Demand, Evaluation, TtlRule};
use zae_limiter_schema::money::MicroDollars;
use zae_limiter_schema::{
    AuditEvent, ConfigRecord, EntityConfigRegistry, EntityId, EntityRecord, IdempotencyRecord, Item, Limit,
    LimitName, LimitSet, Resource, ResourceRegistry, StackName, Timestamp, UsageSnapshot, VersionRecord,
    keys as key,
};
use zae_limiter_template::{FunctionCode, StackOptions};

/// An item in DynamoDB's JSON, read as every kind of record. What was read is written and read again.
pub(crate) fn items(data: &[u8]) {
    let Ok(item) = serde_json::from_slice::<Item>(data) else {
        return;
    };
    bucket(&item);
    if let Ok(entity) = EntityRecord::from_item(&item) {
        assert!(EntityRecord::from_item(&entity.to_item()).is_ok(), "{entity:?}");
    }
    if let Ok(config) = ConfigRecord::from_item(&item) {
        assert!(ConfigRecord::from_item(&config.to_item()).is_ok(), "{config:?}");
    }
    if let Ok(snapshot) = UsageSnapshot::from_item(&item) {
        assert!(
            UsageSnapshot::from_item(&snapshot.to_item()).is_ok(),
            "{snapshot:?}"
        );
    }
    if let Ok(event) = AuditEvent::from_item(&item) {
        assert!(AuditEvent::from_item(&event.to_item()).is_ok(), "{event:?}");
    }
    if let Ok(made) = IdempotencyRecord::from_item(&item) {
        let key = key::idempotency(&made.entity, "key");
        assert!(
            IdempotencyRecord::from_item(&made.to_item(&key)).is_ok(),
            "{made:?}"
        );
    }
    drop(VersionRecord::from_item(&item));
    drop(ResourceRegistry::from_item(&item));
    drop(EntityConfigRegistry::from_item(&item));
}

/// A bucket: what a client would decide about it.
fn bucket(item: &Item) {
    let Ok(Decoded::Bucket(image)) = Attributes::from_item(item).decode() else {
        return;
    };
    let limits = [
        "rpm:100",
        "tpd:1000000/day",
        "spend:500 per month in Europe/Berlin alert at 80% 100%",
        "session:100 per 5h from first use",
        "parallel:8 at once for 10min",
    ];
    let limits = LimitSet::new(limits.into_iter().map(|limit| limit.parse().unwrap())).unwrap();
    let config = BucketConfig::new(limits, None, false, TtlRule::from_multiplier(7));
    let mut batch = Batch {
        acquires: 1,
        ..Batch::default()
    };
    for limit in config.limits().iter() {
        batch.add(
            limit.name(),
            Demand {
                debit: 1_000,
                ..Demand::default()
            },
        );
    }
    for now in [
        Timestamp::MIN,
        Timestamp::from_millis(1_769_817_600_000),
        Timestamp::MAX,
    ] {
        for evaluation in [
            Evaluation::live(&image, &config, now),
            Evaluation::parameters(&image, &config, now),
        ] {
            let fits = evaluation.fits(&batch);
            for limit in config.limits().iter() {
                let outlook = evaluation.outlook(limit.name(), &Batch::default(), 1_000);
                // What fits is there: nothing is admitted from an item that has less.
                if let Some(available) = outlook.filter(|_| fits).map(|outlook| outlook.left) {
                    assert!(available >= 1_000, "{limit}: {available} of {image:?}");
                }
            }
        }
        let _ = image.expires_before_full(now);
    }
}

fn utf8(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// An options file; options that are accepted can be rendered or say why not.
pub(crate) fn options(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    if let Ok(options) = StackOptions::from_file(text) {
        let name = StackName::parse("demo").unwrap();
        if let Err(error) = zae_limiter_template::render(&name, &options, &FunctionCode::none()) {
            assert!(!error.to_string().is_empty());
        }
    }
}

/// A limit in the short syntax, or as JSON, which is how Python passes it. What is accepted is printed so that it is read as
/// the same.
pub(crate) fn limit(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    if let Ok(limit) = serde_json::from_str::<Limit>(text) {
        let printed = serde_json::to_string(&limit).unwrap();
        assert_eq!(serde_json::from_str(&printed).ok(), Some(limit), "{text:?}");
    }
    if let Ok(limit) = text.parse::<Limit>() {
        assert_eq!(
            limit.to_string().parse::<Limit>().ok().as_ref(),
            Some(&limit),
            "{text:?}"
        );
    }
}

/// An amount of money. What is accepted is printed so that it is read as the same.
pub(crate) fn money(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    if let Ok(amount) = text.parse::<MicroDollars>() {
        assert_eq!(amount.to_string().parse(), Ok(amount), "{text:?}");
    }
    drop(MicroDollars::per_million_tokens(text));
    drop(MicroDollars::from_json_number(text));
}

/// Names, and the keys made of them.
pub(crate) fn keys(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let (entity, resource) = (EntityId::parse(text), Resource::parse(text));
    if let (Ok(entity), Ok(resource)) = (&entity, &resource) {
        let key = key::bucket(entity, resource);
        // No name can pretend to be a part of a key.
        assert_eq!(key.pk.matches('#').count(), 1, "{key:?}");
        assert_eq!(key.sk.matches('#').count(), 2, "{key:?}");
    }
    drop(LimitName::parse(text));
    drop(StackName::parse(text));
}
