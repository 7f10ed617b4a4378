//! Tables that Terraform manages, with the module that `zae-limiter-template` renders.

use aws_sdk_dynamodb::types::TableDescription;
use zae_limiter_template::MANAGED_BY_TERRAFORM;

use crate::outcome::Outcome;
use crate::owner::MANAGED_BY;
use crate::{Error, Stack};

impl Stack {
    /// Whether the table of this name exists and Terraform manages it. Such a table has no stack, and
    /// [`ensure`](Stack::ensure) leaves it alone.
    pub async fn is_managed_by_terraform(&self) -> Result<bool, Error> {
        Ok(self.table_of_terraform().await?.is_some())
    }

    /// The table, if Terraform manages it.
    pub(crate) async fn table_of_terraform(&self) -> Result<Option<TableDescription>, Error> {
        let table = match self.cloud.table(self.name.as_str()).await {
            Err(failure) if failure.denied() => None,
            table => table?,
        };
        let Some(table) = table else { return Ok(None) };
        Ok(self.managed(&table).await?.then_some(table))
    }

    /// Whether a table has the tag of the Terraform module.
    pub(crate) async fn managed(&self, table: &TableDescription) -> Result<bool, Error> {
        let manager = self.cloud.tag_of(table, MANAGED_BY).await?;
        Ok(manager.as_deref() == Some(MANAGED_BY_TERRAFORM))
    }

    /// The outcome of leaving the table alone.
    pub(crate) fn left_to_terraform(&self) -> Outcome {
        let why = Error::TableManaged {
            table: self.name.to_string(),
        };
        Outcome {
            warnings: vec![why.to_string()],
            ..self.unread()
        }
    }
}
