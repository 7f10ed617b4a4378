//! The changes that bring the table in line with the file. Pure functions.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigLevel, SystemSettings};

use crate::manifest::{LevelSettings, Manifest};

/// What is done to a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The level gets a configuration.
    Create,
    /// Its configuration is replaced.
    Update,
    /// Its configuration is deleted.
    Delete,
}

/// The change of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelChange {
    /// The level.
    pub level: ConfigLevel,
    /// What is done to it.
    pub action: Action,
    /// Its stored settings.
    pub before: Option<LevelSettings>,
    /// Its settings in the file.
    pub after: Option<LevelSettings>,
}

/// The changes of all levels, deletions last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LevelChanges {
    /// The levels that change.
    pub list: Vec<LevelChange>,
    /// The number of levels that match the file already.
    pub unchanged: usize,
    /// The levels in the file.
    in_file: BTreeSet<ConfigLevel>,
}

impl LevelChanges {
    /// Compares the levels that are in the file, or were when it was last applied.
    pub(crate) fn between(
        manifest: &Manifest,
        stored: &BTreeMap<ConfigLevel, ConfigRecord>,
        managed: &BTreeSet<ConfigLevel>,
    ) -> Self {
        let mut changes = Self {
            in_file: manifest.levels.keys().cloned().collect(),
            ..Self::default()
        };
        // From the most general level to the most specific.
        for (level, wanted) in manifest.levels.iter().rev() {
            let before = stored
                .get(level)
                .and_then(|record| stored_settings(record, &wanted.system));
            let action = match &before {
                None => Action::Create,
                Some(before) if before != wanted => Action::Update,
                Some(_) => {
                    changes.unchanged += 1;
                    continue;
                }
            };
            changes.list.push(LevelChange {
                level: level.clone(),
                action,
                before,
                after: Some(wanted.clone()),
            });
        }
        for level in managed
            .iter()
            .rev()
            .filter(|level| !changes.in_file.contains(level))
        {
            let stored = stored
                .get(level)
                .and_then(|record| stored_settings(record, &SystemSettings::default()));
            if let Some(before) = stored {
                changes.list.push(LevelChange {
                    level: level.clone(),
                    action: Action::Delete,
                    before: Some(before),
                    after: None,
                });
            }
        }
        changes
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of levels with this action.
    pub fn count(&self, action: Action) -> usize {
        self.list.iter().filter(|change| change.action == action).count()
    }

    /// Levels in the table that the file does not manage.
    pub fn unmanaged(
        &self,
        all_levels: Vec<(ConfigLevel, ConfigRecord)>,
        managed: &BTreeSet<ConfigLevel>,
    ) -> Vec<(ConfigLevel, LevelSettings)> {
        all_levels
            .into_iter()
            .filter(|(level, _)| !self.in_file.contains(level) && !managed.contains(level))
            .filter_map(|(level, record)| {
                Some((level, stored_settings(&record, &SystemSettings::default())?))
            })
            .collect()
    }
}

/// The stored settings of a level, limited to the system settings that the file contains. `None` if there are none.
fn stored_settings(record: &ConfigRecord, in_file: &SystemSettings) -> Option<LevelSettings> {
    let system = &record.system;
    let found = LevelSettings {
        limits: record.limits.clone(),
        on_unavailable: record.on_unavailable,
        mode: record.mode,
        prices: record.prices.clone(),
        system: SystemSettings {
            audit_retention_days: in_file.audit_retention_days.and(system.audit_retention_days),
            auto_update: in_file.auto_update.and(system.auto_update),
            strict_version: in_file.strict_version.and(system.strict_version),
        },
    };
    (found != LevelSettings::default()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(manifest: &str) -> BTreeMap<ConfigLevel, ConfigRecord> {
        let manifest = Manifest::parse(manifest).unwrap();
        let record = |(level, wanted): (ConfigLevel, LevelSettings)| {
            let mut record = ConfigRecord::new(level.clone(), wanted.limits);
            record.on_unavailable = wanted.on_unavailable;
            record.mode = wanted.mode;
            record.prices = wanted.prices;
            record.system = wanted.system;
            (level, record)
        };
        manifest.levels.into_iter().map(record).collect()
    }

    fn changes(file: &str, table: &str, managed: &str) -> Vec<String> {
        let manifest = Manifest::parse(file).unwrap();
        let managed = stored(managed).into_keys().collect();
        let found = LevelChanges::between(&manifest, &stored(table), &managed);
        found
            .list
            .iter()
            .map(|change| format!("{:?} {}", change.action, change.level))
            .collect()
    }

    const SYSTEM: &str = "system: {limits: {rpm: 1}}";
    const BOTH: &str = "{system: {limits: {rpm: 1}}, resources: {a: {limits: {rpm: 2}}}}";

    #[test]
    fn equal_levels_are_unchanged() {
        assert_eq!(changes(BOTH, BOTH, BOTH), Vec::<String>::new());
        assert_eq!(changes(BOTH, BOTH, ""), Vec::<String>::new());
    }

    #[test]
    fn missing_levels_are_created_and_different_ones_updated() {
        assert_eq!(changes(BOTH, "", ""), ["Create system", "Create resource a"]);
        assert_eq!(
            changes(SYSTEM, "system: {limits: {rpm: 1}, on_unavailable: allow}", ""),
            ["Update system"]
        );
        let mode = |mode: &str| format!("resources: {{a: {{mode: {mode}}}}}");
        assert_eq!(
            changes(&mode("observe"), &mode("observe"), ""),
            Vec::<String>::new()
        );
        assert_eq!(
            changes(&mode("enforce"), &mode("observe"), ""),
            ["Update resource a"]
        );
        let priced =
            |input: &str| format!("resources: {{a: {{limits: {{rpm: 1}}, prices: {{input: {input}}}}}}}");
        assert_eq!(changes(&priced("$1"), &priced("$1"), ""), Vec::<String>::new());
        assert_eq!(changes(&priced("$1"), &priced("$2"), ""), ["Update resource a"]);
        let unpriced = "resources: {a: {limits: {rpm: 1}}}";
        assert_eq!(changes(unpriced, &priced("$2"), ""), ["Update resource a"]);
    }

    #[test]
    fn only_managed_levels_are_deleted() {
        assert_eq!(changes(SYSTEM, BOTH, ""), Vec::<String>::new());
        assert_eq!(changes(SYSTEM, BOTH, BOTH), ["Delete resource a"]);
        assert_eq!(changes("", SYSTEM, BOTH), ["Delete system"]);
    }

    #[test]
    fn settings_not_in_the_file_are_left_unchanged() {
        let table = "system: {limits: {rpm: 1}, audit_retention_days: 30, strict_version: false}";
        assert_eq!(changes(SYSTEM, table, ""), Vec::<String>::new());
        assert_eq!(
            changes("system: {limits: {rpm: 1}, audit_retention_days: 5}", table, ""),
            ["Update system"]
        );
    }
}
