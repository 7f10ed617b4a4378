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

/// Fails the given number of times, then responds.
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
    assert_eq!(lookups, MAX_ATTEMPTS);
}
