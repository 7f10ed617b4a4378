//! Bringing one group into its snapshot, exactly once.

use zae_limiter_function::{Budget, CallFailure, retrying};

use crate::{Answer, Entry, Group, Rules, SnapshotUpdate, Table};

/// What became of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counted<'a> {
    /// Writes that were made.
    pub(crate) writes: u64,
    /// Changes that the snapshot had counted before.
    pub(crate) duplicates: u64,
    /// Changes that are newer than the snapshot but numbered below it.
    pub(crate) regressed: Vec<Entry<'a>>,
}

/// How often others may move a snapshot on before its group is left to the next delivery.
const MOST_CHANGES: usize = 5;

pub(crate) struct Counter<'t, T> {
    pub(crate) table: &'t T,
    pub(crate) rules: Rules,
    pub(crate) retention_days: u32,
    pub(crate) budget: Budget,
}

impl<T: Table> Counter<'_, T> {
    /// Counts the group. First as a whole, if the snapshot has counted none of it. Otherwise only what comes after the
    /// snapshot's progress, and only if that is still its progress when the write arrives.
    pub(crate) async fn count<'a>(&self, group: &Group<'a>) -> Result<Counted<'a>, CallFailure> {
        let mut result = Counted::default();
        if !self.rules.zero_sums && group.events() == 0 && group.consumed().values().all(|sum| *sum == 0) {
            return Ok(result);
        }
        let mut rest = group.clone();
        let mut seen = None;
        for _ in 0..=MOST_CHANGES {
            let update = SnapshotUpdate::by(self.rules, &rest, self.retention_days, seen.as_ref());
            let progress = match retrying(&self.budget, || self.table.update(&update)).await? {
                Answer::Done => {
                    result.writes = 1;
                    result.duplicates = (group.entries().len() - rest.entries().len()) as u64;
                    result.duplicates -= result.regressed.len() as u64;
                    return Ok(result);
                }
                Answer::Refused(progress) => progress
                    .ok_or_else(|| CallFailure::Rejected("the snapshot's _sq is not text".to_owned()))?,
            };
            result.regressed = group.regressed(&progress);
            let Some(left) = group.after(&progress.sequence) else {
                result.duplicates = (group.entries().len() - result.regressed.len()) as u64;
                return Ok(result);
            };
            rest = left;
            seen = Some(progress);
        }
        Err(CallFailure::Transient(format!(
            "the snapshot changed {MOST_CHANGES} times in between"
        )))
    }
}
