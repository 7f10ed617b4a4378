//! Going on with a rollback that has failed.

use crate::situation::Situation;
use crate::{Error, Stack};

impl Stack {
    pub(crate) async fn rolled_back(&self, id: &str, skip: &[String]) -> Result<(), Error> {
        self.cloud.continue_rollback(id, skip).await?;
        match self.settled(id, &self.deadline(), false).await? {
            Some(stack) if stack.situation() == Situation::RolledBack => Ok(()),
            Some(stack) => Err(self.failure(&stack).await),
            None => Err(Error::NoSuchStack {
                stack: self.name.to_string(),
            }),
        }
    }
}
