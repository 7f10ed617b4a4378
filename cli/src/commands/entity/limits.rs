//! `entity set-limits`, `get-limits`, and `delete-limits`.

use clap::Args;
use zae_limiter::{ConfigLevel, EntityId, Repository};

use crate::command_output::CommandOutput;
use crate::commands::config::{LimitArguments, delete_config, show, store};
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
    /// Skip the confirmation prompt
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct Target {
    /// Entity, which does not have to exist yet
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// Resource; `_default_` means every resource on which the entity has no limits of its own
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

pub(super) async fn set(arguments: Set, repository: &Repository) -> Result<CommandOutput> {
    store(repository, &arguments.target.level(), arguments.limits).await
}

pub(super) async fn get(arguments: Get, repository: &Repository) -> Result<CommandOutput> {
    show(repository, &arguments.target.level()).await
}

pub(super) async fn delete(arguments: Delete, context: &Context) -> Result<CommandOutput> {
    let name = arguments.target.entity.to_string();
    delete_config(context, &arguments.target.level(), &name, arguments.yes).await
}
