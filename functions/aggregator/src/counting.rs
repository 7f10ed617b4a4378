//! Adding one group to its snapshot, exactly once.

use zae_limiter_function::{CallError, Invocation};

use crate::rules::{Rule, Rules};
use crate::{Entry, Group, SnapshotUpdate, Table, UpdateOutcome};

/// What became of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counted<'a> {
    /// Writes that were made.
    pub(crate) writes: u64,
    /// Records that the snapshot had counted before.
    pub(crate) duplicates: u64,
    /// Records that are newer than the snapshot but numbered below it.
    pub(crate) regressed: Vec<Entry<'a>>,
    /// Gaps that the snapshot had to forget.
    pub(crate) forgotten_gaps: u64,
    /// Acquires that were added.
    pub(crate) acquires: u64,
}

/// How often a snapshot may change under a group before the group is left to the next delivery.
const MAX_CONFLICTS: usize = 5;

pub(crate) struct Counter<'t, T> {
    pub(crate) table: &'t T,
    pub(crate) rules: Rules,
    pub(crate) retention_days: u32,
    pub(crate) invocation: &'t Invocation,
}

impl<T: Table> Counter<'_, T> {
    /// Counts the group. First as a whole, if it follows what the snapshot has counted. Otherwise only what the snapshot
    /// has not counted, and only if its progress is still the same when the write arrives.
    pub(crate) async fn count<'a>(&self, group: &Group<'a>) -> Result<Counted<'a>, CallError> {
        let mut result = Counted::default();
        let zero = group.events() == 0 && group.consumed().values().all(|sum| *sum == 0);
        if zero && !self.rules.hold(Rule::ZeroSums) {
            return Ok(result);
        }
        let mut rest = group.clone();
        let mut seen = None;
        for _ in 0..=MAX_CONFLICTS {
            let update = SnapshotUpdate::by(self.rules, &rest, self.retention_days, seen.as_ref());
            let progress = match self.invocation.retry(|| self.table.update(&update)).await? {
                UpdateOutcome::Applied => {
                    result.writes = 1;
                    result.forgotten_gaps = update.forgotten_gaps;
                    result.acquires = u64::try_from(rest.events()).unwrap_or_default();
                    result.duplicates = (group.entries().len() - rest.entries().len()) as u64;
                    result.duplicates -= result.regressed.len() as u64;
                    return Ok(result);
                }
                UpdateOutcome::Refused(progress) => progress.ok_or_else(|| {
                    CallError::Invalid("the snapshot's attribute _sq is not a string".to_owned())
                })?,
            };
            result.regressed = group.regressed(&progress);
            let Some(left) = group.uncounted(&progress) else {
                result.duplicates = (group.entries().len() - result.regressed.len()) as u64;
                return Ok(result);
            };
            rest = left;
            seen = Some(progress);
        }
        Err(CallError::Conflict(format!(
            "the snapshot changed {MAX_CONFLICTS} times while it was updated"
        )))
    }
}
