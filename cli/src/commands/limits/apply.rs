//! `limits apply`: make the planned changes.

use zae_limiter::{ConfigChange, Repository};

use super::changes::{Action, LevelChange, LevelChanges};
use super::manifest::LevelSettings;
use super::{AppliedState, Comparison};
use crate::error::Result;
use crate::parse::now;

/// Makes every change and records which levels the file manages.
///
/// The levels of the file are recorded before the first change. If the run is interrupted, the next one therefore knows
/// every level that this one may have created.
pub(super) async fn apply(comparison: Comparison) -> Result<LevelChanges> {
    let Comparison {
        repository,
        manifest,
        hash,
        mut record,
        changes,
    } = comparison;
    let after = AppliedState {
        managed: manifest.levels.keys().cloned().collect(),
        hash,
        applied: Some(now()),
    };
    let unchanged = record.state.managed == after.managed && record.state.hash == after.hash;
    if changes.is_empty() && unchanged {
        return Ok(changes);
    }
    if !changes.is_empty() {
        let mut both = record.state.clone();
        both.managed.extend(after.managed.iter().cloned());
        record.write(both).await?;
        for change in &changes.list {
            apply_change(&repository, change).await?;
        }
    }
    record.write(after).await?;
    Ok(changes)
}

async fn apply_change(repository: &Repository, change: &LevelChange) -> Result<()> {
    let level = &change.level;
    let Some(wanted) = &change.after else {
        repository.delete_config(level).await?;
        return Ok(());
    };
    let had_limits = change
        .before
        .as_ref()
        .is_some_and(|before| !before.limits.is_empty());
    if wanted.limits.is_empty() && had_limits {
        repository.delete_config(level).await?;
    }
    let fresh = change.action == Action::Create || (wanted.limits.is_empty() && had_limits);
    repository.set_config(level, to_change(wanted, fresh)).await?;
    Ok(())
}

/// The change to store. A fresh level has no `on_unavailable` policy to remove.
fn to_change(wanted: &LevelSettings, fresh: bool) -> ConfigChange {
    let mut change = ConfigChange::new();
    if !wanted.limits.is_empty() {
        change = change.limits(wanted.limits.iter().cloned());
    }
    change = match wanted.on_unavailable {
        Some(policy) => change.on_unavailable(policy),
        None if fresh => change,
        None => change.without_on_unavailable(),
    };
    if let Some(days) = wanted.system.audit_retention_days {
        change = change.audit_retention_days(days);
    }
    if let Some(flag) = wanted.system.auto_update {
        change = change.auto_update(flag);
    }
    if let Some(flag) = wanted.system.strict_version {
        change = change.strict_version(flag);
    }
    change
}
