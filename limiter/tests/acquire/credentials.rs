//! Credentials that are slow to load, as from SSO, `credential_process` or chained roles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, future};

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
