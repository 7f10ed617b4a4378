//! Purging: deleting the resources that a stack retains.

use aws_sdk_dynamodb::types::TableStatus;
use zae_limiter_template::model::ids;

use super::delete::Kept;
use crate::adopt::looks_like_ours;
use crate::events::Event;
use crate::patience::{Deadline, patiently};
use crate::{Error, Stack};

impl Stack {
    /// The table that a deleted stack of this name left: it has this project's layout and belongs to no stack.
    pub(super) async fn orphan(&self, deadline: &Deadline) -> Result<Option<Kept>, Error> {
        let name = self.name.as_str();
        let table = patiently(deadline, || self.cloud.table(name))
            .await?
            .filter(looks_like_ours);
        // A table that is already being deleted needs no purge.
        let table = table.filter(|table| table.table_status() != Some(&TableStatus::Deleting));
        if table.is_none() || patiently(deadline, || self.cloud.owner_of(name)).await?.is_some() {
            return Ok(None);
        }
        Ok(Some(Kept {
            logical_id: ids::TABLE.to_string(),
            resource_type: "AWS::DynamoDB::Table".to_owned(),
            physical_id: name.to_owned(),
        }))
    }

    /// An error if one of these cannot be deleted.
    pub(super) async fn check_purge(&self, doomed: &[Kept], account: &str) -> Result<(), Error> {
        let mut obstacles = Vec::new();
        for resource in doomed {
            let name = &resource.physical_id;
            if is_table(resource) {
                let table = self.cloud.table(name).await?;
                if table.is_some_and(|table| table.deletion_protection_enabled == Some(true)) {
                    obstacles.push(format!(
                        "table {name} has deletion protection; set enable_deletion_protection to false and deploy first"
                    ));
                }
            } else if self.cloud.locks_objects(name, account).await? {
                obstacles.push(format!(
                    "bucket {name} has locked objects; delete the stack without purge, and the bucket after the locks expire"
                ));
            }
        }
        if obstacles.is_empty() {
            Ok(())
        } else {
            Err(Error::NotDeletable { obstacles })
        }
    }

    /// Deletes each of these, even if another one cannot be deleted.
    pub(super) async fn purge(
        &self,
        doomed: &[Kept],
        account: &str,
        deadline: &Deadline,
    ) -> Result<(), Error> {
        let (mut left, mut failed) = (Vec::new(), None);
        for resource in doomed {
            let purged = if is_table(resource) {
                self.purge_table(&resource.physical_id, deadline).await
            } else {
                self.purge_bucket(&resource.physical_id, account).await
            };
            match purged {
                Ok(what) => self.tell(&Event::Purged { what }),
                Err(error) => {
                    let kind = if is_table(resource) { "table" } else { "bucket" };
                    left.push(format!("{kind} {}", resource.physical_id));
                    failed = failed.or(Some(error));
                }
            }
        }
        match failed {
            None => Ok(()),
            Some(error) => Err(Error::PurgeIncomplete {
                left,
                source: Box::new(error),
            }),
        }
    }

    async fn purge_table(&self, name: &str, deadline: &Deadline) -> Result<String, Error> {
        self.cloud.delete_table(name).await?;
        self.table_that_stays(name, deadline).await?;
        Ok(format!("table {name}"))
    }

    async fn purge_bucket(&self, name: &str, account: &str) -> Result<String, Error> {
        let objects = self.cloud.empty_bucket(name, account).await?;
        self.cloud.delete_bucket(name, account).await?;
        Ok(format!("bucket {name} with {objects} objects"))
    }
}

fn is_table(resource: &Kept) -> bool {
    resource.logical_id == ids::TABLE.as_str()
}
