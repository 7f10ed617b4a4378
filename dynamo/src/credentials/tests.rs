#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::IdentityCache;

use super::*;
use crate::script::{Script, table};
use crate::{Table, Update};

/// A provider that takes its time, first and later, and whose credentials live for an hour.
#[derive(Debug, Clone, Default)]
struct Slow {
    first: Duration,
    later: Duration,
    fails: bool,
    loads: Arc<AtomicU32>,
    /// Seconds since the epoch.
    calendar: Arc<AtomicU64>,
}

impl Slow {
    fn taking(millis: u64) -> Self {
        Self {
            first: Duration::from_millis(millis),
            later: Duration::from_millis(millis),
            ..Self::default()
        }
    }

    fn now(calendar: &AtomicU64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(calendar.load(Ordering::SeqCst))
    }

    fn shared(&self) -> SharedCredentials {
        let calendar = self.calendar.clone();
        let shared = SharedCredentials::new(SharedCredentialsProvider::new(self.clone()), None);
        shared.with_calendar(move || Self::now(&calendar))
    }

    fn loads(&self) -> u32 {
        self.loads.load(Ordering::SeqCst)
    }
}

impl ProvideCredentials for Slow {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            let number = self.loads.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(if number == 0 { self.first } else { self.later }).await;
            if self.fails {
                return Err(CredentialsError::provider_error("status 403"));
            }
            let expiry = Self::now(&self.calendar) + Duration::from_secs(3_600);
            Ok(Credentials::new(
                format!("AKID{number}"),
                "secret",
                None,
                Some(expiry),
                "test",
            ))
        })
    }
}

/// A table whose calls have a second, and half of it for an attempt.
fn quick_table(script: &Script, credentials: &SharedCredentials) -> Table {
    let config = script
        .config()
        .credentials_provider(credentials.clone())
        .identity_cache(IdentityCache::no_cache());
    Table {
        credentials: Some(credentials.clone()),
        budget: Duration::from_secs(1),
        attempt: Duration::from_millis(500),
        ..table(Client::from_conf(config.build()))
    }
}

fn update() -> Update {
    Update::of(zae_limiter_schema::keys::version()).remove("a")
}

#[tokio::test(start_paused = true)]
async fn a_provider_slower_than_an_attempt_is_called_once_and_no_call_fails() {
    for millis in [450, 600, 900] {
        let (script, slow) = (Script::default(), Slow::taking(millis));
        let table = quick_table(&script, &slow.shared());
        for call in 0..60 {
            let sent = table.update(update()).await;
            assert!(sent.is_ok(), "{millis} ms, call {call}: {sent:?}");
        }
        assert_eq!((slow.loads(), script.operations().len()), (1, 60), "{millis} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_refresh_makes_no_call_wait() {
    let (script, slow) = (
        Script::default(),
        Slow {
            later: Duration::from_millis(600),
            ..Slow::default()
        },
    );
    let table = quick_table(&script, &slow.shared());
    table.update(update()).await.unwrap();
    // Four minutes before they expire.
    slow.calendar.store(3_360, Ordering::SeqCst);
    let before = Instant::now();
    for _ in 0..40 {
        table.update(update()).await.unwrap();
    }
    assert_eq!(before.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(slow.loads(), 2);
    table.update(update()).await.unwrap();
    let sent = script.sent.lock().unwrap();
    let key_of = |index: usize| {
        sent[index]
            .header("authorization")
            .unwrap()
            .contains("Credential=AKID1/")
    };
    assert_eq!((key_of(40), key_of(41)), (false, true));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gives_up_does_not_cancel_the_load() {
    let (script, slow) = (Script::default(), Slow::taking(2_500));
    let table = quick_table(&script, &slow.shared());
    assert!(table.denial().is_none(), "nobody has asked for credentials");
    for _ in 0..2 {
        let error = table.update(update()).await.unwrap_err();
        let Some(CallError::Denied(text)) = error.cause() else {
            unreachable!("{error}")
        };
        assert!(
            text.contains("has not responded in time; set AWS_PROFILE"),
            "{text}"
        );
        assert_eq!(table.denial().unwrap().cause(), error.cause());
    }
    table.update(update()).await.unwrap();
    assert!(table.denial().is_none());
    assert_eq!((slow.loads(), script.operations().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_load_that_fails_is_a_denial_also_while_the_next_one_runs() {
    let (script, slow) = (
        Script::default(),
        Slow {
            fails: true,
            ..Slow::taking(800)
        },
    );
    let table = quick_table(&script, &slow.shared());
    for call in 0..10 {
        let error = table.update(update()).await.unwrap_err();
        let Some(CallError::Denied(text)) = error.cause() else {
            unreachable!("call {call}: {error}")
        };
        assert!(
            text.contains("status 403") && text.contains("AWS_PROFILE"),
            "{text}"
        );
        tokio::time::advance(Duration::from_millis(300)).await;
    }
    assert!(script.operations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_profile_without_credentials_is_named() {
    let slow = Slow {
        fails: true,
        ..Slow::default()
    };
    let shared = SharedCredentials {
        profile: Some("prod".to_owned()),
        ..slow.shared()
    };
    let deadline = Instant::now() + Duration::from_secs(1);
    let error = shared.ready_by(deadline).await.unwrap_err().to_string();
    assert!(error.contains("profile `prod`"), "{error}");
}
