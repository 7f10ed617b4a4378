//! Deleting a stack, and reporting what stays.

use std::collections::BTreeMap;

use serde_json::Value;
use zae_limiter_template::Template;
use zae_limiter_template::deployer::Place;
use zae_limiter_template::model::ids;

use crate::deployed::{Deployed, Described};
use crate::events::Event;
use crate::patience::{Deadline, patiently};
use crate::situation::Situation;
use crate::{Error, Stack};

/// How to delete a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Also deletes the table and the archive bucket with all their data. This cannot be undone.
    pub purge: bool,
    /// Logical ids of resources to keep, for a stack whose deletion failed because of them.
    pub retain: Vec<String>,
}

/// A resource that a deleted stack leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Kept {
    /// The resource in the template.
    pub logical_id: String,
    /// Such as `AWS::DynamoDB::Table`.
    pub resource_type: String,
    /// The resource in the account: the table's or the bucket's name.
    pub physical_id: String,
}

/// The result of a deletion, or of planning one.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Deleted {
    /// Whether the stack existed.
    pub existed: bool,
    /// Resources that stay in the account.
    pub kept: Vec<Kept>,
    /// Resources that were deleted with their data.
    pub purged: Vec<Kept>,
    /// Whether the stack has queues, whose names SQS blocks for [a while](Deleted::NAMES_BLOCKED).
    pub queues: bool,
    /// The account and region of the stack; `None` if it did not exist.
    #[serde(skip)]
    pub place: Option<Place>,
}

/// A deletion that was started.
struct Started {
    before: Described,
    doomed: Vec<Kept>,
    kept: Vec<Kept>,
    queues: bool,
}

impl Deleted {
    /// SQS blocks the name of a deleted queue for this long. A deployment under the same name waits.
    pub const NAMES_BLOCKED: std::time::Duration = crate::cause::advice::QUEUE_NAME_BLOCKED;
}

impl Stack {
    /// What [`delete`](Stack::delete) would leave behind. If the stack does not exist: the table that the last stack of this
    /// name left. Refused for a stack of another project or tool, as the deletion is.
    pub async fn plan_delete(&self) -> Result<Deleted, Error> {
        let deadline = self.reading();
        let Some(deployed) = self.observe(&deadline).await? else {
            let left = match self.orphan(&deadline).await {
                // Without the permission to look for leftovers, none are reported.
                Err(Error::Denied { .. }) => None,
                left => left?,
            };
            return Ok(Deleted {
                kept: left.into_iter().collect(),
                ..Deleted::default()
            });
        };
        self.check_owner(&deployed)?;
        self.check_manager(&deployed)?;
        let physical = patiently(&deadline, || self.cloud.physical_ids(&deployed.stack.id)).await?;
        Ok(Deleted {
            existed: true,
            kept: kept(&deployed, &physical),
            purged: vec![],
            queues: has_queues(&deployed),
            place: deployed.stack.place(),
        })
    }

    /// Deletes the stack and waits until it is gone. Keeps the table and the archive bucket with their data. The next stack of
    /// this name imports the table.
    pub async fn delete(&self) -> Result<Deleted, Error> {
        self.delete_with(&Deletion::default()).await
    }

    /// Deletes the stack as `how` says.
    ///
    /// Refused before anything is deleted if another tool deploys the stack, unless [`adopt`](Stack::adopt) is set, or if it would
    /// fail: if the stack has termination protection, a policy of the stack is attached to a role of others, or a bucket that
    /// the stack deletes is not empty. A purge is refused before anything is deleted if the table has deletion protection or
    /// objects in the archive are locked. If a purge fails halfway, calling this again deletes the table. The archive bucket
    /// has a generated name; the error states it.
    pub async fn delete_with(&self, how: &Deletion) -> Result<Deleted, Error> {
        let deadline = self.deadline();
        let started = patiently(&deadline, || self.start_deletion(how, &deadline)).await?;
        let Some(Started {
            before,
            doomed,
            kept,
            queues,
        }) = started
        else {
            return self.purge_orphan(how, &deadline).await;
        };
        self.tell(&Event::Started { operation: "delete" });
        if let Some(stack) = self.finished(&before.id, Some(&before), &deadline).await? {
            return Err(self.failure(&stack, &deadline).await);
        }
        self.purge(&doomed, &self.account_of(&before).await?, &deadline)
            .await?;
        Ok(Deleted {
            existed: true,
            kept,
            purged: doomed,
            queues,
            place: before.place(),
        })
    }

    /// Checks and starts the deletion of the stack; `None` if it does not exist.
    async fn start_deletion(&self, how: &Deletion, deadline: &Deadline) -> Result<Option<Started>, Error> {
        let Some(deployed) = self.idle(deadline).await? else {
            return Ok(None);
        };
        let stateful = |kept: &Kept| ids::STATEFUL.iter().any(|id| id.as_str() == kept.logical_id);
        let physical = self.cloud.physical_ids(&deployed.stack.id).await?;
        self.check_deletion(&deployed, &physical, &how.retain).await?;
        let kept = kept(&deployed, &physical);
        let (doomed, kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(|kept| how.purge && stateful(kept));
        let queues = has_queues(&deployed);
        let before = deployed.stack;
        self.check_purge(&doomed, &self.account_of(&before).await?)
            .await?;
        self.cloud.delete_stack(&before.id, &how.retain).await?;
        Ok(Some(Started {
            before,
            doomed,
            kept,
            queues,
        }))
    }

    /// Purges what the last stack of this name left, if that is asked for.
    async fn purge_orphan(&self, how: &Deletion, deadline: &Deadline) -> Result<Deleted, Error> {
        let left = if how.purge {
            self.orphan(deadline).await?
        } else {
            None
        };
        let left: Vec<_> = left.into_iter().collect();
        // Only buckets need the account.
        self.check_purge(&left, "").await?;
        self.purge(&left, "", deadline).await?;
        Ok(Deleted {
            purged: left,
            ..Deleted::default()
        })
    }

    async fn account_of(&self, stack: &Described) -> Result<String, Error> {
        match stack.place() {
            Some(place) => Ok(place.account),
            None => Ok(self.cloud.caller().await?.account),
        }
    }

    /// The stack once no operation is running; `None` if it does not exist.
    async fn idle(&self, deadline: &Deadline) -> Result<Option<Deployed>, Error> {
        loop {
            let Some(deployed) = self.observe(deadline).await? else {
                return Ok(None);
            };
            self.check_owner(&deployed)?;
            self.check_manager(&deployed)?;
            if !matches!(
                deployed.stack.situation(),
                Situation::Busy | Situation::CleaningUp
            ) {
                return Ok(Some(deployed));
            }
            self.attach(&deployed.stack, deadline).await?;
        }
    }
}

/// The resources that the deployed template retains. After a failed creation: the imported table, if any.
fn kept(deployed: &Deployed, physical: &BTreeMap<String, String>) -> Vec<Kept> {
    let Some(template) = &deployed.template else {
        return vec![];
    };
    let kept = template.retained().filter_map(|id| {
        let physical_id = physical.get(id).filter(|physical| !physical.is_empty())?.clone();
        Some(Kept {
            logical_id: id.to_owned(),
            resource_type: type_of(template, id),
            physical_id,
        })
    });
    kept.collect()
}

fn has_queues(deployed: &Deployed) -> bool {
    let queue = |resource: &Value| resource["Type"] == "AWS::SQS::Queue";
    let mut resources = deployed.template.iter().flat_map(Template::resources);
    resources.any(|(_, resource)| queue(resource))
}

fn type_of(template: &Template, id: &str) -> String {
    let resource = template.resources().find(|(known, _)| *known == id);
    let kind = resource.and_then(|(_, resource)| resource.get("Type")?.as_str());
    kind.unwrap_or_default().to_owned()
}
