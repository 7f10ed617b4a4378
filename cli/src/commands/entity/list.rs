//! `entity list`, `children`, and `list-resources`.

use clap::Args;
use serde::Serialize;
use zae_limiter::{ConfigLevel, EntityId, Repository};

use crate::command_output::{CommandOutput, Text};
use crate::commands::pagination::{self, total};
use crate::commands::record_reports::EntityReport;
use crate::error::Result;
use crate::output::{Align, TextTable, View};
use crate::parse::ResourceOrAll;

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List only entities with their own limits for this resource (or `_default_`); cheaper than a full scan
    #[arg(long, value_name = "RESOURCE")]
    with_custom_limits: Option<ResourceOrAll>,
    /// List at most N [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct Children {
    /// Parent entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// List at most N [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
}

/// No arguments.
#[derive(Debug, Args)]
pub(crate) struct Resources {}

#[derive(Debug, Serialize)]
struct Entities {
    entities: Vec<EntityReport>,
    count: usize,
    truncated: bool,
}

impl Text for Entities {
    fn text(&self, view: &View) -> String {
        let mut table = TextTable::new([
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
struct EntitiesWithLimits {
    resource: String,
    entity_ids: Vec<EntityId>,
    count: usize,
    truncated: bool,
}

impl Text for EntitiesWithLimits {
    fn text(&self, _: &View) -> String {
        let mut lines: Vec<String> = self.entity_ids.iter().map(ToString::to_string).collect();
        let total = total(self.count, "entity", "entities", self.truncated);
        lines.push(format!("{total} with custom limits for {}", self.resource));
        lines.join("\n")
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

pub(super) async fn list(arguments: List, repository: &Repository) -> Result<CommandOutput> {
    if let Some(resource) = arguments.with_custom_limits {
        let resource = resource.resource();
        let fetch = |page| async move { repository.list_entities_with_custom_limits(resource, &page).await };
        let listed = pagination::collect(arguments.limit, fetch, |_| true).await?;
        return Ok(CommandOutput::new(EntitiesWithLimits {
            resource: resource
                .map_or(ConfigLevel::DEFAULT_RESOURCE, |resource| resource.as_str())
                .to_owned(),
            count: listed.items.len(),
            truncated: listed.truncated,
            entity_ids: listed.items,
        }));
    }
    let fetch = |page| async move { repository.list_entities(&page).await };
    let listed = pagination::collect(arguments.limit, fetch, |_| true).await?;
    let mut entities: Vec<EntityReport> = listed.items.into_iter().map(EntityReport::from).collect();
    // A scan returns items in no particular order.
    entities.sort_by(|one, other| one.entity_id.cmp(&other.entity_id));
    Ok(CommandOutput::new(Entities {
        count: entities.len(),
        truncated: listed.truncated,
        entities,
    }))
}

pub(super) async fn children(arguments: Children, repository: &Repository) -> Result<CommandOutput> {
    let parent = &arguments.entity;
    let fetch = |page| async move { repository.list_children(parent, &page).await };
    let listed = pagination::collect(arguments.limit, fetch, |_| true).await?;
    let entities: Vec<EntityReport> = listed.items.into_iter().map(EntityReport::from).collect();
    Ok(CommandOutput::new(Entities {
        count: entities.len(),
        truncated: listed.truncated,
        entities,
    }))
}

pub(super) async fn resources(repository: &Repository) -> Result<CommandOutput> {
    let resources = repository.list_resources_with_entity_configs().await?;
    Ok(CommandOutput::new(ResourceNames {
        count: resources.len(),
        resources,
    }))
}
