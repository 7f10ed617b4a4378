//! A request from start to end.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use futures::FutureExt;
use serde_json::{Value, json};
use zae_limiter::{RateLimiter, Timestamp};
use zae_limiter_function::{Environment, lambda_config};
use zae_limiter_limits::{Action, Comparison, Error, LevelChanges};

use crate::callback::{Callback, Undelivered};
use crate::limits_file;
use crate::principal::principal;
use crate::request::{Request, RequestType};

/// Reserved for the response: the work has ended or is given up by then.
pub const RESERVE: Duration = Duration::from_secs(30);

/// Comparisons of a file while other processes apply theirs.
const ATTEMPTS: u32 = 5;

/// Why an invocation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvocationError {
    /// The request of a direct invocation failed. CloudFormation hears of a failure in its response.
    #[error("{0}")]
    Request(String),
    /// CloudFormation did not take the response.
    #[error(transparent)]
    Undelivered(#[from] Undelivered),
}

impl InvocationError {
    /// Whether CloudFormation rejected the response permanently. The invocation must not fail then: Lambda could repeat it,
    /// with a file that may be older than the applied one, and the response would be rejected again.
    pub fn is_refused_response(&self) -> bool {
        matches!(self, Self::Undelivered(undelivered) if undelivered.is_permanent())
    }
}

/// Applies limits files to a table.
#[derive(Debug)]
pub struct Provisioner {
    /// A missing setting fails each request, not the start: CloudFormation would wait for a function that does not start.
    table: Option<String>,
    aws: SdkConfig,
    callback: Callback,
}

impl Provisioner {
    /// The provisioner that the environment describes.
    pub fn start(environment: &Environment) -> Self {
        Self::new(environment.optional("TABLE_NAME"), lambda_config(environment))
    }

    /// For this table.
    pub fn new(table: Option<String>, aws: SdkConfig) -> Self {
        Self {
            table: table.filter(|name| !name.is_empty()),
            aws,
            callback: Callback::default(),
        }
    }

    /// Handles the event of an invocation that Lambda ends at the deadline.
    ///
    /// CloudFormation always gets a response: it waits up to an hour for one.
    pub async fn handle(&self, event: &Value, deadline: SystemTime) -> Result<Value, InvocationError> {
        let time = deadline.duration_since(SystemTime::now()).unwrap_or_default();
        let outcome = self.outcome(event, time.saturating_sub(RESERVE)).await;
        let Some(url) = event.get("ResponseURL") else {
            return outcome.map_err(InvocationError::Request);
        };
        let body = Callback::body(Request::echo(event), &outcome);
        self.callback
            .send(url.as_str().unwrap_or_default(), &body)
            .await?;
        Ok(body)
    }

    async fn outcome(&self, event: &Value, time: Duration) -> Result<Value, String> {
        let work = AssertUnwindSafe(Box::pin(self.perform(event))).catch_unwind();
        match tokio::time::timeout(time, work).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err("the provisioner panicked; its log has the reason".to_owned()),
            Err(_) => Err(format!(
                "the limits were not applied within {} s; a part may be, and the next request applies the rest",
                time.as_secs()
            )),
        }
    }

    async fn perform(&self, event: &Value) -> Result<Value, String> {
        let request = Request::parse(event).map_err(|error| error.to_string())?;
        let file = match limits_file(&request.properties) {
            // What was never valid was never applied, and its deletion must not fail: it is how a failed creation ends.
            Err(_) if request.request_type == RequestType::Delete => {
                return Ok(summary(&LevelChanges::default()));
            }
            file => file.map_err(|error| error.to_string())?,
        };
        let table = self.table.as_deref();
        let table =
            table.ok_or("environment variable TABLE_NAME is not set; the stack's template sets it")?;
        let mut attempt = 1;
        loop {
            match Box::pin(self.changes(table, &request, &file)).await {
                Ok(changes) => return Ok(summary(&changes)),
                Err(Error::Concurrent { .. }) if attempt < ATTEMPTS => attempt += 1,
                // The table is gone, and the limits with it.
                Err(error) if error.is_missing_table() && request.request_type == RequestType::Delete => {
                    return Ok(summary(&LevelChanges::default()));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    async fn changes(&self, table: &str, request: &Request, file: &str) -> Result<LevelChanges, Error> {
        // Checked first, so that an invalid file is reported in any state of the table.
        if request.request_type != RequestType::Delete {
            zae_limiter_limits::Manifest::parse(file)?;
        }
        let limiter = RateLimiter::with_sdk_config(table, self.aws.clone());
        let repository = limiter
            .principal(principal(&request.owner))
            .build_repository()
            .await?;
        match request.request_type {
            RequestType::Create | RequestType::Update => {
                let comparison = Comparison::of_resource(&repository, file, &request.owner).await?;
                comparison.apply(now()).await
            }
            RequestType::Delete => {
                let comparison = Comparison::withdraw(&repository, file, &request.owner).await?;
                comparison.apply(now()).await
            }
            RequestType::Plan => Ok(Comparison::of(&repository, file).await?.changes().clone()),
        }
    }
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// The changes as CloudFormation's attributes of the resource and as the result of an invocation.
fn summary(changes: &LevelChanges) -> Value {
    json!({
        "Created": changes.count(Action::Create),
        "Updated": changes.count(Action::Update),
        "Deleted": changes.count(Action::Delete),
        "Unchanged": changes.unchanged,
    })
}

#[cfg(test)]
mod tests;
