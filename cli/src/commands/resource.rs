//! `resource`: manage the default limits of a resource and show its utilization.

use clap::{Args, Subcommand};
use serde::Serialize;
use zae_limiter::money::dollars;
use zae_limiter::usage::{CapacityScope, ResourceCapacity};
use zae_limiter::{ConfigLevel, EntityId, LimitName, Repository, Resource};

use super::config::{LimitArguments, delete_config, show, store};
use super::pagination::total;
use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Align, TextTable, View, decimal, grouped};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set the default limits of a resource, replacing the current ones
    #[command(after_help = "Examples:
  zae-limiter resource set-defaults gpt-4 -l rpm:500 -l tpm:50000
  zae-limiter resource set-defaults openai/gpt-4 -l tpd:1000000/day --on-unavailable block")]
    SetDefaults(Set),
    /// Show the default limits of a resource
    #[command(after_help = "Example:
  zae-limiter resource get-defaults gpt-4")]
    GetDefaults(ResourceArgument),
    /// Delete the default limits of a resource, so that the system defaults apply
    #[command(after_help = "Examples:
  zae-limiter resource delete-defaults gpt-4
  zae-limiter resource delete-defaults gpt-4 --yes       # without a prompt")]
    DeleteDefaults(Delete),
    /// List the resources that have default limits
    #[command(after_help = "Example:
  zae-limiter resource list")]
    List,
    /// Show the utilization of a resource by entity
    #[command(after_help = "Examples:
  zae-limiter resource capacity gpt-4
  zae-limiter resource capacity gpt-4 --limit tpm --roots-only")]
    Capacity(Capacity),
}

#[derive(Debug, Args)]
pub(crate) struct ResourceArgument {
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    #[command(flatten)]
    limits: LimitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// Skip the confirmation prompt
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Capacity {
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// Only this limit (repeatable) [default: the limits of the resource, or else the system defaults]
    #[arg(short, long = "limit", value_name = "NAME")]
    limits: Vec<LimitName>,
    /// Count only entities without a parent
    #[arg(long)]
    roots_only: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::SetDefaults(arguments) => {
            let level = ConfigLevel::Resource(arguments.resource);
            store(&context.repository().await?, &level, arguments.limits).await
        }
        Command::GetDefaults(ResourceArgument { resource }) => {
            show(&context.repository().await?, &ConfigLevel::Resource(resource)).await
        }
        Command::DeleteDefaults(arguments) => {
            let name = arguments.resource.to_string();
            delete_config(
                context,
                &ConfigLevel::Resource(arguments.resource),
                &name,
                arguments.yes,
            )
            .await
        }
        Command::List => {
            let resources = context.repository().await?.list_resources_with_defaults().await?;
            Ok(CommandOutput::new(ResourceNames {
                count: resources.len(),
                resources,
            }))
        }
        Command::Capacity(arguments) => capacity(arguments, &context.repository().await?).await,
    }
}

#[derive(Debug, Serialize)]
struct ResourceNames {
    resources: Vec<String>,
    count: usize,
}

impl Text for ResourceNames {
    fn text(&self, _: &View) -> String {
        let mut lines = self.resources.clone();
        lines.push(total(self.count, "resource", "resources", false));
        lines.join("\n")
    }
}

#[derive(Debug, Serialize)]
struct Utilization {
    resource: Resource,
    limits: Vec<LimitUtilization>,
    /// The limit that counts money.
    #[serde(skip)]
    money: LimitName,
}

#[derive(Debug, Serialize)]
struct LimitUtilization {
    limit_name: LimitName,
    total_capacity: u64,
    total_available: i64,
    utilization_pct: f64,
    entities: Vec<EntityUtilization>,
}

#[derive(Debug, Serialize)]
struct EntityUtilization {
    entity_id: EntityId,
    capacity: u64,
    available: i64,
    utilization_pct: f64,
}

impl From<ResourceCapacity> for LimitUtilization {
    fn from(capacity: ResourceCapacity) -> Self {
        Self {
            utilization_pct: capacity.utilization_percent(),
            limit_name: capacity.limit,
            total_capacity: capacity.total_capacity,
            total_available: capacity.total_available,
            entities: capacity
                .entities
                .into_iter()
                .map(|entity| EntityUtilization {
                    utilization_pct: entity.utilization_percent(),
                    entity_id: entity.entity,
                    capacity: entity.capacity,
                    available: entity.available,
                })
                .collect(),
        }
    }
}

impl Text for Utilization {
    fn text(&self, view: &View) -> String {
        let mut table = TextTable::new([
            ("Limit", Align::Left),
            ("Entity", Align::Left),
            ("Capacity", Align::Right),
            ("Available", Align::Right),
            ("In use", Align::Right),
        ]);
        for limit in &self.limits {
            let amount: fn(i128) -> String = if limit.limit_name == self.money {
                dollars
            } else {
                grouped
            };
            let mut row = |entity: &str, capacity: u64, available: i64, percent| {
                table.row([
                    limit.limit_name.to_string(),
                    entity.to_owned(),
                    amount(capacity.into()),
                    amount(available.into()),
                    format!("{}%", decimal(percent, 1)),
                ]);
            };
            for entity in &limit.entities {
                row(
                    entity.entity_id.as_str(),
                    entity.capacity,
                    entity.available,
                    entity.utilization_pct,
                );
            }
            row(
                "(all)",
                limit.total_capacity,
                limit.total_available,
                limit.utilization_pct,
            );
        }
        table.render(view)
    }
}

async fn capacity(arguments: Capacity, repository: &Repository) -> Result<CommandOutput> {
    let resource = arguments.resource;
    let names = if arguments.limits.is_empty() {
        stored_names(repository, &resource).await?
    } else {
        arguments.limits
    };
    let scope = if arguments.roots_only {
        CapacityScope::RootsOnly
    } else {
        CapacityScope::Everyone
    };
    let mut limits = vec![];
    for name in names {
        limits.push(LimitUtilization::from(
            repository.get_resource_capacity(&resource, &name, scope).await?,
        ));
    }
    let money = repository.resolve_money_limit(&resource).await?;
    Ok(CommandOutput::new(Utilization {
        resource,
        limits,
        money,
    }))
}

async fn stored_names(repository: &Repository, resource: &Resource) -> Result<Vec<LimitName>> {
    for level in [ConfigLevel::Resource(resource.clone()), ConfigLevel::System] {
        let names: Vec<_> = match repository.get_config(&level).await? {
            Some(record) => record.limits.names().cloned().collect(),
            None => vec![],
        };
        if !names.is_empty() {
            return Ok(names);
        }
    }
    Err(Error::usage(format!(
        "neither resource {resource} nor the system has default limits; pass --limit NAME"
    )))
}
