//! `acquire`: taking tokens, once or many times.

mod many;
mod one;
mod percentiles;

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use zae_limiter::{Acquire, EntityId, Lease, Limit, LimitName, OnUnavailable, RateLimiter, Resource};

use crate::answer::Answer;
use crate::context::Context;
use crate::error::Result;
use crate::parse;

#[derive(Debug, Args)]
#[command(
    after_help = "Ends with 0 if it was admitted, 75 if it was limited, 69 if the table could not be reached.
With --count it ends with 0 unless there were errors.

Examples:
  zae-limiter acquire user-1 gpt-4 -c rpm:1 -c tpm:500
  zae-limiter acquire user-1 gpt-4 -c tpm:500 --adjust tpm:120   (620 were used in the end)
  zae-limiter acquire user-1 gpt-4 -c rpm:1 --wait 5s --output json
  zae-limiter acquire user-1 gpt-4 -c rpm:1 --count 1000 --concurrency 8"
)]
pub(crate) struct Arguments {
    /// The entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// The resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// How much of which limit (repeatable)
    #[arg(short, long = "consume", value_name = "LIMIT:TOKENS", value_parser = parse::amount, required = true)]
    consume: Vec<(LimitName, u64)>,
    /// What was used beyond that, or less, once the call is done (repeatable)
    #[arg(long, value_name = "LIMIT:TOKENS", value_parser = parse::correction)]
    adjust: Vec<(LimitName, i64)>,
    /// Wait for tokens up to this time, such as 5s
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    wait: Option<Duration>,
    /// Use these limits instead of the stored ones (repeatable)
    #[arg(short, long = "limit", value_name = "LIMIT")]
    limits: Vec<Limit>,
    /// What happens if the table cannot be reached [default: as stored]
    #[arg(long, value_name = "allow|block")]
    on_unavailable: Option<OnUnavailable>,
    /// Acquire so many times and print a summary
    #[arg(long, value_name = "N")]
    count: Option<NonZeroU32>,
    /// So many at a time, with --count
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

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<Answer> {
    match arguments.count {
        None => one::run(&arguments, &context.limiter().await?).await,
        Some(count) => many::run(arguments, count.get(), context).await,
    }
}
