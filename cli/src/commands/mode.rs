//! `mode`: whether the limits of a level are enforced.

use clap::{Args, Subcommand};
use serde::Serialize;
use zae_limiter::usage::{Observed, ObservedEntity};
use zae_limiter::{
    Clock as _, ConfigLevel, ConfigOrigin, EntityId, LevelKind, Mode, PageRequest, Repository, Resource,
    SystemClock, Timestamp,
};

use crate::command_output::{CommandOutput, Text};
use crate::confirm::confirm;
use crate::context::Context;
use crate::error::Result;
use crate::output::live;
use crate::output::{Align, TextTable, View, grouped};
use crate::parse;

/// At most this many entities are listed before the question whether to enforce.
const LISTED: usize = 20;
const WEEK_SECONDS: i64 = 7 * 86_400;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the mode of a level, and for an entity on a resource the one that applies
    #[command(after_help = "Examples:
  zae-limiter mode get --resource gpt-4
  zae-limiter mode get --entity user-1 --resource gpt-4
  zae-limiter mode get --system")]
    Get(LevelArguments),
    /// Set the mode of a level: enforce, observe, bypass, or disabled
    #[command(
        long_about = "Set the mode of a level.\n\nThe most specific level with a mode decides: entity and resource, entity, \
                      resource, system. Before limits that are observed are enforced, the entities are listed that would \
                      have been refused.",
        after_help = "Examples:
  zae-limiter mode set observe --resource gpt-4
  zae-limiter mode set enforce --resource gpt-4 --since 30d    # shows who would be refused, and asks
  zae-limiter mode set disabled --resource gpt-4 --now         # holds with the next write to each bucket
  zae-limiter mode set enforce --entity tester --resource gpt-4"
    )]
    Set(Set),
    /// Clear the mode of a level: the next level decides
    #[command(after_help = "Examples:
  zae-limiter mode clear --entity tester --resource gpt-4
  zae-limiter mode clear --system --yes       # without a question")]
    Clear(Clear),
}

/// A level.
#[derive(Debug, Args)]
#[group(id = "scope", required = true, multiple = true, args = ["entity", "resource", "system"])]
pub(crate) struct LevelArguments {
    /// One entity, on the resource or on all
    #[arg(short, long, value_name = "ENTITY")]
    entity: Option<EntityId>,
    /// One resource, for the entity or for all
    #[arg(short, long, value_name = "RESOURCE")]
    resource: Option<Resource>,
    /// Every entity on every resource
    #[arg(long, conflicts_with_all = ["entity", "resource"])]
    system: bool,
}

impl LevelArguments {
    fn level(self) -> ConfigLevel {
        match (self.entity, self.resource) {
            (None, None) => ConfigLevel::System,
            (None, Some(resource)) => ConfigLevel::Resource(resource),
            (Some(entity), None) => ConfigLevel::EntityDefault(entity),
            (Some(entity), Some(resource)) => ConfigLevel::Entity(entity, resource),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Change {
    #[command(flatten)]
    level: LevelArguments,
    /// Make the change hold with the next write to each bucket, instead of within a minute
    #[arg(long)]
    now: bool,
    /// Windows of usage that are looked at before limits are enforced: a time, or an age such as 30d [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = parse::timestamp)]
    since: Option<Timestamp>,
    /// Skip the question
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// enforce, observe, bypass, or disabled
    #[arg(value_name = "MODE")]
    mode: Mode,
    #[command(flatten)]
    change: Change,
}

#[derive(Debug, Args)]
pub(crate) struct Clear {
    #[command(flatten)]
    change: Change,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::Get(arguments) => get(arguments.level(), context).await,
        Command::Set(Set { mode, change }) => store(Some(mode), change, context).await,
        Command::Clear(Clear { change }) => store(None, change, context).await,
    }
}

async fn get(level: ConfigLevel, context: &Context) -> Result<CommandOutput> {
    let repository = context.repository().await?;
    let mode = repository.get_mode(&level).await?;
    let applies = match &level {
        ConfigLevel::Entity(entity, resource) => {
            let resolved = repository.resolve_limits(entity, resource).await?;
            Some(Applies {
                mode: resolved.mode,
                from: resolved.mode_from,
            })
        }
        _ => None,
    };
    Ok(CommandOutput::new(ModeReport {
        applies,
        ..ModeReport::new(&level, mode)
    }))
}

async fn store(mode: Option<Mode>, change: Change, context: &Context) -> Result<CommandOutput> {
    let Change {
        level,
        now,
        since,
        yes,
    } = change;
    let level = level.level();
    let repository = context.repository().await?;
    let before = repository.get_mode(&level).await?;
    let may_enforce =
        matches!(mode, Some(Mode::Enforce)) || (mode.is_none() && before == Some(Mode::Observe));
    let observed = if may_enforce {
        repository.catch_up_usage().await?;
        let since = since.unwrap_or_else(|| {
            Timestamp::from_seconds(SystemClock::default().now().seconds() - WEEK_SECONDS)
        });
        let observed = repository.list_observed(&level, since).await?;
        if before == Some(Mode::Observe) || !observed.entities.is_empty() {
            ask(&level, &observed, context, yes)?;
        }
        Some(observed)
    } else {
        None
    };
    let mode = match mode {
        Some(mode) => repository.set_mode(&level, mode).await?.mode,
        None => {
            repository.delete_mode(&level).await?;
            None
        }
    };
    let refreshed = if now {
        Some(refresh(&repository, &level, context).await?)
    } else {
        None
    };
    Ok(CommandOutput::new(ModeReport {
        before,
        changed: Some(before != mode),
        refreshed,
        observed,
        ..ModeReport::new(&level, mode)
    }))
}

/// Shows who would be refused, and asks.
fn ask(level: &ConfigLevel, observed: &Observed, context: &Context, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    live::print(&format!("{}\n", observed_text(observed, &context.terminal.view)));
    confirm(&format!("Enforce the limits of {level}?"), yes)
}

/// Pages through the buckets of the level. Says how far it is, because there may be millions.
async fn refresh(repository: &Repository, level: &ConfigLevel, context: &Context) -> Result<u64> {
    let mut page = PageRequest::new(PageRequest::MAX_SIZE);
    let mut buckets = 0;
    loop {
        let refreshed = repository.refresh_buckets(level, &page).await?;
        buckets += refreshed.buckets;
        let Some(next) = refreshed.next else {
            if context.terminal.live {
                live::print(live::CLEAR);
            }
            return Ok(buckets);
        };
        if context.terminal.live {
            let line = format!("{} buckets refreshed", grouped(buckets));
            live::print(&format!("{}{}", live::CLEAR, live::cut(&line, live::width())));
        }
        page = page.after(next);
    }
}

/// The mode that applies to an entity on a resource.
#[derive(Debug, Serialize)]
struct Applies {
    mode: Mode,
    from: ConfigOrigin,
}

#[derive(Debug, Serialize)]
struct ModeReport {
    #[serde(skip)]
    level_text: String,
    level: LevelKind,
    entity_id: Option<EntityId>,
    resource: Option<String>,
    /// The mode of the level; null if it has none.
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applies: Option<Applies>,
    /// The mode before the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<bool>,
    /// How many buckets hold the change with their next write.
    #[serde(skip_serializing_if = "Option::is_none")]
    refreshed: Option<u64>,
    /// Who would have been refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<Observed>,
}

impl ModeReport {
    fn new(level: &ConfigLevel, mode: Option<Mode>) -> Self {
        Self {
            level_text: level.to_string(),
            level: level.kind(),
            entity_id: level.entity().cloned(),
            resource: level.resource_key().map(str::to_owned),
            mode,
            applies: None,
            before: None,
            changed: None,
            refreshed: None,
            observed: None,
        }
    }
}

impl Text for ModeReport {
    fn text(&self, _: &View) -> String {
        let level = &self.level_text;
        let mut lines = vec![match (self.mode, self.before) {
            (Some(mode), _) => format!("{level}: {mode}"),
            (None, Some(before)) => format!("{level}: no mode any more; it was {before}"),
            (None, None) => format!("{level}: no mode"),
        }];
        if let Some(applies) = &self.applies {
            lines.push(format!("applies: {}, from {}", applies.mode, applies.from));
        }
        match self.refreshed {
            Some(buckets) => lines.push(format!(
                "{} buckets refreshed: the change holds with the next write to each",
                grouped(buckets)
            )),
            None if self.changed == Some(true) => {
                lines.push("the change holds within a minute; --now makes it hold sooner".to_owned());
            }
            None => {}
        }
        lines.join("\n")
    }
}

/// Who would have been refused, those with the most refusals first.
fn observed_text(observed: &Observed, view: &View) -> String {
    if observed.entities.is_empty() {
        let of = if observed.complete {
            ""
        } else {
            " in the newest part of the usage"
        };
        return format!("No call would have been refused{of}.");
    }
    let mut table = TextTable::new([
        ("Entity", Align::Left),
        ("Resource", Align::Left),
        ("Would be refused", Align::Right),
        ("Acquires", Align::Right),
    ]);
    for ObservedEntity {
        entity,
        resource,
        observed,
        acquires,
        ..
    } in observed.entities.iter().take(LISTED)
    {
        table.row([
            entity.to_string(),
            resource.to_string(),
            grouped(*observed),
            grouped(*acquires),
        ]);
    }
    let mut lines = vec![table.render(view)];
    let more = observed.entities.len().saturating_sub(LISTED);
    if more > 0 {
        lines.push(format!("and {more} more entities"));
    }
    if !observed.complete {
        lines.push("There is more usage than was read.".to_owned());
    }
    lines.join("\n")
}
