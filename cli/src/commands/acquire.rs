//! `acquire`: acquire tokens, once or many times.

mod percentiles;
mod repeated;
mod single;

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use zae_limiter::{Acquire, EntityId, Lease, Limit, OnUnavailable, RateLimiter, Resource};

use crate::command_output::CommandOutput;
use crate::context::Context;
use crate::error::Result;
use crate::money::MoneyLimits;
use crate::parse::{self, OnResource};

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 if the call was admitted, 75 if it was rate limited, and 69 if the table is unavailable.
With --count, exits with 0 unless there were errors.

Examples:
  zae-limiter acquire user-1 gpt-4 -c rpm:1 -c tpm:500
  zae-limiter acquire user-1 gpt-4 -c tpm:500 --adjust tpm:120   # used 620 in total
  zae-limiter acquire user-1 gpt-4 -c rpm:1 -c 'budget/usd:$0.50'   # of both resources, or none
  zae-limiter acquire user-1 gpt-4 -c rpm:1 --wait 5s --output json
  zae-limiter acquire user-1 gpt-4 -c rpm:1 --count 1000 --concurrency 8"
)]
pub(crate) struct Arguments {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// Tokens to take from a limit of RESOURCE or of another resource, such as budget/usd:$0.50 (repeatable)
    #[arg(short, long = "consume", value_name = "LIMIT:TOKENS", value_parser = parse::on_resource::<u64>, required = true)]
    consume: Vec<OnResource<u64>>,
    /// Tokens used beyond --consume, or fewer if negative, as known after the call (repeatable)
    #[arg(long, value_name = "LIMIT:TOKENS", value_parser = parse::on_resource::<i64>)]
    adjust: Vec<OnResource<i64>>,
    /// Charge this resource to the entity alone, without its parents (repeatable)
    #[arg(long, value_name = "RESOURCE")]
    no_cascade: Vec<Resource>,
    /// Wait for tokens for at most this long, such as 5s
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    wait: Option<Duration>,
    /// Use these limits instead of the stored ones (repeatable)
    #[arg(short, long = "limit", value_name = "LIMIT")]
    limits: Vec<Limit>,
    /// Allow or block the call if the table is unavailable [default: as stored]
    #[arg(long, value_name = "allow|block")]
    on_unavailable: Option<OnUnavailable>,
    /// Acquire N times and print a summary
    #[arg(long, value_name = "N")]
    count: Option<NonZeroU32>,
    /// With --count: how many acquires run at the same time
    #[arg(long, value_name = "N", default_value = "1", requires = "count")]
    concurrency: NonZeroU32,
}

impl Arguments {
    fn acquire(&self, limiter: &RateLimiter) -> Acquire {
        let mut acquire = limiter.acquire(self.entity.as_str(), self.resource.as_str());
        for (index, resource) in self.resources().into_iter().enumerate() {
            if index > 0 {
                acquire = acquire.and(resource);
            } else if !self.limits.is_empty() {
                acquire = acquire.limits(self.limits.iter().cloned());
            }
            for amount in self
                .consume
                .iter()
                .filter(|amount| self.resource_of(amount) == resource)
            {
                acquire = acquire.consume(&amount.limit, amount.tokens);
            }
            if self.no_cascade.contains(resource) {
                acquire = acquire.cascade(false);
            }
        }
        if let Some(policy) = self.on_unavailable {
            acquire = acquire.on_unavailable(policy);
        }
        if let Some(time) = self.wait {
            acquire = acquire.wait_up_to(time);
        }
        acquire
    }

    /// The resources of the call, in the order in which they are named.
    fn resources(&self) -> Vec<&Resource> {
        let mut resources = vec![&self.resource];
        for resource in self.consume.iter().map(|amount| self.resource_of(amount)) {
            if !resources.contains(&resource) {
                resources.push(resource);
            }
        }
        resources
    }

    async fn money(&self, limiter: &RateLimiter) -> MoneyLimits {
        MoneyLimits::of_call(limiter.repository(), &self.entity, self.resources()).await
    }

    fn resource_of<'a, T>(&'a self, amount: &'a OnResource<T>) -> &'a Resource {
        amount.resource.as_ref().unwrap_or(&self.resource)
    }

    fn adjust(&self, lease: &mut Lease) {
        for OnResource {
            resource,
            limit,
            tokens,
        } in &self.adjust
        {
            match resource {
                Some(resource) => _ = lease.on(resource).adjust(limit, *tokens),
                None => _ = lease.adjust(limit, *tokens),
            }
        }
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    match arguments.count {
        None => single::run(&arguments, &context.limiter().await?).await,
        Some(count) => repeated::run(arguments, count.get(), context).await,
    }
}
