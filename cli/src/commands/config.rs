//! `config`: any level by its coordinates, and what the commands of the levels share.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use zae_limiter::{ConfigChange, ConfigLevel, EntityId, Limit, OnUnavailable, RateLimiter, Resource};

use super::limits::form;
use super::shown::Config;
use crate::answer::{Answer, Done, Text};
use crate::ask::confirm_by_name;
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
    Get(Coordinates),
    /// Change the configuration of a level; what is not mentioned stays
    #[command(after_help = "Examples:
  zae-limiter config set --level resource --resource gpt-4 --limits '[\"rpm:100\", \"tpm:10000/min:15000\"]'
  zae-limiter config set --level entity --identifier user-1 --limits '{\"rpm\": {\"capacity\": 1000}}'
  zae-limiter config set --level system --on-unavailable allow --audit-retention-days 30")]
    Set(Box<Set>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Everybody on everything
    System,
    /// Everybody on one resource
    Resource,
    /// One entity, on one resource or all
    Entity,
}

#[derive(Debug, Args)]
pub(crate) struct Coordinates {
    /// Which level
    #[arg(long)]
    level: Level,
    /// The entity, or the resource at that level
    #[arg(long, value_name = "ID")]
    identifier: Option<String>,
    /// The resource [default for entities: `_default_`, all without limits of their own]
    #[arg(long, value_name = "NAME")]
    resource: Option<ResourceOrAll>,
}

impl Coordinates {
    fn level(self) -> Result<ConfigLevel> {
        match (self.level, self.identifier, self.resource) {
            (Level::System, None, None) => Ok(ConfigLevel::System),
            (Level::System, ..) => Err(Error::usage(
                "the system level has neither --identifier nor --resource; leave them out",
            )),
            (Level::Resource, None, Some(ResourceOrAll::One(resource))) => {
                Ok(ConfigLevel::Resource(resource))
            }
            (Level::Resource, Some(name), None) => Ok(ConfigLevel::Resource(
                Resource::parse(name).map_err(zae_limiter::Error::from)?,
            )),
            (Level::Resource, ..) => Err(Error::usage(
                "the resource level needs one name; pass --resource NAME",
            )),
            (Level::Entity, None, _) => Err(Error::usage(
                "the entity level needs an entity; pass --identifier ID",
            )),
            (Level::Entity, Some(entity), resource) => {
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
    coordinates: Coordinates,
    /// The limits, in place of all that the level has: a list, or a map by name
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// What happens to calls while the table cannot be reached
    #[arg(long, value_name = "allow|block")]
    on_unavailable: Option<OnUnavailable>,
    /// For how many days audit events are kept (system level)
    #[arg(long, value_name = "DAYS")]
    audit_retention_days: Option<u32>,
    /// Whether a newer client may update the functions (system level)
    #[arg(long, value_name = "BOOL")]
    auto_update: Option<bool>,
    /// Whether a version mismatch is an error (system level)
    #[arg(long, value_name = "BOOL")]
    strict_version: Option<bool>,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer> {
    match command {
        Command::Get(coordinates) => {
            let level = coordinates.level()?;
            show(&context.limiter().await?, &level).await
        }
        Command::Set(arguments) => {
            let level = arguments.coordinates.level()?;
            let mut change = ConfigChange::new();
            if let Some(limits) = arguments.limits {
                let limits = form::limits_from_json(&limits)
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
            changed(&context.limiter().await?, &level, change).await
        }
    }
}

/// The limits of a level, as its own command takes them.
#[derive(Debug, Args)]
pub(crate) struct LimitArguments {
    /// A limit: NAME:CAPACITY[/PERIOD][:BURST][@REFILL], PERIOD being sec, min (default), hour, day or such as 90s
    /// (repeatable)
    #[arg(short, long = "limit", value_name = "LIMIT", required = true)]
    limits: Vec<Limit>,
    /// What happens to calls while the table cannot be reached [default: as it is]
    #[arg(long, value_name = "allow|block")]
    on_unavailable: Option<OnUnavailable>,
}

impl LimitArguments {
    pub(crate) fn parts(self) -> (Vec<Limit>, Option<OnUnavailable>) {
        (self.limits, self.on_unavailable)
    }
}

/// Stores the limits of a level, and its policy if one is given.
pub(crate) async fn store(
    limiter: &RateLimiter,
    level: &ConfigLevel,
    limits: Vec<Limit>,
    policy: Option<OnUnavailable>,
) -> Result<Answer> {
    let mut change = ConfigChange::new().limits(limits);
    if let Some(policy) = policy {
        change = change.on_unavailable(policy);
    }
    changed(limiter, level, change).await
}

async fn changed(limiter: &RateLimiter, level: &ConfigLevel, change: ConfigChange) -> Result<Answer> {
    let record = limiter.set_config(level, change).await?;
    Ok(Answer::of(Done {
        sentence: format!("stored for {level}:"),
        now: Config::of(level, Some(&record)),
    }))
}

/// Shows what a level has stored.
pub(crate) async fn show(limiter: &RateLimiter, level: &ConfigLevel) -> Result<Answer> {
    let record = limiter.get_config(level).await?;
    Ok(Answer::of(Config::of(level, record.as_ref())))
}

#[derive(Debug, Serialize)]
struct Deleted {
    #[serde(skip)]
    level_text: String,
    level: zae_limiter::LevelKind,
    entity_id: Option<EntityId>,
    resource: Option<String>,
    deleted: bool,
}

impl Text for Deleted {
    fn text(&self, _: &View) -> String {
        if self.deleted {
            format!("deleted the configuration of {}", self.level_text)
        } else {
            format!("nothing to delete: {} has no configuration", self.level_text)
        }
    }
}

/// Deletes what a level has stored, once the name was confirmed.
pub(crate) async fn deleted(context: &Context, level: &ConfigLevel, name: &str, yes: bool) -> Result<Answer> {
    confirm_by_name(&format!("delete the limits of {level}"), name, yes)?;
    let deleted = context.limiter().await?.delete_config(level).await?;
    Ok(Answer::of(Deleted {
        level_text: level.to_string(),
        level: level.kind(),
        entity_id: level.entity().cloned(),
        resource: level.resource_key().map(str::to_owned),
        deleted,
    }))
}
