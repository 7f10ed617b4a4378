//! `buckets`: what an entity has used and holds now, on every resource.

use clap::Args;
use serde::Serialize;
use zae_limiter::{BucketLimit, BucketLimitKind, BucketState, EntityId, LimitName, Resource, Timestamp};

use super::pagination::{self, total};
use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::money::MoneyLimits;
use crate::output::{Align, TextTable, View};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter buckets user-1
  zae-limiter buckets user-1 --output json

A resource appears with the first call of the entity.")]
pub(crate) struct Arguments {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// List at most N [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Buckets {
    entity_id: EntityId,
    buckets: Vec<Bucket>,
    count: usize,
    truncated: bool,
    #[serde(skip)]
    money: MoneyLimits,
}

#[derive(Debug, Serialize)]
struct Bucket {
    resource: Resource,
    limits: Vec<LimitNow>,
    acquires: u64,
    refilled_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct LimitNow {
    limit_name: LimitName,
    kind: &'static str,
    /// Below zero is debt.
    available: i64,
    /// The most that can be available at once: what was topped up is part of it.
    burst: u64,
    capacity: u64,
    /// Tokens used of a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<i64>,
    /// When the period of a quota ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<Timestamp>,
    /// Permits held.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<i64>,
}

impl From<BucketState> for Bucket {
    fn from(bucket: BucketState) -> Self {
        Self {
            resource: bucket.resource,
            limits: bucket.limits.into_iter().map(LimitNow::from).collect(),
            acquires: bucket.acquires,
            refilled_at: bucket.refilled_at,
            expires_at: bucket.expires_at,
        }
    }
}

impl From<BucketLimit> for LimitNow {
    fn from(limit: BucketLimit) -> Self {
        let (kind, used, resets_at, held) = match limit.kind {
            BucketLimitKind::Quota { used, period_end, .. } => ("quota", Some(used), period_end, None),
            BucketLimitKind::Concurrency { held, .. } => ("concurrency", None, None, Some(held)),
            _ => ("rate", None, None, None),
        };
        Self {
            limit_name: limit.name,
            kind,
            available: limit.available,
            burst: limit.burst,
            capacity: limit.capacity,
            used,
            resets_at,
            held,
        }
    }
}

impl Text for Buckets {
    fn text(&self, view: &View) -> String {
        let total = total(self.count, "bucket", "buckets", self.truncated);
        if self.count == 0 {
            return format!("{total}: {} has used nothing yet", self.entity_id);
        }
        let mut table = TextTable::new([
            ("Resource", Align::Left),
            ("Limit", Align::Left),
            ("Available", Align::Right),
            ("Used or held", Align::Right),
            ("Of", Align::Right),
            ("Resets", Align::Left),
        ]);
        for bucket in &self.buckets {
            for limit in &bucket.limits {
                let amount = |amount: i128| self.money.amount(&bucket.resource, &limit.limit_name, amount);
                let used_or_held = limit.used.or(limit.held);
                table.row([
                    bucket.resource.to_string(),
                    limit.limit_name.to_string(),
                    amount(limit.available.into()),
                    used_or_held.map_or_else(String::new, |used| amount(used.into())),
                    amount(limit.burst.into()),
                    limit
                        .resets_at
                        .map_or_else(String::new, |end| view.zone.show(end)),
                ]);
            }
        }
        format!("{}\n{total}", table.render(view))
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let repository = &context.repository().await?;
    let entity = &arguments.entity;
    let fetch = |page| async move { repository.list_buckets(entity, &page).await };
    let collected = pagination::collect(arguments.limit, fetch, |_| true).await?;
    let resources = collected.items.iter().map(|bucket| &bucket.resource);
    let money = MoneyLimits::of_call(repository, entity, resources).await;
    Ok(CommandOutput::new(Buckets {
        count: collected.items.len(),
        truncated: collected.truncated,
        buckets: collected.items.into_iter().map(Bucket::from).collect(),
        money,
        entity_id: arguments.entity,
    }))
}
