//! `entity`: manage entities and their limits.

mod limits;
mod list;

use clap::{Args, Subcommand};
use zae_limiter::error::NotFound;
use zae_limiter::{EntityChange, EntityId, Error as Limiter, NewEntity, Repository};

use super::record_reports::EntityReport;
use crate::command_output::{CommandOutput, Text, WithMessage};
use crate::confirm::confirm_by_name;
use crate::context::Context;
use crate::error::Result;
use crate::output::{View, grouped};
use crate::parse;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create an entity
    #[command(after_help = "Examples:
  zae-limiter entity create project-1 --display-name \"Search\"
  zae-limiter entity create key-1 --parent project-1 --cascade --metadata tier=gold")]
    Create(Create),
    /// Show an entity
    #[command(after_help = "Example:
  zae-limiter entity show user-1")]
    Show(EntityArgument),
    /// Change an entity; other fields stay as they are
    #[command(after_help = "Examples:
  zae-limiter entity update key-1 --parent project-2
  zae-limiter entity update key-1 --no-parent --no-cascade")]
    Update(Update),
    /// Give an entity another parent, or none; leases in flight refund where they took
    #[command(after_help = "Examples:
  zae-limiter entity set-parent key-1 project-2 --reason \"moved to search\"
  zae-limiter entity set-parent key-1 --none")]
    SetParent(SetParent),
    /// Delete an entity with its buckets, limits, and usage; keeps its audit events
    #[command(after_help = "Examples:
  zae-limiter entity delete user-1
  zae-limiter entity delete user-1 --yes       # without a prompt")]
    Delete(Delete),
    /// List entities
    #[command(after_help = "Examples:
  zae-limiter entity list
  zae-limiter entity list --with-custom-limits gpt-4")]
    List(list::List),
    /// List the children of an entity
    #[command(after_help = "Example:
  zae-limiter entity children project-1")]
    Children(list::Children),
    /// Set the limits of an entity, replacing its current limits
    #[command(after_help = "Examples:
  zae-limiter entity set-limits user-1 --resource gpt-4 -l rpm:1000 -l tpm:100000/min:150000
  zae-limiter entity set-limits user-1 -l tpd:1000000/day    # on all other resources
  zae-limiter entity set-limits user-1 --resource gpt-4 -l rpm:5000 --until 7d --reason launch")]
    SetLimits(limits::Set),
    /// Show the limits of an entity
    #[command(after_help = "Examples:
  zae-limiter entity get-limits user-1
  zae-limiter entity get-limits user-1 --resource gpt-4")]
    GetLimits(limits::Get),
    /// Delete the limits of an entity, so that the next level applies
    #[command(after_help = "Examples:
  zae-limiter entity delete-limits user-1 --resource gpt-4
  zae-limiter entity delete-limits user-1 --yes       # without a prompt")]
    DeleteLimits(limits::Delete),
    /// List the resources for which entities have their own limits
    #[command(after_help = "Example:
  zae-limiter entity list-resources")]
    ListResources(list::Resources),
}

#[derive(Debug, Args)]
pub(crate) struct EntityArgument {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// ID of the new entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// Display name [default: the ID]
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// Parent entity, which must exist
    #[arg(long, value_name = "ENTITY")]
    parent: Option<EntityId>,
    /// Also charge the parent for what this entity acquires
    #[arg(long, overrides_with = "no_cascade")]
    cascade: bool,
    /// Charge only this entity [default]
    #[arg(long)]
    no_cascade: bool,
    /// Metadata entry (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::metadata_entry)]
    metadata: Vec<(String, serde_json::Value)>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct UpdateArguments {
    /// New display name
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// New parent, which must exist
    #[arg(long, value_name = "ENTITY")]
    parent: Option<EntityId>,
    /// Remove the parent
    #[arg(long, conflicts_with = "parent")]
    no_parent: bool,
    /// Also charge the parent for what this entity acquires
    #[arg(long)]
    cascade: bool,
    /// Charge only this entity
    #[arg(long, conflicts_with = "cascade")]
    no_cascade: bool,
    /// Metadata entry to set (repeatable); the other entries stay
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::metadata_entry)]
    metadata: Vec<(String, serde_json::Value)>,
    /// Key of a metadata entry to remove (repeatable)
    #[arg(long, value_name = "KEY", conflicts_with = "no_metadata")]
    remove_metadata: Vec<String>,
    /// Remove all metadata entries except those set with --metadata
    #[arg(long)]
    no_metadata: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    #[command(flatten)]
    changes: UpdateArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SetParent {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// New parent, which must exist
    #[arg(value_name = "PARENT", required_unless_present = "none")]
    parent: Option<EntityId>,
    /// Remove the parent
    #[arg(long, conflicts_with = "parent")]
    none: bool,
    /// Reason, for the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// Skip the confirmation prompt
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::Create(arguments) => create(arguments, &context.repository().await?).await,
        Command::Show(EntityArgument { entity }) => {
            let found = context.repository().await?.get_entity(&entity).await?;
            Ok(CommandOutput::new(EntityReport::from(
                found.ok_or(Limiter::NotFound(NotFound::Entity { entity }))?,
            )))
        }
        Command::Update(arguments) => update(arguments, &context.repository().await?).await,
        Command::SetParent(arguments) => set_parent(arguments, &context.repository().await?).await,
        Command::Delete(arguments) => delete(arguments, context).await,
        Command::List(arguments) => list::list(arguments, &context.repository().await?).await,
        Command::Children(arguments) => list::children(arguments, &context.repository().await?).await,
        Command::ListResources(_) => list::resources(&context.repository().await?).await,
        Command::SetLimits(arguments) => limits::set(arguments, &context.repository().await?).await,
        Command::GetLimits(arguments) => limits::get(arguments, &context.repository().await?).await,
        Command::DeleteLimits(arguments) => limits::delete(arguments, context).await,
    }
}

async fn create(arguments: Create, repository: &Repository) -> Result<CommandOutput> {
    let mut entity = NewEntity::new(arguments.entity.as_str())
        .cascade(arguments.cascade)
        .metadata(arguments.metadata);
    if let Some(parent) = arguments.parent {
        entity = entity.parent(parent.as_str());
    }
    if let Some(name) = arguments.display_name {
        entity = entity.name(name);
    }
    let created = repository.create_entity(entity).await?;
    Ok(CommandOutput::new(WithMessage {
        message: format!("created entity {}", created.id),
        report: EntityReport::from(created),
    }))
}

async fn set_parent(arguments: SetParent, repository: &Repository) -> Result<CommandOutput> {
    let mut change = match &arguments.parent {
        Some(parent) => EntityChange::new().parent(parent),
        None => EntityChange::new().without_parent(),
    };
    if let Some(reason) = arguments.reason {
        change = change.reason(reason);
    }
    let updated = repository.update_entity(&arguments.entity, change).await?;
    Ok(CommandOutput::new(WithMessage {
        message: format!("updated entity {}", updated.id),
        report: EntityReport::from(updated),
    }))
}

async fn update(arguments: Update, repository: &Repository) -> Result<CommandOutput> {
    let given = arguments.changes;
    let mut change = EntityChange::new();
    if let Some(name) = given.display_name {
        change = change.name(name);
    }
    if let Some(parent) = given.parent {
        change = change.parent(parent.as_str());
    } else if given.no_parent {
        change = change.without_parent();
    }
    if given.cascade || given.no_cascade {
        change = change.cascade(given.cascade);
    }
    change = if given.no_metadata {
        change.replace_metadata(given.metadata)
    } else {
        change
            .metadata(given.metadata)
            .without_metadata(given.remove_metadata)
    };
    let entity = repository.update_entity(&arguments.entity, change).await?;
    Ok(CommandOutput::new(WithMessage {
        message: format!("updated entity {}", entity.id),
        report: EntityReport::from(entity),
    }))
}

#[derive(Debug, serde::Serialize)]
struct DeletionReport {
    entity_id: EntityId,
    records_deleted: usize,
}

impl Text for DeletionReport {
    fn text(&self, _: &View) -> String {
        let records = grouped(i128::try_from(self.records_deleted).unwrap_or(i128::MAX));
        format!("deleted entity {} ({records} records)", self.entity_id)
    }
}

async fn delete(arguments: Delete, context: &Context) -> Result<CommandOutput> {
    let entity = arguments.entity;
    confirm_by_name(
        &format!("delete entity {entity} with its buckets, limits, and usage"),
        entity.as_str(),
        arguments.yes,
    )?;
    let records_deleted = context.repository().await?.delete_entity(&entity).await?;
    Ok(CommandOutput::new(DeletionReport {
        entity_id: entity,
        records_deleted,
    }))
}
