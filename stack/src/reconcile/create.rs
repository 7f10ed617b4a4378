//! Making a stack, around a table if there is one.

use aws_sdk_dynamodb::types::TableDescription;
use zae_limiter_template::deployer::Place;
use zae_limiter_template::model::ids;

use super::review::{Reviewed, imports_table};
use super::wait::Deadline;
use super::{Attempt, update};
use crate::adopt::misfits;
use crate::cloud::change_set::{Purpose, overtaken};
use crate::code::{Loaded, publish};
use crate::deployed::{Deployed, Described};
use crate::desired::Desired;
use crate::events::Event;
use crate::outcome::Change;
use crate::plan::{Kind, ResourceChange, compare};
use crate::preflight::{Finding, Preflight};
use crate::situation::Situation;
use crate::{Error, Stack};

/// What stands where a stack is to be made.
pub(super) struct Site {
    pub(super) place: Place,
    pub(super) table: Option<TableDescription>,
}

impl Stack {
    /// Looks at where a stack is to be made; nothing if it has been made in the meantime.
    ///
    /// `review` is the empty stack that waits for its first change set, if there is one.
    pub(super) async fn site(
        &self,
        review: Option<&Deployed>,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Option<Site>, Error> {
        let name = self.name.as_str();
        let place = match review.and_then(|review| review.stack.place()) {
            Some(place) => place,
            None => self.cloud.caller().await?,
        };
        let table = self.table_that_stays(name, deadline).await?;
        if let Some(table) = &table {
            // A process that is faster than this one may have made the table just now.
            if self.moved(review).await? {
                return Ok(None);
            }
            match self.cloud.owner_of(name).await {
                Ok(Some(owner)) if owner == name => return Ok(None),
                Ok(Some(owner)) => {
                    return Err(Error::TableOwned {
                        table: name.to_owned(),
                        owner,
                    });
                }
                Ok(None) => {}
                // CloudFormation imports nothing that another stack has, so this only makes for a clearer message.
                Err(failure) if failure.denied() => {}
                Err(failure) => return Err(failure.into()),
            }
            let misfits = misfits(table, &desired.template);
            if !misfits.is_empty() {
                return Err(Error::TableMisfits {
                    table: name.to_owned(),
                    misfits,
                });
            }
        }
        Ok(Some(Site { place, table }))
    }

    /// What the checks before a creation find.
    pub(super) async fn check_site(&self, site: &Site, desired: &Desired) -> Vec<Finding> {
        let changes = changes_on(site.table.is_some(), desired);
        let preflight = Preflight {
            cloud: &self.cloud,
            observer: self.observer.as_ref(),
            options: &self.options,
            place: &site.place,
            template: &desired.template,
            changes: &changes,
            outputs: &[],
            deployed: None,
            table: site.table.as_ref(),
        };
        preflight.findings().await
    }

    /// Makes the stack.
    pub(super) async fn create(
        &self,
        review: Option<&Deployed>,
        desired: &Desired,
        loaded: &Loaded,
        deadline: &Deadline,
    ) -> Result<Attempt, Error> {
        let Some(site) = self.site(review, desired, deadline).await? else {
            return Ok(Attempt::Overtaken);
        };
        let findings = self.check_site(&site, desired).await;
        if !findings.is_empty() {
            // Names that a faster process has just taken for this very stack are not in the way.
            return if self.moved(review).await? {
                Ok(Attempt::Overtaken)
            } else {
                Err(Error::Preflight { findings })
            };
        }
        publish(
            &self.cloud,
            &self.options,
            loaded,
            &site.place,
            self.observer.as_ref(),
        )
        .await?;
        let change = if site.table.is_some() {
            Change::Imported
        } else {
            Change::Created
        };
        let started = if site.table.is_some() || review.is_some() {
            self.create_by_change_set(review, site.table.is_some(), desired, deadline)
                .await?
        } else {
            self.create_from_nothing(desired).await?
        };
        let Some(id) = started else {
            return Ok(Attempt::Overtaken);
        };
        let made = self.finished(&id, None, deadline).await?;
        self.made(made, change).await
    }

    async fn create_from_nothing(&self, desired: &Desired) -> Result<Option<String>, Error> {
        let token = desired.fingerprint.token();
        match self.cloud.create_stack(self.name.as_str(), desired, &token).await {
            Ok(id) => {
                self.tell(&Event::Started { operation: "create" });
                Ok(Some(id))
            }
            Err(failure) if failure.is("AlreadyExistsException") => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Only a change set can take a table in.
    async fn create_by_change_set(
        &self,
        review: Option<&Deployed>,
        table: bool,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Option<String>, Error> {
        let name = self.name.as_str();
        let started = self.import(table, desired, deadline).await;
        if started.is_err() && review.is_none() {
            self.drop_shell(name).await;
        }
        started
    }

    async fn import(
        &self,
        table: bool,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Option<String>, Error> {
        let name = self.name.as_str();
        let reviewed = self
            .review(name, Purpose::Create, None, desired, deadline)
            .await?;
        let (change_set, changes) = match reviewed {
            Reviewed::Changes { change_set, changes } => (change_set, changes),
            Reviewed::Busy => return Ok(None),
            Reviewed::Nothing => {
                return Err(Error::ChangeSet {
                    reason: "it sees nothing to create".to_owned(),
                });
            }
        };
        if table && !imports_table(&changes) {
            self.cloud.discard(name, &change_set.arn).await;
            let reason = update::describe_change(&changes, ids::TABLE.as_str());
            return Err(Error::NotImported {
                table: name.to_owned(),
                reason,
            });
        }
        match self
            .cloud
            .execute(name, &change_set.arn, &desired.fingerprint.token())
            .await
        {
            Ok(()) => {
                self.tell(&Event::Started {
                    operation: if table { "import" } else { "create" },
                });
                Ok(Some(change_set.stack_id))
            }
            Err(failure) if overtaken(&failure) => Ok(None),
            Err(failure) => {
                self.cloud.discard(name, &change_set.arn).await;
                Err(failure.into())
            }
        }
    }

    /// Removes the empty stack that a change set of ours has made, unless others have change sets for it too. That it
    /// cannot be removed is no reason to fail: the next deployment goes on with it.
    async fn drop_shell(&self, name: &str) {
        let Ok(Some(shell)) = self.cloud.describe(name).await else {
            return;
        };
        let empty = shell.situation() == Situation::Review
            && self
                .cloud
                .change_set_names(&shell.id)
                .await
                .is_ok_and(|names| names.is_empty());
        if empty && let Err(failure) = self.cloud.delete_stack(&shell.id, &[]).await {
            tracing::debug!(
                stack = name,
                reason = failure.message(),
                "an empty stack stays behind"
            );
        }
    }

    /// The end of a creation.
    async fn made(&self, stack: Option<Described>, change: Change) -> Result<Attempt, Error> {
        let Some(stack) = stack else {
            return Ok(Attempt::Overtaken);
        };
        if !stack.situation().succeeded() {
            return Err(self.failure(&stack).await);
        }
        let warnings = if change == Change::Imported {
            self.table_drift(&stack.id).await
        } else {
            vec![]
        };
        Ok(Attempt::Done {
            stack: Box::new(stack),
            change,
            warnings,
        })
    }
}

/// The changes of a creation.
pub(super) fn changes_on(table: bool, desired: &Desired) -> Vec<ResourceChange> {
    let mut changes = compare::resources(None, &desired.template);
    if let Some(change) = changes
        .iter_mut()
        .find(|change| table && change.logical_id == ids::TABLE.as_str())
    {
        change.kind = Kind::Import;
    }
    changes
}
