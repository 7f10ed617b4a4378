//! Lists of entities.

use clap::Args;
use serde::Serialize;
use zae_limiter::{ConfigLevel, EntityId, RateLimiter};

use crate::answer::{Answer, Text};
use crate::commands::pages::{self, total};
use crate::commands::shown::Entity;
use crate::error::Result;
use crate::output::{Align, Table, View};
use crate::parse::ResourceOrAll;

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those with limits of their own for this resource (or `_default_`); cheaper than reading the whole table
    #[arg(long, value_name = "RESOURCE")]
    with_custom_limits: Option<ResourceOrAll>,
    /// At most so many [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct Children {
    /// The parent
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// At most so many [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
}

/// Nothing to say.
#[derive(Debug, Args)]
pub(crate) struct Resources {}

#[derive(Debug, Serialize)]
struct Entities {
    entities: Vec<Entity>,
    count: usize,
    truncated: bool,
}

impl Text for Entities {
    fn text(&self, view: &View) -> String {
        let mut table = Table::new([
            ("Entity", Align::Left),
            ("Name", Align::Left),
            ("Parent", Align::Left),
            ("Cascade", Align::Left),
            ("Created", Align::Left),
        ]);
        for entity in &self.entities {
            table.row([
                entity.entity_id.to_string(),
                entity.name.clone(),
                entity
                    .parent_id
                    .as_ref()
                    .map_or("-", |parent| parent.as_str())
                    .to_owned(),
                if entity.cascade { "yes" } else { "no" }.to_owned(),
                view.zone.show(entity.created_at),
            ]);
        }
        let total = total(self.count, "entity", "entities", self.truncated);
        if self.count == 0 {
            total
        } else {
            format!("{}\n{total}", table.render(view))
        }
    }
}

#[derive(Debug, Serialize)]
struct WithLimits {
    resource: String,
    entity_ids: Vec<EntityId>,
    count: usize,
    truncated: bool,
}

impl Text for WithLimits {
    fn text(&self, _: &View) -> String {
        let mut lines: Vec<String> = self.entity_ids.iter().map(ToString::to_string).collect();
        let total = total(self.count, "entity", "entities", self.truncated);
        lines.push(format!("{total} with limits of their own for {}", self.resource));
        lines.join("\n")
    }
}

#[derive(Debug, Serialize)]
struct Names {
    resources: Vec<String>,
    count: usize,
}

impl Text for Names {
    fn text(&self, _: &View) -> String {
        let mut lines = self.resources.clone();
        lines.push(total(self.count, "resource", "resources", false));
        lines.join("\n")
    }
}

pub(super) async fn list(arguments: List, limiter: &RateLimiter) -> Result<Answer> {
    if let Some(wanted) = arguments.with_custom_limits {
        let resource = wanted.resource();
        let fetch = |page| async move { limiter.list_entities_with_custom_limits(resource, &page).await };
        let listed = pages::all(arguments.limit, fetch, |_| true).await?;
        return Ok(Answer::of(WithLimits {
            resource: resource
                .map_or(ConfigLevel::DEFAULT_RESOURCE, |resource| resource.as_str())
                .to_owned(),
            count: listed.items.len(),
            truncated: listed.truncated,
            entity_ids: listed.items,
        }));
    }
    let fetch = |page| async move { limiter.list_entities(&page).await };
    let listed = pages::all(arguments.limit, fetch, |_| true).await?;
    let mut entities: Vec<Entity> = listed.items.into_iter().map(Entity::from).collect();
    // A scan has no order; people do.
    entities.sort_by(|one, other| one.entity_id.cmp(&other.entity_id));
    Ok(Answer::of(Entities {
        count: entities.len(),
        truncated: listed.truncated,
        entities,
    }))
}

pub(super) async fn children(arguments: Children, limiter: &RateLimiter) -> Result<Answer> {
    let parent = &arguments.entity;
    let fetch = |page| async move { limiter.children(parent, &page).await };
    let listed = pages::all(arguments.limit, fetch, |_| true).await?;
    let entities: Vec<Entity> = listed.items.into_iter().map(Entity::from).collect();
    Ok(Answer::of(Entities {
        count: entities.len(),
        truncated: listed.truncated,
        entities,
    }))
}

pub(super) async fn resources(limiter: &RateLimiter) -> Result<Answer> {
    let resources = limiter.list_resources_with_entity_configs().await?;
    Ok(Answer::of(Names {
        count: resources.len(),
        resources,
    }))
}
