//! How changes are shown.

use serde::Serialize;
use zae_limiter::{ConfigLevel, EntityId, LevelKind, Limit, OnUnavailable};

use super::difference::{Action, Change, Changes};
use super::manifest::Wanted;
use crate::answer::Text;
use crate::output::{Paint, View};

/// What will be, or was, done.
#[derive(Debug, Serialize)]
pub(super) struct Plan {
    applied: bool,
    changes: Vec<Shown>,
    summary: Summary,
}

/// The file next to the table.
#[derive(Debug, Serialize)]
pub(super) struct Diff {
    differences: Vec<Shown>,
    /// Levels of the table about which the file says nothing.
    unmanaged: Vec<Unmanaged>,
}

#[derive(Debug, Serialize)]
struct Summary {
    create: usize,
    update: usize,
    delete: usize,
    unchanged: usize,
}

#[derive(Debug, Serialize)]
struct Shown {
    action: Action,
    #[serde(flatten)]
    place: Place,
    before: Option<Config>,
    after: Option<Config>,
}

#[derive(Debug, Serialize)]
struct Unmanaged {
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    config: Config,
}

#[derive(Debug, Serialize)]
struct Place {
    #[serde(skip)]
    text: String,
    level: LevelKind,
    entity_id: Option<EntityId>,
    resource: Option<String>,
}

#[derive(Debug, Serialize)]
struct Config {
    limits: Vec<Limit>,
    on_unavailable: Option<OnUnavailable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_retention_days: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_update: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict_version: Option<bool>,
    #[serde(skip)]
    lines: Vec<String>,
}

impl From<ConfigLevel> for Place {
    fn from(level: ConfigLevel) -> Self {
        Self {
            text: level.to_string(),
            level: level.kind(),
            entity_id: level.entity().cloned(),
            resource: level.resource_key().map(str::to_owned),
        }
    }
}

impl From<Wanted> for Config {
    fn from(wanted: Wanted) -> Self {
        let mut lines: Vec<String> = wanted.limits.iter().map(ToString::to_string).collect();
        let settings = [
            (
                "on_unavailable",
                wanted.on_unavailable.map(|policy| policy.to_string()),
            ),
            (
                "audit_retention_days",
                wanted.system.audit_retention_days.map(|days| days.to_string()),
            ),
            (
                "auto_update",
                wanted.system.auto_update.map(|flag| flag.to_string()),
            ),
            (
                "strict_version",
                wanted.system.strict_version.map(|flag| flag.to_string()),
            ),
        ];
        lines.extend(
            settings
                .into_iter()
                .filter_map(|(name, value)| Some(format!("{name}: {}", value?))),
        );
        Self {
            lines,
            limits: wanted.limits.iter().cloned().collect(),
            on_unavailable: wanted.on_unavailable,
            audit_retention_days: wanted.system.audit_retention_days,
            auto_update: wanted.system.auto_update,
            strict_version: wanted.system.strict_version,
        }
    }
}

impl From<Change> for Shown {
    fn from(change: Change) -> Self {
        Self {
            action: change.action,
            place: change.level.into(),
            before: change.before.map(Config::from),
            after: change.after.map(Config::from),
        }
    }
}

impl Shown {
    fn lines(config: Option<&Config>) -> &[String] {
        config.map(|config| config.lines.as_slice()).unwrap_or_default()
    }

    /// What goes and what comes, line by line; with `whole`, what stays as well.
    fn text(&self, paint: Paint, whole: bool) -> String {
        let sign = match self.action {
            Action::Create => paint.good("+"),
            Action::Update => paint.changed("~"),
            Action::Delete => paint.bad("-"),
        };
        let (before, after) = (
            Self::lines(self.before.as_ref()),
            Self::lines(self.after.as_ref()),
        );
        let mut lines = vec![format!("{sign} {}", self.place.text)];
        lines.extend(
            before
                .iter()
                .filter(|line| !after.contains(line))
                .map(|line| paint.bad(&format!("    - {line}"))),
        );
        for line in after {
            if !before.contains(line) {
                lines.push(paint.good(&format!("    + {line}")));
            } else if whole {
                lines.push(format!("      {line}"));
            }
        }
        lines.join("\n")
    }
}

impl Plan {
    pub(super) fn of(changes: Changes, applied: bool) -> Self {
        Self {
            applied,
            summary: Summary {
                create: changes.count(Action::Create),
                update: changes.count(Action::Update),
                delete: changes.count(Action::Delete),
                unchanged: changes.unchanged,
            },
            changes: changes.list.into_iter().map(Shown::from).collect(),
        }
    }
}

impl Text for Plan {
    fn text(&self, view: &View) -> String {
        if self.changes.is_empty() {
            return format!(
                "no changes: the {} levels of the file are as it says",
                self.summary.unchanged
            );
        }
        let mut lines: Vec<String> = self
            .changes
            .iter()
            .map(|change| change.text(view.paint, false))
            .collect();
        let Summary {
            create,
            update,
            delete,
            unchanged,
        } = &self.summary;
        lines.push(if self.applied {
            format!("{create} created, {update} updated, {delete} deleted, {unchanged} unchanged")
        } else {
            format!("{create} to create, {update} to update, {delete} to delete, {unchanged} unchanged")
        });
        lines.join("\n")
    }
}

impl Diff {
    pub(super) fn of(changes: Changes, unmanaged: Vec<(ConfigLevel, Wanted)>) -> Self {
        Self {
            differences: changes.list.into_iter().map(Shown::from).collect(),
            unmanaged: unmanaged
                .into_iter()
                .map(|(level, wanted)| Unmanaged {
                    place: level.into(),
                    config: wanted.into(),
                })
                .collect(),
        }
    }
}

impl Text for Diff {
    fn text(&self, view: &View) -> String {
        let mut lines: Vec<String> = self
            .differences
            .iter()
            .map(|change| change.text(view.paint, true))
            .collect();
        if lines.is_empty() {
            lines.push("no differences".to_owned());
        }
        if !self.unmanaged.is_empty() {
            lines.push("not managed by the file:".to_owned());
        }
        for level in &self.unmanaged {
            let line = format!("    {}: {}", level.place.text, level.config.lines.join(" "));
            lines.push(view.paint.faint(&line));
        }
        lines.join("\n")
    }
}
