//! The guard against losing data.

mod indexes;

pub(crate) use indexes::indexes;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use zae_limiter_template::Template;
use zae_limiter_template::model::ids;

use crate::plan::{Kind, ResourceChange};

/// A change that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The resource, `RateLimitsTable`, or an index of the table, `RateLimitsTable/GSI2`.
    pub what: String,
    /// Why.
    pub reason: String,
    /// Whether [`Stack::allow_loss`](crate::Stack::allow_loss) with this name allows it.
    pub can_be_allowed: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.reason)?;
        if self.can_be_allowed {
            write!(
                f,
                "; if this is intended, allow it (`--allow-loss {}`)",
                self.what
            )
        } else {
            Ok(())
        }
    }
}

/// Every change that would lose data or that CloudFormation cannot make, except those allowed by name.
pub(crate) fn refusals(
    changes: &[ResourceChange],
    before: Option<&Template>,
    after: &Template,
    allowed: &BTreeSet<String>,
) -> Vec<Refusal> {
    let stateful = ids::STATEFUL.map(|id| id.to_string());
    let lost = changes
        .iter()
        .filter(|change| stateful.contains(&change.logical_id))
        .filter_map(loss);
    let indexes = before
        .map(|before| indexes::refusals(before, after))
        .unwrap_or_default();
    let all = lost.chain(indexes);
    all.filter(|refusal| !(refusal.can_be_allowed && allowed.contains(&refusal.what)))
        .collect()
}

fn loss(change: &ResourceChange) -> Option<Refusal> {
    let reason = match change.kind {
        Kind::Add | Kind::Import | Kind::Change => return None,
        Kind::Replace => "would be replaced by an empty one",
        Kind::MayReplace => "may be replaced by an empty one",
        Kind::Remove if change.kept => "would leave the stack and no longer be managed",
        Kind::Remove => "would be deleted with its data",
    };
    Some(Refusal {
        what: change.logical_id.clone(),
        reason: reason.to_owned(),
        can_be_allowed: true,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn change(id: &str, kind: Kind, kept: bool) -> ResourceChange {
        ResourceChange {
            logical_id: id.to_owned(),
            resource_type: "T".to_owned(),
            physical_id: None,
            kind,
            kept,
            tags_only: false,
            follows: false,
            properties: vec![],
        }
    }

    fn refused(change: ResourceChange, allowed: &[&str]) -> Vec<Refusal> {
        let nothing = Template::parse("Resources: {}").unwrap();
        refusals(
            &[change],
            Some(&nothing),
            &nothing,
            &allowed.iter().map(|id| (*id).to_owned()).collect(),
        )
    }

    #[test]
    fn replacing_or_removing_what_holds_data_is_refused_unless_named() {
        for id in ["RateLimitsTable", "AuditArchiveBucket"] {
            for (kind, kept) in [
                (Kind::Replace, false),
                (Kind::MayReplace, false),
                (Kind::Remove, true),
                (Kind::Remove, false),
            ] {
                assert_eq!(refused(change(id, kind, kept), &[]).len(), 1, "{id} {kind:?}");
                assert_eq!(
                    refused(change(id, kind, kept), &["other"]).len(),
                    1,
                    "{id} {kind:?}"
                );
                assert_eq!(refused(change(id, kind, kept), &[id]), [], "{id} {kind:?}");
            }
            for kind in [Kind::Add, Kind::Import, Kind::Change] {
                assert_eq!(refused(change(id, kind, false), &[]), [], "{id} {kind:?}");
            }
        }
    }

    #[test]
    fn what_holds_no_data_may_come_and_go() {
        for kind in [Kind::Replace, Kind::MayReplace, Kind::Remove] {
            assert_eq!(
                refused(change("AggregatorEventSourceMapping", kind, false), &[]),
                []
            );
        }
    }
}
