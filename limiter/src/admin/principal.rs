//! Who makes the changes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_config::SdkConfig;
use tokio::sync::OnceCell;
use zae_limiter_schema::Principal;

/// The caller's ARN is looked up at most this often. After that audit events have no principal.
const MAX_ATTEMPTS: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(2);

/// The principal of audit events: the configured one, or the ARN of the credentials, looked up once.
#[derive(Debug)]
pub(super) struct PrincipalSource {
    given: Option<Principal>,
    /// For the lookup; none if nothing may be looked up.
    aws: Option<SdkConfig>,
    found: OnceCell<String>,
    attempts: AtomicU32,
}

impl PrincipalSource {
    pub(super) fn new(given: Option<Principal>, aws: Option<SdkConfig>) -> Self {
        Self {
            given,
            aws,
            found: OnceCell::new(),
            attempts: AtomicU32::new(0),
        }
    }

    /// The principal, if it can be known. Not knowing it never stops a change.
    pub(super) async fn get(&self) -> Option<String> {
        if let Some(given) = &self.given {
            return Some(given.to_string());
        }
        let aws = self.aws.as_ref()?;
        let look_up = || async {
            // Counted here: callers that wait for another caller's lookup make none.
            if self.attempts.fetch_add(1, Ordering::Relaxed) >= MAX_ATTEMPTS {
                return Err(());
            }
            caller_arn(aws).await
        };
        self.found.get_or_try_init(look_up).await.ok().cloned()
    }
}

/// Asks STS for the ARN of the credentials.
async fn caller_arn(aws: &SdkConfig) -> Result<String, ()> {
    let config =
        aws_sdk_sts::config::Builder::from(aws).retry_config(aws_config::retry::RetryConfig::disabled());
    let client = aws_sdk_sts::Client::from_conf(config.build());
    let response = tokio::time::timeout(PATIENCE, client.get_caller_identity().send()).await;
    match response {
        Ok(Ok(identity)) => identity.arn.ok_or(()),
        Ok(Err(error)) => {
            tracing::debug!(error = %aws_sdk_sts::error::DisplayErrorContext(&error), "the caller's ARN is not known");
            Err(())
        }
        Err(_) => Err(()),
    }
}

#[cfg(test)]
mod tests;
