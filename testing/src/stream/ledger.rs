//! What the totals must be: kept from what was consumed, not from what the stream says.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter_schema::{EntityId, LimitName, Resource, Timestamp, UsageSnapshot, Window, WindowKind};

/// What one entity used of one resource in one window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Whole tokens per limit.
    pub tokens: BTreeMap<String, i128>,
    /// Acquires.
    pub events: i128,
    /// Thresholds of quotas that were reached, such as `spend 80`.
    pub thresholds: BTreeSet<String>,
}

/// Usage by entity, resource and window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger(pub BTreeMap<(String, String, String), Usage>);

impl Ledger {
    pub(crate) fn book(
        &mut self,
        entity: &str,
        resource: &str,
        at: i64,
        tokens: &[(&str, i64)],
        events: i64,
    ) {
        if events == 0 && tokens.iter().all(|(_, tokens)| *tokens == 0) {
            return;
        }
        for kind in WindowKind::ALL {
            let window = kind.window_at(Timestamp::from_seconds(at));
            let usage = self.0.entry(row(entity, resource, window)).or_default();
            usage.events += i128::from(events);
            for (limit, tokens) in tokens.iter().filter(|(_, tokens)| *tokens != 0) {
                *usage.tokens.entry((*limit).to_owned()).or_default() += i128::from(*tokens);
            }
        }
    }

    /// A threshold of a quota was reached.
    pub(crate) fn reach(&mut self, entity: &str, resource: &str, at: i64, threshold: &str) {
        for kind in WindowKind::ALL {
            let window = kind.window_at(Timestamp::from_seconds(at));
            let usage = self.0.entry(row(entity, resource, window)).or_default();
            usage.thresholds.insert(threshold.to_owned());
        }
    }

    /// What snapshots say.
    pub fn of(snapshots: impl IntoIterator<Item = UsageSnapshot>) -> Self {
        let rows = snapshots.into_iter().map(|snapshot| {
            let UsageSnapshot {
                entity,
                resource,
                window,
                counters,
                total_events,
                thresholds,
                ..
            } = snapshot;
            let tokens = counters
                .into_iter()
                .map(|(limit, count): (LimitName, i64)| (limit.to_string(), i128::from(count)));
            let usage = Usage {
                tokens: tokens.collect(),
                events: i128::from(total_events),
                thresholds: thresholds
                    .iter()
                    .flat_map(|(limit, all)| all.iter().map(move |percent| format!("{limit} {percent}")))
                    .collect(),
            };
            (
                row(EntityId::as_str(&entity), Resource::as_str(&resource), window),
                usage,
            )
        });
        Self(rows.collect())
    }

    /// Rows that are not the same in both, with both.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let keys: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let differing = keys
            .into_iter()
            .filter(|key| self.0.get(*key) != other.0.get(*key));
        differing
            .map(|key| format!("{key:?}: {:?} and {:?}", self.0.get(key), other.0.get(key)))
            .collect()
    }
}

fn row(entity: &str, resource: &str, window: Window) -> (String, String, String) {
    (entity.to_owned(), resource.to_owned(), window.key())
}
