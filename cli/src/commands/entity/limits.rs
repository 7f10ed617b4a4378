//! The limits of one entity.

use clap::Args;
use zae_limiter::{ConfigLevel, EntityId, Limit, OnUnavailable, RateLimiter};

use crate::answer::Answer;
use crate::commands::config::{LimitArguments, deleted, show, store};
use crate::context::Context;
use crate::error::Result;
use crate::parse::ResourceOrAll;

#[derive(Debug, Args)]
pub(crate) struct Set {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    limits: LimitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    target: Target,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct Target {
    /// The entity, which need not have been created
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// The resource; `_default_` means all on which the entity has no limits of its own
    #[arg(short, long, default_value = ConfigLevel::DEFAULT_RESOURCE)]
    resource: ResourceOrAll,
}

impl Target {
    fn level(self) -> ConfigLevel {
        match self.resource {
            ResourceOrAll::All => ConfigLevel::EntityDefault(self.entity),
            ResourceOrAll::One(resource) => ConfigLevel::Entity(self.entity, resource),
        }
    }
}

pub(super) async fn set(arguments: Set, limiter: &RateLimiter) -> Result<Answer> {
    let (limits, policy): (Vec<Limit>, Option<OnUnavailable>) = arguments.limits.parts();
    store(limiter, &arguments.target.level(), limits, policy).await
}

pub(super) async fn get(arguments: Get, limiter: &RateLimiter) -> Result<Answer> {
    show(limiter, &arguments.target.level()).await
}

pub(super) async fn delete(arguments: Delete, context: &Context) -> Result<Answer> {
    let name = arguments.target.entity.to_string();
    deleted(context, &arguments.target.level(), &name, arguments.yes).await
}
