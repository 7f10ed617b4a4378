//! `acquire`: acquire tokens, once or many times.

mod percentiles;
mod repeated;
mod single;

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use zae_limiter::{Acquire, EntityId, Lease, Limit, LimitName, OnUnavailable, RateLimiter, Resource};

use crate::command_output::CommandOutput;
use crate::context::Context;
use crate::error::Result;
use crate::parse;

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 if the call was admitted, 75 if it was rate limited, and 69 if the table is unavailable.
With --count, exits with 0 unless there were errors.

Examples:
  zae-limiter acquire user-1 gpt-4 -c rpm:1 -c tpm:500
  zae-limiter acquire user-1 gpt-4 -c tpm:500 --adjust tpm:120   # used 620 in total
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
    /// Tokens to take from a limit (repeatable)
    #[arg(short, long = "consume", value_name = "LIMIT:TOKENS", value_parser = parse::amount, required = true)]
    consume: Vec<(LimitName, u64)>,
    /// Tokens used beyond --consume, or fewer if negative, as known after the call (repeatable)
    #[arg(long, value_name = "LIMIT:TOKENS", value_parser = parse::adjustment)]
    adjust: Vec<(LimitName, i64)>,
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
        for (limit, tokens) in &self.consume {
            acquire = acquire.consume(limit.as_str(), *tokens);
        }
        if !self.limits.is_empty() {
            acquire = acquire.limits(self.limits.iter().cloned());
        }
        if let Some(policy) = self.on_unavailable {
            acquire = acquire.on_unavailable(policy);
        }
        if let Some(time) = self.wait {
            acquire = acquire.wait_up_to(time);
        }
        acquire
    }

    fn adjust(&self, lease: &mut Lease) {
        for (limit, tokens) in &self.adjust {
            lease.adjust(limit, *tokens);
        }
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    match arguments.count {
        None => single::run(&arguments, &context.limiter().await?).await,
        Some(count) => repeated::run(arguments, count.get(), context).await,
    }
}
