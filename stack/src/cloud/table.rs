//! The table.

use aws_sdk_dynamodb::types::{TableDescription, Tag};

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

    pub(crate) async fn tag_table(&self, arn: &str, key: &str, value: &str) -> Result<(), Failure> {
        // Both parts are set.
        let tag = Tag::builder().key(key).value(value).build().ok();
        let call = self.clients.dynamodb.tag_resource().resource_arn(arn);
        call.set_tags(tag.map(|tag| vec![tag]))
            .send()
            .await
            .map_err(|error| Failure::of("dynamodb:TagResource", arn, &error))?;
        Ok(())
    }

    pub(crate) async fn untag_table(&self, arn: &str, key: &str) -> Result<(), Failure> {
        let call = self.clients.dynamodb.untag_resource().resource_arn(arn);
        call.tag_keys(key)
            .send()
            .await
            .map_err(|error| Failure::of("dynamodb:UntagResource", arn, &error))?;
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

    /// The value of a tag of the table; `None` without the tag, or without the permission to read it.
    pub(crate) async fn tag_of(
        &self,
        table: &TableDescription,
        key: &str,
    ) -> Result<Option<String>, Failure> {
        let Some(arn) = table.table_arn() else {
            return Ok(None);
        };
        let mut next = None;
        // A table has at most 50 tags, and a page has 10.
        for _ in 0..5 {
            let call = self.clients.dynamodb.list_tags_of_resource().resource_arn(arn);
            let page = match call.set_next_token(next).send().await {
                Ok(page) => page,
                Err(error) => {
                    let failure = Failure::of("dynamodb:ListTagsOfResource", arn, &error);
                    return if failure.denied() { Ok(None) } else { Err(failure) };
                }
            };
            if let Some(tag) = page.tags().iter().find(|tag| tag.key() == key) {
                return Ok(Some(tag.value().to_owned()));
            }
            next = page.next_token;
            if next.is_none() {
                break;
            }
        }
        Ok(None)
    }
}
