//! Credentials that are slow to load, as from SSO, `credential_process` or chained roles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, future};
use zae_limiter::{BreakerState, Error, OnUnavailable};

use crate::acquire::support::*;

#[derive(Debug)]
struct Slow {
    takes: Duration,
    loads: Arc<AtomicUsize>,
}

impl ProvideCredentials for Slow {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async move {
            self.loads.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(self.takes).await;
            Ok(Credentials::new("AKIA", "secret", None, None, "slow"))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_take_longer_than_an_attempt_are_loaded_once_and_no_call_fails() {
    for takes in [450, 600, 900] {
        let stage = Stage::new();
        let _table = stage.limiter(&["rpm:60"]).await;
        let loads = Arc::new(AtomicUsize::new(0));
        let slow = Slow {
            takes: millis(takes),
            loads: loads.clone(),
        };
        let builder = stage.builder().credentials(slow).create_table(false);
        let limiter = builder.default_limits(limits(&["rpm:60"])).await.unwrap();
        for call in 0..60 {
            let taken = take(&limiter, "user-1", "rpm", 1).await;
            assert!(taken.is_ok(), "{takes} ms, call {call}: {taken:?}");
            tokio::time::sleep(secs(2)).await;
        }
        assert_eq!(loads.load(Ordering::SeqCst), 1, "{takes} ms");
    }
}

/// A metadata service that accepts connections and never responds, for example. No policy lets calls pass.
#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_is_a_denial_and_no_outage() {
    let stage = Stage::new();
    let _table = stage.limiter(&["rpm:60"]).await;
    let loads = Arc::new(AtomicUsize::new(0));
    let slow = Slow {
        takes: secs(50),
        loads: loads.clone(),
    };
    let builder = stage.builder().credentials(slow).create_table(false);
    let builder = builder.default_limits(limits(&["rpm:60"]));
    let limiter = builder.on_unavailable(OnUnavailable::Allow).await.unwrap();
    for _ in 0..2 {
        let denied = take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
        assert!(!denied.is_unavailable(), "{denied}");
        let Error::PermissionDenied { message, .. } = denied else {
            unreachable!("{denied}")
        };
        assert!(
            message.contains("set AWS_PROFILE or AWS_ACCESS_KEY_ID"),
            "{message}"
        );
        let waiting = limiter.acquire("user-1", GPT).consume("rpm", 1);
        let denied = waiting.wait_up_to(secs(3)).await.unwrap_err();
        assert!(matches!(denied, Error::PermissionDenied { .. }), "{denied}");
        let read = limiter.repository().get_system_defaults().await.unwrap_err();
        assert!(matches!(read, Error::PermissionDenied { .. }), "{read}");
    }
    assert_eq!(limiter.stats().breaker, BreakerState::Closed);
    tokio::time::sleep(secs(50)).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(loads.load(Ordering::SeqCst), 1, "the load that was begun went on");
}
