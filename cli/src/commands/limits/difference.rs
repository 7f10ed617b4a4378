//! What must change for the table to be what the file says. Pure.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter::{ConfigLevel, ConfigRecord, SystemSettings};

use super::manifest::{Manifest, Wanted};

/// What happens to a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Create,
    Update,
    Delete,
}

/// One level that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) level: ConfigLevel,
    pub(super) action: Action,
    pub(super) before: Option<Wanted>,
    pub(super) after: Option<Wanted>,
}

/// All of them, deletions last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Changes {
    pub(super) list: Vec<Change>,
    pub(super) unchanged: usize,
    /// The levels of the file.
    named: BTreeSet<ConfigLevel>,
}

impl Changes {
    /// Compares the levels that the file names, or named when it was last applied.
    pub(super) fn between(
        manifest: &Manifest,
        stored: &BTreeMap<ConfigLevel, ConfigRecord>,
        managed: &BTreeSet<ConfigLevel>,
    ) -> Self {
        let mut changes = Self {
            named: manifest.levels.keys().cloned().collect(),
            ..Self::default()
        };
        // From the whole to the particular, as people read it.
        for (level, wanted) in manifest.levels.iter().rev() {
            let before = stored
                .get(level)
                .and_then(|record| present(record, &wanted.system));
            let action = match &before {
                None => Action::Create,
                Some(before) if before != wanted => Action::Update,
                Some(_) => {
                    changes.unchanged += 1;
                    continue;
                }
            };
            changes.list.push(Change {
                level: level.clone(),
                action,
                before,
                after: Some(wanted.clone()),
            });
        }
        for level in managed
            .iter()
            .rev()
            .filter(|level| !changes.named.contains(level))
        {
            let stored = stored
                .get(level)
                .and_then(|record| present(record, &SystemSettings::default()));
            if let Some(before) = stored {
                changes.list.push(Change {
                    level: level.clone(),
                    action: Action::Delete,
                    before: Some(before),
                    after: None,
                });
            }
        }
        changes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn count(&self, action: Action) -> usize {
        self.list.iter().filter(|change| change.action == action).count()
    }

    /// Levels of the table about which the file says nothing and never did.
    pub(super) fn unmanaged(
        &self,
        everything: Vec<(ConfigLevel, ConfigRecord)>,
        managed: &BTreeSet<ConfigLevel>,
    ) -> Vec<(ConfigLevel, Wanted)> {
        everything
            .into_iter()
            .filter(|(level, _)| !self.named.contains(level) && !managed.contains(level))
            .filter_map(|(level, record)| Some((level, present(&record, &SystemSettings::default())?)))
            .collect()
    }
}

/// What a level has, of the things that the file speaks about; nothing if it has none of them.
fn present(record: &ConfigRecord, asked: &SystemSettings) -> Option<Wanted> {
    let has = &record.system;
    let found = Wanted {
        limits: record.limits.clone(),
        on_unavailable: record.on_unavailable,
        system: SystemSettings {
            audit_retention_days: asked.audit_retention_days.and(has.audit_retention_days),
            auto_update: asked.auto_update.and(has.auto_update),
            strict_version: asked.strict_version.and(has.strict_version),
        },
    };
    (found != Wanted::default()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(manifest: &str) -> BTreeMap<ConfigLevel, ConfigRecord> {
        let manifest = Manifest::parse(manifest).unwrap();
        let record = |(level, wanted): (ConfigLevel, Wanted)| {
            let mut record = ConfigRecord::new(level.clone(), wanted.limits);
            record.on_unavailable = wanted.on_unavailable;
            record.system = wanted.system;
            (level, record)
        };
        manifest.levels.into_iter().map(record).collect()
    }

    fn told(file: &str, table: &str, managed: &str) -> Vec<String> {
        let manifest = Manifest::parse(file).unwrap();
        let managed = stored(managed).into_keys().collect();
        let changes = Changes::between(&manifest, &stored(table), &managed);
        changes
            .list
            .iter()
            .map(|change| format!("{:?} {}", change.action, change.level))
            .collect()
    }

    const SYSTEM: &str = "system: {limits: {rpm: 1}}";
    const BOTH: &str = "{system: {limits: {rpm: 1}}, resources: {a: {limits: {rpm: 2}}}}";

    #[test]
    fn the_same_is_no_change() {
        assert_eq!(told(BOTH, BOTH, BOTH), Vec::<String>::new());
        assert_eq!(told(BOTH, BOTH, ""), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_is_created_and_what_differs_updated() {
        assert_eq!(told(BOTH, "", ""), ["Create system", "Create resource a"]);
        assert_eq!(
            told(SYSTEM, "system: {limits: {rpm: 1}, on_unavailable: allow}", ""),
            ["Update system"]
        );
    }

    #[test]
    fn only_what_was_managed_is_deleted() {
        assert_eq!(told(SYSTEM, BOTH, ""), Vec::<String>::new());
        assert_eq!(told(SYSTEM, BOTH, BOTH), ["Delete resource a"]);
        assert_eq!(told("", SYSTEM, BOTH), ["Delete system"]);
    }

    #[test]
    fn settings_that_the_file_does_not_mention_are_left_alone() {
        let table = "system: {limits: {rpm: 1}, audit_retention_days: 30, strict_version: false}";
        assert_eq!(told(SYSTEM, table, ""), Vec::<String>::new());
        assert_eq!(
            told("system: {limits: {rpm: 1}, audit_retention_days: 5}", table, ""),
            ["Update system"]
        );
    }
}
