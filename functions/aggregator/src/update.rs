//! The one conditional write that counts a group.

use zae_limiter_schema::keys::{self, Key, attribute};
use zae_limiter_schema::{AttributeValue, usage_attribute as usage};

use crate::rules::Rules;
use crate::{Digest, Group, Position, Progress};

/// What must be true of a snapshot for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It does not exist.
    New,
    /// It does not exist, or it has counted up to a record before `first` that left the bucket as in `link`: nothing is
    /// missing in between.
    Follows {
        /// The first record to count.
        first: Position,
        /// The bucket before that record.
        link: Digest,
    },
    /// Its progress is still what was read.
    Unchanged {
        /// The last counted record.
        last: Position,
        /// The gaps as stored.
        gaps: Option<String>,
    },
    /// It has counted up to a record before this one. No correct write has this condition.
    #[cfg(test)]
    Before(Position),
    /// None. No correct write goes without a condition.
    #[cfg(test)]
    Always,
}

/// A write that adds a group to its snapshot and advances the snapshot's progress, both or neither.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotUpdate {
    /// The snapshot.
    pub key: Key,
    /// When the write may happen.
    pub condition: Condition,
    /// Attributes that are set.
    pub set: Vec<(String, AttributeValue)>,
    /// Attributes that are set unless they exist.
    pub set_if_absent: Vec<(String, AttributeValue)>,
    /// Counters that are increased.
    pub add: Vec<(String, i128)>,
    /// Sets of texts that get these members.
    pub add_members: Vec<(String, Vec<String>)>,
    /// Gaps that the snapshot has to forget with this write, because there are too many.
    pub forgotten_gaps: u64,
}

impl SnapshotUpdate {
    /// Counts a group, for a snapshot whose progress is not known.
    pub fn whole(group: &Group<'_>, retention_days: u32) -> Self {
        Self::by(Rules::default(), group, retention_days, None)
    }

    /// Counts what is left of a group, for a snapshot with this progress.
    pub fn rest(group: &Group<'_>, retention_days: u32, seen: &Progress) -> Self {
        Self::by(Rules::default(), group, retention_days, Some(seen))
    }

    pub(crate) fn by(rules: Rules, group: &Group<'_>, retention_days: u32, seen: Option<&Progress>) -> Self {
        let advanced = Progress::advance(rules, seen, group);
        let progress = advanced.progress;
        let gaps = progress
            .stored_gaps()
            .map(|gaps| (usage::GAPS.to_owned(), AttributeValue::S(gaps)));
        // Gaps within the group have to be added to those that an existing snapshot has: it must be read first.
        let unbroken = progress.gaps.as_ref().is_none_or(|gaps| gaps.len() <= 1);
        let condition = match seen {
            Some(seen) => Condition::Unchanged {
                last: seen.last.clone(),
                gaps: seen.stored_gaps(),
            },
            // Counts of refusals have to be added to those of an existing snapshot: it must be read first.
            None if unbroken && group.refusals() == 0 && group.observed() == 0 => Condition::Follows {
                first: group.first().position.clone(),
                link: group.first().link.before.clone(),
            },
            None => Condition::New,
        };
        #[cfg(test)]
        let condition = broken(rules, group, seen).unwrap_or(condition);
        let mut set = attributes(group, &progress, retention_days);
        let mut set_if_absent = Vec::new();
        if seen.is_none() && unbroken {
            set_if_absent.extend(gaps);
        } else {
            set.extend(gaps);
        }
        for (name, more, sum) in [
            (usage::REFUSALS, group.refusals(), progress.refusals),
            (usage::OBSERVED, group.observed(), progress.observed),
        ] {
            if more != 0 {
                set.push((name.to_owned(), AttributeValue::S(sum.to_string())));
            }
        }
        let counters = group.consumed().into_iter();
        let counters = counters.map(|(limit, tokens)| (limit.to_string(), tokens));
        let events = (usage::TOTAL_EVENTS.to_owned(), group.events());
        let thresholds: Vec<_> = group.thresholds().into_iter().collect();
        let members = if thresholds.is_empty() {
            Vec::new()
        } else {
            vec![(usage::THRESHOLDS.to_owned(), thresholds)]
        };
        Self {
            key: keys::usage(group.entity(), group.resource(), group.window),
            condition,
            set,
            set_if_absent,
            add: counters.chain([events]).collect(),
            add_members: members,
            forgotten_gaps: advanced.forgotten,
        }
    }
}

/// The condition without the rule that a test has broken.
#[cfg(test)]
fn broken(rules: Rules, group: &Group<'_>, seen: Option<&Progress>) -> Option<Condition> {
    use crate::rules::Rule;

    let holds = |rule| rules.hold(rule);
    match seen {
        None if !holds(Rule::ConditionOnFirst) => Some(Condition::Before(group.last().clone())),
        None if !holds(Rule::Gaps) => Some(Condition::Before(group.first().position.clone())),
        Some(_) if !holds(Rule::CompareAndSet) => Some(Condition::Always),
        _ => None,
    }
}

fn attributes(group: &Group<'_>, progress: &Progress, retention_days: u32) -> Vec<(String, AttributeValue)> {
    let index = keys::gsi2_usage(group.resource(), group.window, group.entity());
    // From the end of the window, not from now: a snapshot must outlive every delivery of its records, or its totals and
    // its progress would start again in the middle of the window.
    let expires = group.window.end().seconds() + i64::from(retention_days) * 86_400;
    let link = progress.link.as_ref().map(|link| link.as_str().to_owned());
    let newest = progress.newest.map(|seconds| seconds.to_string());
    let texts = [
        (usage::ENTITY_ID, Some(group.entity().to_string())),
        (usage::RESOURCE, Some(group.resource().to_string())),
        (usage::WINDOW, Some(group.window.kind().to_string())),
        (usage::WINDOW_START, Some(group.window.start().to_string())),
        (attribute::GSI2PK, Some(index.pk)),
        (attribute::GSI2SK, Some(index.sk)),
        (usage::SEQUENCE, Some(progress.last.to_string())),
        (usage::LINK, link),
        (usage::NEWEST, newest),
    ];
    let texts = texts.into_iter();
    let texts = texts.filter_map(|(name, text)| Some((name.to_owned(), AttributeValue::S(text?))));
    texts
        .chain([(attribute::TTL.to_owned(), AttributeValue::N(expires.to_string()))])
        .collect()
}
