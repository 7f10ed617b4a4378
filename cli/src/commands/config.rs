//! `config`: show and change the configuration of any level, and functions that the commands of a level share.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use zae_limiter::{
    ConfigChange, ConfigLevel, EntityId, Limit, OnUnavailable, Repository, Resource, Timestamp,
};
use zae_limiter_limits::limits_from_json;

use super::record_reports::ConfigReport;
use crate::command_output::{CommandOutput, Text, WithMessage};
use crate::confirm::confirm_by_name;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::View;
use crate::parse::ResourceOrAll;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the configuration of a level
    #[command(after_help = "Examples:
  zae-limiter config get --level system
  zae-limiter config get --level resource --resource gpt-4
  zae-limiter config get --level entity --identifier user-1 --resource gpt-4")]
    Get(LevelArguments),
    /// Change the configuration of a level; other settings stay as they are
    #[command(after_help = "Examples:
  zae-limiter config set --level resource --resource gpt-4 --limits '[\"rpm:100\", \"tpm:10000/min:15000\"]'
  zae-limiter config set --level entity --identifier user-1 --limits '{\"rpm\": {\"capacity\": 1000}}'
  zae-limiter config set --level system --on-unavailable allow --audit-retention-days 30")]
    Set(Box<Set>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LevelChoice {
    /// Every entity on every resource
    System,
    /// Every entity on one resource
    Resource,
    /// One entity, on one resource or on all
    Entity,
}

#[derive(Debug, Args)]
pub(crate) struct LevelArguments {
    /// Level
    #[arg(long)]
    level: LevelChoice,
    /// Entity ID, or the resource at the resource level
    #[arg(long, value_name = "ID")]
    identifier: Option<String>,
    /// Resource [default for entities: `_default_`, every resource without its own limits]
    #[arg(long, value_name = "NAME")]
    resource: Option<ResourceOrAll>,
}

impl LevelArguments {
    fn level(self) -> Result<ConfigLevel> {
        match (self.level, self.identifier, self.resource) {
            (LevelChoice::System, None, None) => Ok(ConfigLevel::System),
            (LevelChoice::System, ..) => Err(Error::usage(
                "the system level takes neither --identifier nor --resource; remove them",
            )),
            (LevelChoice::Resource, None, Some(ResourceOrAll::One(resource))) => {
                Ok(ConfigLevel::Resource(resource))
            }
            (LevelChoice::Resource, Some(name), None) => Ok(ConfigLevel::Resource(
                Resource::parse(name).map_err(zae_limiter::Error::from)?,
            )),
            (LevelChoice::Resource, ..) => Err(Error::usage(
                "the resource level needs exactly one name; pass --resource NAME",
            )),
            (LevelChoice::Entity, None, _) => Err(Error::usage(
                "the entity level needs an entity; pass --identifier ID",
            )),
            (LevelChoice::Entity, Some(entity), resource) => {
                let entity = EntityId::parse(entity).map_err(zae_limiter::Error::from)?;
                Ok(match resource {
                    Some(ResourceOrAll::One(resource)) => ConfigLevel::Entity(entity, resource),
                    Some(ResourceOrAll::All) | None => ConfigLevel::EntityDefault(entity),
                })
            }
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    #[command(flatten)]
    level: LevelArguments,
    /// New limits, replacing all limits of the level: a list, or a map from names
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// Allow or block calls while the table is unavailable
    #[arg(long, value_name = "allow|block")]
    on_unavailable: Option<OnUnavailable>,
    /// Days to keep audit events (system level)
    #[arg(long, value_name = "DAYS")]
    audit_retention_days: Option<u32>,
    /// Whether a newer client may update the Lambda functions (system level)
    #[arg(long, value_name = "BOOL")]
    auto_update: Option<bool>,
    /// Whether a version mismatch is an error (system level)
    #[arg(long, value_name = "BOOL")]
    strict_version: Option<bool>,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::Get(level) => {
            let level = level.level()?;
            show(&context.repository().await?, &level).await
        }
        Command::Set(arguments) => {
            let level = arguments.level.level()?;
            let mut change = ConfigChange::new();
            if let Some(limits) = arguments.limits {
                let limits = limits_from_json(&limits)
                    .map_err(|problem| Error::usage(format!("--limits is invalid: {problem}")))?;
                change = change.limits(limits.iter().cloned());
            }
            if let Some(policy) = arguments.on_unavailable {
                change = change.on_unavailable(policy);
            }
            if let Some(days) = arguments.audit_retention_days {
                change = change.audit_retention_days(days);
            }
            if let Some(flag) = arguments.auto_update {
                change = change.auto_update(flag);
            }
            if let Some(flag) = arguments.strict_version {
                change = change.strict_version(flag);
            }
            apply(&context.repository().await?, &level, change).await
        }
    }
}

/// The options of the commands that set the limits of a level.
#[derive(Debug, Args)]
pub(crate) struct LimitArguments {
    /// Limit: NAME:CAPACITY[/PERIOD][:BURST][@REFILL], where PERIOD is sec, min (default), hour, day, or a number of
    /// seconds such as 90s (repeatable)
    #[arg(short, long = "limit", value_name = "LIMIT", required = true)]
    limits: Vec<Limit>,
    /// Allow or block calls while the table is unavailable [default: unchanged]
    #[arg(long, value_name = "allow|block")]
    on_unavailable: Option<OnUnavailable>,
    /// End these limits then, and apply those that the level has now again: a time, a date, or a duration such as 7d
    #[arg(long, value_name = "TIME", value_parser = crate::parse::end)]
    until: Option<Timestamp>,
    /// Reason, for the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Sets the limits of a level, and its `on_unavailable` policy if one is given.
pub(crate) async fn store(
    repository: &Repository,
    level: &ConfigLevel,
    arguments: LimitArguments,
) -> Result<CommandOutput> {
    let mut change = ConfigChange::new().limits(arguments.limits);
    if let Some(policy) = arguments.on_unavailable {
        change = change.on_unavailable(policy);
    }
    if let Some(until) = arguments.until {
        change = change.until(until);
    }
    if let Some(reason) = arguments.reason {
        change = change.reason(reason);
    }
    apply(repository, level, change).await
}

async fn apply(repository: &Repository, level: &ConfigLevel, change: ConfigChange) -> Result<CommandOutput> {
    let record = repository.set_config(level, change).await?;
    Ok(CommandOutput::new(WithMessage {
        message: format!("configuration of {level}:"),
        report: ConfigReport::new(level, Some(&record)),
    }))
}

/// Shows the configuration of a level.
pub(crate) async fn show(repository: &Repository, level: &ConfigLevel) -> Result<CommandOutput> {
    let record = repository.get_config(level).await?;
    Ok(CommandOutput::new(ConfigReport::new(level, record.as_ref())))
}

#[derive(Debug, Serialize)]
struct DeletionReport {
    #[serde(skip)]
    level_text: String,
    level: zae_limiter::LevelKind,
    entity_id: Option<EntityId>,
    resource: Option<String>,
    deleted: bool,
}

impl Text for DeletionReport {
    fn text(&self, _: &View) -> String {
        if self.deleted {
            format!("deleted the configuration of {}", self.level_text)
        } else {
            format!("nothing to delete: {} has no configuration", self.level_text)
        }
    }
}

/// Deletes the configuration of a level after the user has confirmed its name.
pub(crate) async fn delete_config(
    context: &Context,
    level: &ConfigLevel,
    name: &str,
    yes: bool,
) -> Result<CommandOutput> {
    confirm_by_name(&format!("delete the limits of {level}"), name, yes)?;
    let deleted = context.repository().await?.delete_config(level).await?;
    Ok(CommandOutput::new(DeletionReport {
        level_text: level.to_string(),
        level: level.kind(),
        entity_id: level.entity().cloned(),
        resource: level.resource_key().map(str::to_owned),
        deleted,
    }))
}
