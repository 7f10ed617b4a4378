//! Doing what the plan says.

use zae_limiter::{ConfigChange, RateLimiter};

use super::difference::{Action, Change, Changes};
use super::manifest::Wanted;
use super::{Compared, State};
use crate::error::Result;
use crate::parse::now;

/// Makes every change, and remembers what the file manages.
///
/// Each level is changed whole or not at all. What is about to be managed is noted first: stopped half-way, the next run
/// knows about every level that this one may have made.
pub(super) async fn apply(compared: Compared) -> Result<Changes> {
    let Compared {
        limiter,
        manifest,
        hash,
        mut record,
        changes,
    } = compared;
    let after = State {
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
            make(&limiter, change).await?;
        }
    }
    record.write(after).await?;
    Ok(changes)
}

async fn make(limiter: &RateLimiter, change: &Change) -> Result<()> {
    let level = &change.level;
    let Some(wanted) = &change.after else {
        limiter.delete_config(level).await?;
        return Ok(());
    };
    let had_limits = change
        .before
        .as_ref()
        .is_some_and(|before| !before.limits.is_empty());
    if wanted.limits.is_empty() && had_limits {
        limiter.delete_config(level).await?;
    }
    let fresh = change.action == Action::Create || (wanted.limits.is_empty() && had_limits);
    limiter.set_config(level, to_change(wanted, fresh)).await?;
    Ok(())
}

/// A level that is new has no policy to take away.
fn to_change(wanted: &Wanted, fresh: bool) -> ConfigChange {
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
