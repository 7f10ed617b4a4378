//! Who makes the changes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_config::SdkConfig;
use tokio::sync::OnceCell;
use zae_limiter_schema::Principal;

/// How often the caller's ARN is asked for before audit events go without.
const MOST_ATTEMPTS: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(2);

/// The principal of audit events: given by hand, or the ARN of the credentials, looked up once.
#[derive(Debug)]
pub(super) struct PrincipalSource {
    given: Option<Principal>,
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
            // Counted here: those who wait for a lookup of somebody else's make none.
            if self.attempts.fetch_add(1, Ordering::Relaxed) >= MOST_ATTEMPTS {
                return Err(());
            }
            caller_arn(aws).await
        };
        self.found.get_or_try_init(look_up).await.ok().cloned()
    }
}

async fn caller_arn(aws: &SdkConfig) -> Result<String, ()> {
    let config =
        aws_sdk_sts::config::Builder::from(aws).retry_config(aws_config::retry::RetryConfig::disabled());
    let client = aws_sdk_sts::Client::from_conf(config.build());
    let answer = tokio::time::timeout(PATIENCE, client.get_caller_identity().send()).await;
    match answer {
        Ok(Ok(identity)) => identity.arn.ok_or(()),
        Ok(Err(error)) => {
            tracing::debug!(error = %aws_sdk_sts::error::DisplayErrorContext(&error), "the caller's ARN is not known");
            Err(())
        }
        Err(_) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use aws_config::{BehaviorVersion, Region};
    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;
    use aws_smithy_runtime_api::client::http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    };
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
    use aws_smithy_types::body::SdkBody;

    use super::*;

    const ARN: &str = "arn:aws:iam::123456789012:user/ops";

    /// Fails so many times, then answers.
    #[derive(Debug, Clone)]
    struct Sts {
        failures: u32,
        calls: Arc<AtomicU32>,
    }

    impl HttpConnector for Sts {
        fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
            let fails = self.calls.fetch_add(1, Ordering::SeqCst) < self.failures;
            HttpConnectorFuture::new(async move {
                // Others come meanwhile.
                tokio::time::sleep(Duration::from_millis(10)).await;
                let body = format!(
                    "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
                     <GetCallerIdentityResult><Arn>{ARN}</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>"
                );
                let status = if fails { 500 } else { 200 };
                Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body)))
            })
        }
    }

    impl HttpClient for Sts {
        fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
            SharedHttpConnector::new(self.clone())
        }
    }

    /// What many who ask at once are told, and how many lookups that took.
    async fn ask(failures: u32, askers: usize) -> (Vec<Option<String>>, u32) {
        let calls = Arc::new(AtomicU32::new(0));
        let credentials = Credentials::new("test", "test", None, None, "tests");
        let aws = SdkConfig::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(Sts {
                failures,
                calls: calls.clone(),
            })
            .build();
        let source = Arc::new(PrincipalSource::new(None, Some(aws)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..askers {
            let source = source.clone();
            tasks.spawn(async move { source.get().await });
        }
        (tasks.join_all().await, calls.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_at_once_share_one_lookup() {
        let (told, lookups) = ask(0, 20).await;
        assert!(told.iter().all(|told| told.as_deref() == Some(ARN)), "{told:?}");
        assert_eq!(lookups, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_fails_is_repeated_and_one_that_always_fails_is_given_up() {
        let (told, lookups) = ask(2, 20).await;
        assert_eq!(
            told.iter().flatten().count(),
            18,
            "two learned that it failed: {told:?}"
        );
        assert_eq!(lookups, 3);
        let (told, lookups) = ask(u32::MAX, 20).await;
        assert_eq!(told.iter().flatten().count(), 0);
        assert_eq!(lookups, MOST_ATTEMPTS);
    }
}
