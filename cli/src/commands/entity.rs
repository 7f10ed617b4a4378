//! `entity`: who is limited.

mod limits;
mod list;

use clap::{Args, Subcommand};
use zae_limiter::{EntityChange, EntityId, Error as Limiter, NewEntity, RateLimiter};

use super::shown::Entity;
use crate::answer::{Answer, Done, Text};
use crate::ask::confirm_by_name;
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
    Show(One),
    /// Change an entity; what is not mentioned stays
    #[command(after_help = "Examples:
  zae-limiter entity update key-1 --parent project-2
  zae-limiter entity update key-1 --no-parent --no-cascade")]
    Update(Update),
    /// Delete an entity with its buckets, limits and usage; its audit events stay
    Delete(Delete),
    /// List entities
    #[command(after_help = "Examples:
  zae-limiter entity list
  zae-limiter entity list --with-custom-limits gpt-4")]
    List(list::List),
    /// List the children of an entity
    Children(list::Children),
    /// Set the limits of an entity, in place of those it has
    #[command(after_help = "Examples:
  zae-limiter entity set-limits user-1 --resource gpt-4 -l rpm:1000 -l tpm:100000/min:150000
  zae-limiter entity set-limits user-1 -l tpd:1000000/day      (on every resource without limits of its own)")]
    SetLimits(limits::Set),
    /// Show the limits of an entity
    GetLimits(limits::Get),
    /// Delete the limits of an entity, so that those of the next level count
    DeleteLimits(limits::Delete),
    /// List the resources for which entities have limits of their own
    ListResources(list::Resources),
}

#[derive(Debug, Args)]
pub(crate) struct One {
    /// The entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The new entity's id
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// A name for people [default: the id]
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// The entity above it, which must exist
    #[arg(long, value_name = "ENTITY")]
    parent: Option<EntityId>,
    /// What it acquires counts on the parent too
    #[arg(long, overrides_with = "no_cascade")]
    cascade: bool,
    /// It does not (the default)
    #[arg(long)]
    no_cascade: bool,
    /// A note (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::note)]
    metadata: Vec<(String, serde_json::Value)>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct Changes {
    /// Another name for people
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// Another parent, which must exist
    #[arg(long, value_name = "ENTITY")]
    parent: Option<EntityId>,
    /// No parent any more
    #[arg(long, conflicts_with = "parent")]
    no_parent: bool,
    /// What it acquires counts on the parent too
    #[arg(long)]
    cascade: bool,
    /// What it acquires counts on itself only
    #[arg(long, conflicts_with = "cascade")]
    no_cascade: bool,
    /// A note (repeatable); together they take the place of all that it has
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::note)]
    metadata: Vec<(String, serde_json::Value)>,
    /// No notes any more
    #[arg(long, conflicts_with = "metadata")]
    no_metadata: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    #[command(flatten)]
    changes: Changes,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer> {
    match command {
        Command::Create(arguments) => create(arguments, &context.limiter().await?).await,
        Command::Show(One { entity }) => {
            let found = context.limiter().await?.get_entity(&entity).await?;
            Ok(Answer::of(Entity::from(
                found.ok_or(Limiter::EntityNotFound { entity })?,
            )))
        }
        Command::Update(arguments) => update(arguments, &context.limiter().await?).await,
        Command::Delete(arguments) => delete(arguments, context).await,
        Command::List(arguments) => list::list(arguments, &context.limiter().await?).await,
        Command::Children(arguments) => list::children(arguments, &context.limiter().await?).await,
        Command::ListResources(_) => list::resources(&context.limiter().await?).await,
        Command::SetLimits(arguments) => limits::set(arguments, &context.limiter().await?).await,
        Command::GetLimits(arguments) => limits::get(arguments, &context.limiter().await?).await,
        Command::DeleteLimits(arguments) => limits::delete(arguments, context).await,
    }
}

async fn create(arguments: Create, limiter: &RateLimiter) -> Result<Answer> {
    let mut entity = NewEntity::new(arguments.entity.as_str())
        .cascade(arguments.cascade)
        .metadata(arguments.metadata);
    if let Some(parent) = arguments.parent {
        entity = entity.parent(parent.as_str());
    }
    if let Some(name) = arguments.display_name {
        entity = entity.name(name);
    }
    let created = limiter.create_entity(entity).await?;
    Ok(Answer::of(Done {
        sentence: format!("created entity {}", created.id),
        now: Entity::from(created),
    }))
}

async fn update(arguments: Update, limiter: &RateLimiter) -> Result<Answer> {
    let wanted = arguments.changes;
    let mut change = EntityChange::new();
    if let Some(name) = wanted.display_name {
        change = change.name(name);
    }
    if let Some(parent) = wanted.parent {
        change = change.parent(parent.as_str());
    } else if wanted.no_parent {
        change = change.without_parent();
    }
    if wanted.cascade || wanted.no_cascade {
        change = change.cascade(wanted.cascade);
    }
    if !wanted.metadata.is_empty() || wanted.no_metadata {
        change = change.metadata(wanted.metadata);
    }
    let entity = limiter.update_entity(&arguments.entity, change).await?;
    Ok(Answer::of(Done {
        sentence: format!("updated entity {}", entity.id),
        now: Entity::from(entity),
    }))
}

#[derive(Debug, serde::Serialize)]
struct Deleted {
    entity_id: EntityId,
    records_deleted: usize,
}

impl Text for Deleted {
    fn text(&self, _: &View) -> String {
        let records = grouped(i128::try_from(self.records_deleted).unwrap_or(i128::MAX));
        format!("deleted entity {} ({records} records)", self.entity_id)
    }
}

async fn delete(arguments: Delete, context: &Context) -> Result<Answer> {
    let entity = arguments.entity;
    confirm_by_name(
        &format!("delete entity {entity} with its buckets, limits and usage"),
        entity.as_str(),
        arguments.yes,
    )?;
    let records_deleted = context.limiter().await?.delete_entity(&entity).await?;
    Ok(Answer::of(Deleted {
        entity_id: entity,
        records_deleted,
    }))
}
