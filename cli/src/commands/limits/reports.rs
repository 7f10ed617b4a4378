//! Reports of `limits plan`, `apply`, and `diff`.

use serde::Serialize;
use zae_limiter::money::Prices;
use zae_limiter::{ConfigLevel, EntityId, LevelKind, Limit, Mode, OnUnavailable};
use zae_limiter_limits::{Action, LevelChange, LevelChanges, LevelSettings};

use crate::command_output::Text;
use crate::output::{Paint, View};

/// The changes that were made or would be made.
#[derive(Debug, Serialize)]
pub(super) struct PlanReport {
    applied: bool,
    changes: Vec<ChangeReport>,
    summary: Summary,
}

/// The differences between the file and the table.
#[derive(Debug, Serialize)]
pub(super) struct DiffReport {
    differences: Vec<ChangeReport>,
    /// Levels in the table that the file does not manage.
    unmanaged: Vec<UnmanagedReport>,
}

#[derive(Debug, Serialize)]
struct Summary {
    create: usize,
    update: usize,
    delete: usize,
    unchanged: usize,
}

#[derive(Debug, Serialize)]
struct ChangeReport {
    action: Action,
    #[serde(flatten)]
    level: LevelReport,
    before: Option<SettingsReport>,
    after: Option<SettingsReport>,
}

#[derive(Debug, Serialize)]
struct UnmanagedReport {
    #[serde(flatten)]
    level: LevelReport,
    #[serde(flatten)]
    config: SettingsReport,
}

#[derive(Debug, Serialize)]
struct LevelReport {
    #[serde(skip)]
    text: String,
    level: LevelKind,
    entity_id: Option<EntityId>,
    resource: Option<String>,
}

#[derive(Debug, Serialize)]
struct SettingsReport {
    limits: Vec<Limit>,
    on_unavailable: Option<OnUnavailable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prices: Option<Prices>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_retention_days: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_update: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict_version: Option<bool>,
    #[serde(skip)]
    lines: Vec<String>,
}

impl From<ConfigLevel> for LevelReport {
    fn from(level: ConfigLevel) -> Self {
        Self {
            text: level.to_string(),
            level: level.kind(),
            entity_id: level.entity().cloned(),
            resource: level.resource_key().map(str::to_owned),
        }
    }
}

impl From<LevelSettings> for SettingsReport {
    fn from(settings: LevelSettings) -> Self {
        let mut lines: Vec<String> = settings.limits.iter().map(ToString::to_string).collect();
        let named_settings = [
            (
                "on_unavailable",
                settings.on_unavailable.map(|policy| policy.to_string()),
            ),
            ("mode", settings.mode.map(|mode| mode.to_string())),
            (
                "audit_retention_days",
                settings.system.audit_retention_days.map(|days| days.to_string()),
            ),
            (
                "auto_update",
                settings.system.auto_update.map(|flag| flag.to_string()),
            ),
            (
                "strict_version",
                settings.system.strict_version.map(|flag| flag.to_string()),
            ),
        ];
        lines.extend(
            named_settings
                .into_iter()
                .filter_map(|(name, value)| Some(format!("{name}: {}", value?))),
        );
        if let Some(prices) = &settings.prices {
            let fields = prices.fields().into_iter();
            lines.extend(fields.map(|(name, value)| format!("prices.{name}: {value}")));
        }
        Self {
            lines,
            limits: settings.limits.iter().cloned().collect(),
            mode: settings.mode,
            on_unavailable: settings.on_unavailable,
            prices: settings.prices,
            audit_retention_days: settings.system.audit_retention_days,
            auto_update: settings.system.auto_update,
            strict_version: settings.system.strict_version,
        }
    }
}

impl From<LevelChange> for ChangeReport {
    fn from(change: LevelChange) -> Self {
        Self {
            action: change.action,
            level: change.level.into(),
            before: change.before.map(SettingsReport::from),
            after: change.after.map(SettingsReport::from),
        }
    }
}

impl ChangeReport {
    fn lines(config: Option<&SettingsReport>) -> &[String] {
        config.map(|config| config.lines.as_slice()).unwrap_or_default()
    }

    /// The removed and added lines; with `context`, the unchanged ones as well.
    fn text(&self, paint: Paint, context: bool) -> String {
        let sign = match self.action {
            Action::Create => paint.good("+"),
            Action::Update => paint.changed("~"),
            Action::Delete => paint.bad("-"),
        };
        let (before, after) = (
            Self::lines(self.before.as_ref()),
            Self::lines(self.after.as_ref()),
        );
        let mut lines = vec![format!("{sign} {}", self.level.text)];
        lines.extend(
            before
                .iter()
                .filter(|line| !after.contains(line))
                .map(|line| paint.bad(&format!("    - {line}"))),
        );
        for line in after {
            if !before.contains(line) {
                lines.push(paint.good(&format!("    + {line}")));
            } else if context {
                lines.push(format!("      {line}"));
            }
        }
        lines.join("\n")
    }
}

impl PlanReport {
    pub(super) fn new(changes: LevelChanges, applied: bool) -> Self {
        Self {
            applied,
            summary: Summary {
                create: changes.count(Action::Create),
                update: changes.count(Action::Update),
                delete: changes.count(Action::Delete),
                unchanged: changes.unchanged,
            },
            changes: changes.list.into_iter().map(ChangeReport::from).collect(),
        }
    }
}

impl Text for PlanReport {
    fn text(&self, view: &View) -> String {
        if self.changes.is_empty() {
            return format!(
                "no changes: all {} levels of the file match the table",
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

impl DiffReport {
    pub(super) fn new(changes: LevelChanges, unmanaged: Vec<(ConfigLevel, LevelSettings)>) -> Self {
        Self {
            differences: changes.list.into_iter().map(ChangeReport::from).collect(),
            unmanaged: unmanaged
                .into_iter()
                .map(|(level, settings)| UnmanagedReport {
                    level: level.into(),
                    config: settings.into(),
                })
                .collect(),
        }
    }
}

impl Text for DiffReport {
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
            let line = format!("    {}: {}", level.level.text, level.config.lines.join(" "));
            lines.push(view.paint.faint(&line));
        }
        lines.join("\n")
    }
}
