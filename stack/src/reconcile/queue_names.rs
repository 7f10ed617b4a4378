//! The names of deleted queues, which SQS blocks for 60 seconds.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::time::sleep;

use crate::cause::advice::QUEUE_NAME_BLOCKED;
use crate::desired::Desired;
use crate::events::Event;
use crate::patience::{Deadline, patiently};
use crate::{Error, Stack};

impl Stack {
    /// Waits until SQS frees the names of the queues that the last stack of this name had. Without this, the creation around
    /// an imported table would fail and roll back.
    pub(super) async fn wait_for_queue_names(
        &self,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<(), Error> {
        let queue =
            |resource: &Value| resource.get("Type").and_then(Value::as_str) == Some("AWS::SQS::Queue");
        if !desired.template.resources().any(|(_, resource)| queue(resource)) {
            return Ok(());
        }
        let deleted = match patiently(deadline, || self.cloud.last_deletion(self.name.as_str())).await {
            Ok(deleted) => deleted,
            Err(failure) => {
                self.tell(&Event::NotChecked {
                    what: "names of deleted queues".to_owned(),
                    reason: failure.message().to_owned(),
                });
                return Ok(());
            }
        };
        let age = deleted.map(|time| SystemTime::now().duration_since(time).unwrap_or(Duration::ZERO));
        let Some(left) = age.and_then(|age| QUEUE_NAME_BLOCKED.checked_sub(age)) else {
            return Ok(());
        };
        self.in_time(deadline, "wait for the names of deleted queues")?;
        self.tell(&Event::TryingAgain {
            reason: "SQS blocks the names of deleted queues for 60 seconds".to_owned(),
            after_seconds: left.as_secs() + 1,
        });
        sleep(left + Duration::from_secs(1)).await;
        Ok(())
    }
}
