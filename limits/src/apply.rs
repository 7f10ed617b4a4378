//! Making the changes of a comparison.

use zae_limiter::{ConfigChange, Repository, Timestamp};

use crate::applied_state::AppliedState;
use crate::changes::{Action, LevelChange, LevelChanges};
use crate::{Comparison, LevelSettings, Result};

impl Comparison {
    /// Makes every change and records which levels the file manages.
    ///
    /// The levels of the file are recorded before the first change. If the run is interrupted, the next one therefore knows
    /// every level that this one may have created.
    pub async fn apply(self, now: Timestamp) -> Result<LevelChanges> {
        let Self {
            repository,
            mut record,
            changes,
            mut after,
        } = self;
        after.applied = Some(now);
        let applied = record.state.applied;
        let recorded = record.state
            == AppliedState {
                applied,
                ..after.clone()
            };
        if changes.is_empty() && recorded {
            return Ok(changes);
        }
        if !changes.is_empty() {
            record.write(record.state.until(&after)).await?;
            for change in &changes.list {
                apply_change(&repository, change).await?;
            }
        }
        record.write(after).await?;
        Ok(changes)
    }
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

/// The change to store. A fresh level has no policy, mode or prices to remove.
fn to_change(wanted: &LevelSettings, fresh: bool) -> ConfigChange {
    let mut change = ConfigChange::new();
    if !wanted.limits.is_empty() {
        // A file has the limits that last. Those that somebody has set until a time end by themselves.
        change = change
            .limits(wanted.limits.iter().cloned())
            .keep_temporary_limits();
    }
    change = match wanted.on_unavailable {
        Some(policy) => change.on_unavailable(policy),
        None if fresh => change,
        None => change.without_on_unavailable(),
    };
    change = match wanted.mode {
        Some(mode) => change.mode(mode),
        None if fresh => change,
        None => change.without_mode(),
    };
    change = match &wanted.prices {
        Some(prices) => change.prices(prices.clone()),
        None if fresh => change,
        None => change.without_prices(),
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
