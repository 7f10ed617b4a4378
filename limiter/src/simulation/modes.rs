//! Modes that change while calls run, and which of them a call may have followed.
//!
//! A process may follow a mode until its configuration expires. After a refresh of the buckets it must not, unless the mode
//! before lets it decide without a write.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter_schema::{EntityId, Mode};

use crate::acquire::{Admission, Lease};
use crate::{Error, Result};

/// How long a process keeps a configuration, and how long it may take to read it, in milliseconds.
const KEPT: i64 = 10_000 + 1_000;
/// So long after a refresh a call may be refused by what its process remembers, in milliseconds.
const REMEMBERED: i64 = 1_200;

/// A mode, since when, and whether the buckets were refreshed then.
#[derive(Debug, Clone, Copy)]
struct Change {
    at: i64,
    mode: Mode,
    refreshed: bool,
}

/// The modes of entities, and all that they had.
#[derive(Debug, Default)]
pub(super) struct Modes(BTreeMap<EntityId, Vec<Change>>);

impl Modes {
    pub(super) fn set(&mut self, entity: &EntityId, mode: Mode, refreshed: bool, at: i64) {
        let changes = self.0.entry(entity.clone()).or_default();
        changes.push(Change { at, mode, refreshed });
    }

    /// The stored mode.
    pub(super) fn of(&self, entity: &EntityId) -> Option<Mode> {
        let changes = self.0.get(entity)?;
        changes.last().map(|change| change.mode)
    }

    /// The modes that were stored between these times.
    fn between(&self, entity: &EntityId, from: i64, until: i64) -> BTreeSet<Mode> {
        let changes = self.0.get(entity).map_or(&[][..], Vec::as_slice);
        let before = changes.iter().rev().find(|change| change.at <= from);
        let during = changes
            .iter()
            .filter(|change| (from..=until).contains(&change.at));
        let first = before.map_or(Mode::Enforce, |change| change.mode);
        during.map(|change| change.mode).chain([first]).collect()
    }

    /// The modes that a call may have followed.
    fn possible(&self, entity: &EntityId, from: i64, until: i64) -> BTreeSet<Mode> {
        let changes = self.0.get(entity).map_or(&[][..], Vec::as_slice);
        let refreshed = changes.iter().rev().find(|change| {
            let writes = |mode: &Mode| mode.counts();
            change.refreshed
                && change.at + REMEMBERED <= from
                && self
                    .between(entity, change.at - KEPT, change.at - 1)
                    .iter()
                    .all(writes)
        });
        let kept = from - KEPT;
        self.between(
            entity,
            refreshed.map_or(kept, |change| change.at.max(kept)),
            until,
        )
    }

    /// What is wrong with the outcome of a call that was charged to these entities, if anything.
    pub(super) fn explain(
        &self,
        chain: &[EntityId],
        result: &Result<Lease>,
        from: i64,
        until: i64,
    ) -> Option<String> {
        let may_be = |entity: &EntityId, modes: &[Mode]| {
            let possible = self.possible(entity, from, until);
            modes.iter().any(|mode| possible.contains(mode))
        };
        let all_may_be = |modes: &[Mode]| chain.iter().all(|entity| may_be(entity, modes));
        let is_right = match result {
            Ok(lease) => {
                let observed = lease.observed_limits();
                let mut observed = observed.iter().map(|status| &status.entity);
                let is_observed = observed.all(|entity| may_be(entity, &[Mode::Observe]));
                is_observed
                    && match lease.admission() {
                        Admission::Bypassed => all_may_be(&[Mode::Bypass]),
                        Admission::AllowedWhileUnavailable => all_may_be(&[Mode::Observe, Mode::Bypass]),
                        _ => all_may_be(&[Mode::Enforce, Mode::Observe, Mode::Bypass]),
                    }
            }
            Err(Error::Refused(refusal)) => refusal
                .refused_limits()
                .all(|status| may_be(&status.entity, &[Mode::Enforce])),
            Err(Error::Disabled { entity, .. }) => may_be(entity, &[Mode::Disabled]),
            Err(_) => true,
        };
        if is_right {
            return None;
        }
        let modes: Vec<_> = chain
            .iter()
            .map(|entity| format!("{entity} {:?}", self.possible(entity, from, until)))
            .collect();
        let outcome = match result {
            Ok(lease) => format!("{:?}", lease.admission()),
            Err(error) => error.to_string(),
        };
        Some(format!(
            "a call had the outcome {outcome:?} in the modes {}",
            modes.join(", ")
        ))
    }
}
