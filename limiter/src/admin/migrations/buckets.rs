//! Schema 0.8.0: one bucket item with all limits of an entity on a resource, in place of one item per limit.

use std::collections::BTreeMap;

use zae_limiter_dynamo::{Placeholders, Transacted, Transaction};
use zae_limiter_schema::bucket::{Attr, Attributes, Field, Params, Scalar, TokenBucket};
use zae_limiter_schema::keys::{self, Key, attribute, prefix};
use zae_limiter_schema::{AttributeValue, EntityId, EntityRecord, Item, LimitName, Resource, Timestamp};

use super::legacy::{Legacy, Seen};
use super::{Counts, Migration, OldItems};
use crate::admin::check_limit_count;
use crate::{Repository, Result};

pub(super) const MIGRATION: Migration = Migration {
    name: "composite-buckets",
    description: "one bucket item per entity and resource in place of one per limit",
    old: OldItems {
        prefix: prefix::BUCKET,
        concerns: |sort_key| {
            let rest = sort_key.strip_prefix(prefix::BUCKET);
            rest.is_some_and(|rest| rest.contains('#'))
        },
    },
    convert: |repository, old, dry_run| Box::pin(convert(repository, old, dry_run)),
};

/// What a bucket's condition compares, so that the write fails if the bucket was used meanwhile.
const LEVEL: &str = "tokens_milli";

/// One limit's old bucket.
struct OldBucket {
    limit: LimitName,
    token_bucket: TokenBucket,
    refilled_at: Timestamp,
    consumed: i128,
    key: Key,
    level: Option<Seen>,
}

/// The old buckets of one entity on one resource.
#[derive(Default)]
struct OldBuckets {
    buckets: Vec<OldBucket>,
    problems: Vec<String>,
}

async fn convert(repository: &Repository, old: Vec<Item>, dry_run: bool) -> Result<Counts> {
    let mut counts = Counts {
        found: old.len() as u64,
        ..Counts::default()
    };
    let mut owners: BTreeMap<(EntityId, Resource), OldBuckets> = BTreeMap::new();
    for legacy in old.iter().filter_map(Legacy::new) {
        match owner_of(&legacy) {
            Ok((owner, limit)) => {
                let old = owners.entry(owner).or_default();
                match read(&legacy, limit) {
                    Ok(bucket) => old.buckets.push(bucket),
                    Err(problem) => old.problems.push(problem),
                }
            }
            Err(problem) => counts.problems.push(problem),
        }
    }
    for ((entity, resource), old) in owners {
        // Half a bucket would pass for a whole one when the migration is run again.
        if !old.problems.is_empty() {
            counts.problems.extend(old.problems);
            continue;
        }
        let removed = old.buckets.len() as u64;
        let written = write(repository, &entity, &resource, &old.buckets, dry_run).await;
        counts.note(&format!("the bucket of {entity} on {resource}"), removed, written)?;
    }
    Ok(counts)
}

/// Whose bucket an old item is part of, and for which limit.
fn owner_of(legacy: &Legacy<'_>) -> Result<((EntityId, Resource), LimitName), String> {
    let unusable = |what: String| legacy.problem(&what);
    let id = legacy.key.pk.strip_prefix(prefix::ENTITY).unwrap_or_default();
    let rest = legacy.key.sk.strip_prefix(prefix::BUCKET).unwrap_or_default();
    let (resource, limit) = rest.split_once('#').unwrap_or_default();
    let entity = EntityId::parse(id).map_err(|error| unusable(error.to_string()))?;
    let resource = Resource::from_stored(resource).map_err(|error| unusable(error.to_string()))?;
    let limit = LimitName::from_stored(limit).map_err(|error| unusable(error.to_string()))?;
    Ok(((entity, resource), limit))
}

fn read(legacy: &Legacy<'_>, limit: LimitName) -> Result<OldBucket, String> {
    let unusable = |what: String| legacy.problem(&what);
    let params = Params::new(
        legacy.number("capacity_milli")?,
        legacy.number("burst_milli")?,
        legacy.number("refill_amount_milli")?,
        legacy.number("refill_period_ms")?,
    )
    .ok_or_else(|| unusable("its parameters make no sense".to_owned()))?;
    let tokens = legacy.number(LEVEL)?;
    if tokens.abs() > TokenBucket::MAX_TOKENS {
        return Err(unusable(format!("{LEVEL} is out of range: {tokens}")));
    }
    let refilled_at = i64::try_from(legacy.number("last_refill_ms")?)
        .map_err(|_| unusable("last_refill_ms is out of range".to_owned()))?;
    Ok(OldBucket {
        limit,
        token_bucket: TokenBucket {
            params,
            tokens,
            remainder: 0,
        },
        refilled_at: Timestamp::from_millis(refilled_at),
        // The oldest buckets did not count.
        consumed: legacy.number("total_consumed_milli").unwrap_or(0),
        key: legacy.key.clone(),
        level: legacy.seen(LEVEL),
    })
}

/// Writes the new bucket and deletes the old ones together. A bucket in the new form that is there already is in use
/// and stays. Nothing if an old one was used meanwhile.
async fn write(
    repository: &Repository,
    entity: &EntityId,
    resource: &Resource,
    old: &[OldBucket],
    dry_run: bool,
) -> Result<Option<bool>> {
    let table = &repository.inner.table;
    let key = keys::bucket(entity, resource);
    let exists = table.get(&key, true).await?.is_some();
    check_limit_count("limits", old.len())?;
    let there = |p: &mut Placeholders| format!("attribute_exists({})", p.name(attribute::PK));
    let mut transaction = Transaction::on(table);
    if exists {
        transaction.check(&key, there);
    } else {
        let owner = table.get(&keys::entity_meta(entity), true).await?;
        let owner = owner.map(|item| EntityRecord::from_item(&item)).transpose()?;
        transaction.put_new(composite(entity, resource, owner.as_ref(), old));
    }
    if dry_run {
        return Ok(Some(!exists));
    }
    for bucket in old {
        transaction.delete_when(&bucket.key, |p| match &bucket.level {
            Some(level) => level.still(p),
            None => there(p),
        });
    }
    Ok(matches!(transaction.commit().await?, Transacted::Done).then_some(!exists))
}

/// All limits share one time of the last refill: the latest of theirs. The others are refilled up to it, exactly.
fn composite(
    entity: &EntityId,
    resource: &Resource,
    owner: Option<&EntityRecord>,
    old: &[OldBucket],
) -> Item {
    let refilled_at = old
        .iter()
        .map(|bucket| bucket.refilled_at)
        .max()
        .unwrap_or(Timestamp::MIN);
    let index = keys::gsi2_bucket(resource, entity);
    let text = |text: &str| Scalar::Text(text.into());
    let mut attributes = Attributes::default();
    attributes.insert(Attr::RefilledAt, Scalar::Number(i128::from(refilled_at.millis())));
    attributes.insert(Attr::Entity, text(entity.as_str()));
    attributes.insert(Attr::Resource, text(resource.as_str()));
    attributes.insert(Attr::Gsi2Pk, text(&index.pk));
    attributes.insert(Attr::Gsi2Sk, text(&index.sk));
    attributes.insert(
        Attr::Cascade,
        Scalar::Flag(owner.is_some_and(|owner| owner.cascade)),
    );
    if let Some(parent) = owner.and_then(|owner| owner.parent.as_ref()) {
        attributes.insert(Attr::Parent, text(parent.as_str()));
    }
    for bucket in old {
        let token_bucket = bucket
            .token_bucket
            .refilled(i128::from(refilled_at.since(bucket.refilled_at)));
        let fields = [
            (Field::Tokens, token_bucket.tokens),
            (Field::Capacity, token_bucket.params.capacity()),
            (Field::Burst, token_bucket.params.burst()),
            (Field::Amount, token_bucket.params.amount()),
            (Field::Period, token_bucket.params.period()),
            (Field::Consumed, bucket.consumed),
            (Field::Remainder, token_bucket.remainder),
        ];
        for (field, number) in fields {
            if field != Field::Remainder || number != 0 {
                attributes.insert(Attr::Limit(bucket.limit.clone(), field), Scalar::Number(number));
            }
        }
    }
    let key = keys::bucket(entity, resource);
    let mut item = attributes.to_item();
    item.insert(attribute::PK.to_owned(), AttributeValue::S(key.pk));
    item.insert(attribute::SK.to_owned(), AttributeValue::S(key.sk));
    item
}
