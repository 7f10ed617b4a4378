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
    /// What [`delete`](Stack::delete) would leave behind; where there is no stack, what the last one of this name has left: its
    /// table.
    pub async fn plan_delete(&self) -> Result<Deleted, Error> {
        let Some(deployed) = self.observe().await? else {
            let left = match self.orphan().await {
                // Whoever may not look for leftovers is not told of them.
                Err(Error::Denied { .. }) => None,
                left => left?,
            };
            return Ok(Deleted {
                kept: left.into_iter().collect(),
                ..Deleted::default()
            });
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
    ///
    /// A purge is refused before anything is deleted if the table is protected or objects in the archive are locked. If it
    /// fails half way, calling this again finishes it as far as the table is concerned: the archive has a name that only
    /// the stack knew, which the error tells.
    pub async fn delete_with(&self, how: &Deletion) -> Result<Deleted, Error> {
        let deadline = self.deadline();
        let Some(deployed) = self.idle(&deadline).await? else {
            let left = if how.purge { self.orphan().await? } else { None };
            let left: Vec<_> = left.into_iter().collect();
            // Only the archive has to know the account.
            self.check_purge(&left, "").await?;
            self.purge(&left, "", &deadline).await?;
            return Ok(Deleted {
                purged: left,
                ..Deleted::default()
            });
        };
        let stateful = |kept: &Kept| ids::STATEFUL.iter().any(|id| id.as_str() == kept.logical_id);
        let kept = self.kept(&deployed).await?;
        let (doomed, kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(|kept| how.purge && stateful(kept));
        let account = self.place_of(&deployed).await?.account;
        self.check_purge(&doomed, &account).await?;
        self.cloud.delete_stack(&deployed.stack.id, &how.retain).await?;
        self.tell(&Event::Started { operation: "delete" });
        let before = &deployed.stack;
        if let Some(stack) = self.finished(&before.id, Some(before), &deadline).await? {
            return Err(self.failure(&stack).await);
        }
        self.purge(&doomed, &account, &deadline).await?;
        Ok(Deleted {
            existed: true,
            kept,
            purged: doomed,
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

    /// What the deployed template keeps. After a failed creation that is what was imported, if anything.
    async fn kept(&self, deployed: &Deployed) -> Result<Vec<Kept>, Error> {
        let Some(template) = &deployed.template else {
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
}

fn type_of(template: &Template, id: &str) -> String {
    let resource = template.resources().find(|(known, _)| *known == id);
    let kind = resource.and_then(|(_, resource)| resource.get("Type")?.as_str());
    kind.unwrap_or_default().to_owned()
}
