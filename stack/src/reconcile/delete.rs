//! Deleting a stack, and saying what stays.

use zae_limiter_template::Template;
use zae_limiter_template::model::ids;

use super::wait::Deadline;
use crate::deployed::Deployed;
use crate::events::Event;
use crate::situation::Situation;
use crate::{Error, Stack};

/// How a stack is deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Also deletes the table and the archive with all that is in them. Nothing brings them back.
    pub purge: bool,
    /// Resources that are left behind, by logical id: for a stack whose deletion has failed because of them.
    pub retain: Vec<String>,
}

/// Something that a deleted stack leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Kept {
    /// The resource in the template.
    pub logical_id: String,
    /// Such as `AWS::DynamoDB::Table`.
    pub resource_type: String,
    /// The resource in the account: the table's or the bucket's name.
    pub physical_id: String,
}

/// What a deletion did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Deleted {
    /// Whether there was a stack.
    pub existed: bool,
    /// What stays in the account.
    pub kept: Vec<Kept>,
    /// What was deleted together with its data.
    pub purged: Vec<Kept>,
}

impl Deleted {
    /// How long to wait before a stack of the same name is made again: SQS blocks the names of deleted queues.
    pub const NAMES_BLOCKED: std::time::Duration = crate::cause::advice::QUEUE_NAME_BLOCKED;
}

impl Stack {
    /// What [`delete`](Stack::delete) would leave behind.
    pub async fn plan_delete(&self) -> Result<Deleted, Error> {
        let Some(deployed) = self.observe().await? else {
            return Ok(Deleted::default());
        };
        self.own(&deployed)?;
        Ok(Deleted {
            existed: true,
            kept: self.kept(&deployed).await?,
            purged: vec![],
        })
    }

    /// Deletes the stack and waits until it is gone. The table and the archive bucket are kept, with all that is in them;
    /// the next stack of this name takes the table in again.
    pub async fn delete(&self) -> Result<Deleted, Error> {
        self.delete_with(&Deletion::default()).await
    }

    /// Deletes the stack in another way.
    pub async fn delete_with(&self, how: &Deletion) -> Result<Deleted, Error> {
        let deadline = self.deadline();
        let Some(deployed) = self.idle(&deadline).await? else {
            return Ok(Deleted::default());
        };
        let kept = self.kept(&deployed).await?;
        self.cloud.delete_stack(&deployed.stack.id, &how.retain).await?;
        self.tell(&Event::Started { operation: "delete" });
        let before = &deployed.stack;
        if let Some(stack) = self.finished(&before.id, Some(before), &deadline).await? {
            return Err(self.failure(&stack).await);
        }
        if !how.purge {
            return Ok(Deleted {
                existed: true,
                kept,
                purged: vec![],
            });
        }
        let (purged, kept) = kept
            .into_iter()
            .partition(|kept| ids::STATEFUL.iter().any(|id| id.as_str() == kept.logical_id));
        let purged: Vec<Kept> = purged;
        for resource in &purged {
            self.purge(resource, &deployed).await?;
        }
        Ok(Deleted {
            existed: true,
            kept,
            purged,
        })
    }

    /// The stack once nobody else is at work on it; nothing if it is no more.
    async fn idle(&self, deadline: &Deadline) -> Result<Option<Deployed>, Error> {
        loop {
            let Some(deployed) = self.observe().await? else {
                return Ok(None);
            };
            self.own(&deployed)?;
            if !matches!(
                deployed.stack.situation(),
                Situation::Busy | Situation::CleaningUp
            ) {
                return Ok(Some(deployed));
            }
            self.tell(&Event::Awaiting {
                status: deployed.stack.status.clone(),
            });
            self.settled(&deployed.stack.id, deadline).await?;
        }
    }

    /// What the deployed template keeps. After a failed creation that is nothing.
    async fn kept(&self, deployed: &Deployed) -> Result<Vec<Kept>, Error> {
        let Some(template) = deployed
            .template
            .as_ref()
            .filter(|_| deployed.stack.situation() != Situation::FailedCreate)
        else {
            return Ok(vec![]);
        };
        let physical = self.cloud.physical_ids(&deployed.stack.id).await?;
        let kept = template.retained().filter_map(|id| {
            let physical_id = physical.get(id).filter(|physical| !physical.is_empty())?.clone();
            Some(Kept {
                logical_id: id.to_owned(),
                resource_type: type_of(template, id),
                physical_id,
            })
        });
        Ok(kept.collect())
    }

    async fn purge(&self, resource: &Kept, deployed: &Deployed) -> Result<(), Error> {
        let name = &resource.physical_id;
        if resource.logical_id == ids::TABLE.as_str() {
            self.cloud.delete_table(name).await?;
            self.tell(&Event::Purged {
                what: format!("table {name}"),
            });
        } else {
            let owner = self.place_of(deployed).await?.account;
            let objects = self.cloud.empty_bucket(name, &owner).await?;
            self.cloud.delete_bucket(name, &owner).await?;
            self.tell(&Event::Purged {
                what: format!("bucket {name} with {objects} objects"),
            });
        }
        Ok(())
    }
}

fn type_of(template: &Template, id: &str) -> String {
    let resource = template.resources().find(|(known, _)| *known == id);
    let kind = resource.and_then(|(_, resource)| resource.get("Type")?.as_str());
    kind.unwrap_or_default().to_owned()
}
