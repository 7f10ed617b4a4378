//! The table.

use aws_sdk_dynamodb::types::TableDescription;

use super::Cloud;
use super::failure::Failure;

impl Cloud {
    /// Turns deletion protection on or off.
    pub(crate) async fn set_protection(&self, name: &str, protected: bool) -> Result<(), Failure> {
        let call = self.clients.dynamodb.update_table().table_name(name);
        call.deletion_protection_enabled(protected)
            .send()
            .await
            .map_err(|error| Failure::of("dynamodb:UpdateTable", name, &error))?;
        Ok(())
    }

    /// The table of this name; `None` if it does not exist.
    pub(crate) async fn table(&self, name: &str) -> Result<Option<TableDescription>, Failure> {
        match self
            .clients
            .dynamodb
            .describe_table()
            .table_name(name)
            .send()
            .await
        {
            Ok(found) => Ok(found.table),
            Err(error) => {
                let failure = Failure::of("dynamodb:DescribeTable", name, &error);
                if failure.absent() { Ok(None) } else { Err(failure) }
            }
        }
    }
}
