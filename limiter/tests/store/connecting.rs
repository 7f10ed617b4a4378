//! Connecting: where the table is, and what is said if it is not there.

use std::time::Duration;

use aws_sdk_dynamodb::config::Credentials;
use zae_limiter::{Error, NewEntity, RateLimiter};

use crate::support::{Stage, rpm};

on_every_store! {
    a_missing_table_is_its_own_error,
    two_limiters_on_one_table_see_the_same,
    a_limiter_is_shared_between_threads,
}

async fn a_missing_table_is_its_own_error(stage: Stage) {
    let limiter = stage.builder().create_table(false).await.unwrap();
    for result in [
        limiter.create_entity(NewEntity::new("user-1")).await.map(drop),
        limiter.resolve_limits("user-1", "gpt-4").await.map(drop),
        limiter.version().await.map(drop),
    ] {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, Error::TableMissing { table, .. } if *table == stage.name),
            "{error}"
        );
        assert!(!error.is_unavailable());
        assert!(
            error.to_string().contains("deploy the stack"),
            "it says what to do: {error}"
        );
    }
}

async fn two_limiters_on_one_table_see_the_same(stage: Stage) {
    let (one, other) = (stage.limiter().await, stage.limiter().await);
    one.create_entity(NewEntity::new("user-1").name("shared"))
        .await
        .unwrap();
    assert_eq!(other.get_entity("user-1").await.unwrap().unwrap().name, "shared");
    assert!(matches!(
        other.create_entity(NewEntity::new("user-1")).await,
        Err(Error::EntityExists { .. })
    ));
}

async fn a_limiter_is_shared_between_threads(stage: Stage) {
    fn is_shareable<T: Clone + Send + Sync + 'static>(_: &T) {}
    let limiter = stage.limiter().await;
    is_shareable(&limiter);
    is_shareable(limiter.repository());
    limiter.set_system_defaults([rpm(5)]).await.unwrap();
    let tasks: Vec<_> = (0..4)
        .map(|number| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                limiter
                    .resolve_limits(format!("user-{number}"), "gpt-4")
                    .await
                    .unwrap()
                    .limits
                    .len()
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_file_survives_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limiter.db");
    let first = RateLimiter::embedded_at(&path).await.unwrap();
    first.create_entity(NewEntity::new("user-1")).await.unwrap();
    first.set_limits("user-1", "gpt-4", [rpm(7)]).await.unwrap();
    drop(first);
    let second = RateLimiter::embedded_at(&path).await.unwrap();
    assert!(second.get_entity("user-1").await.unwrap().is_some());
    assert_eq!(
        second
            .resolve_limits("user-1", "gpt-4")
            .await
            .unwrap()
            .limits
            .iter()
            .next(),
        Some(&rpm(7))
    );
}

fn nowhere() -> zae_limiter::Builder {
    // A port that nobody listens on: bound once and let go.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    RateLimiter::builder("my-app")
        .endpoint_url(format!("http://127.0.0.1:{port}"))
        .region("us-east-1")
        .credentials(Credentials::new("test", "test", None, None, "tests"))
        .time_budget(Duration::from_millis(300))
}

#[tokio::test]
async fn an_endpoint_that_nobody_listens_on_is_unavailability() {
    let limiter = nowhere().await.unwrap();
    let error = limiter.resolve_limits("user-1", "gpt-4").await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn bad_settings_are_refused_when_the_limiter_is_built() {
    for name in ["", "my_app", "1app", "my.app"] {
        let refused = RateLimiter::builder(name).region("us-east-1").await;
        assert!(matches!(refused, Err(Error::Name(_))), "{name}");
    }
    let twice = RateLimiter::embedded().default_limits([rpm(1), rpm(2)]).await;
    assert!(matches!(
        twice,
        Err(Error::Invalid {
            field: "default limits",
            ..
        })
    ));
    let never = RateLimiter::embedded().time_budget(Duration::ZERO).await;
    assert!(matches!(
        never,
        Err(Error::Invalid {
            field: "time_budget",
            ..
        })
    ));
    assert!(matches!(
        RateLimiter::embedded().principal("no name").await,
        Err(Error::Name(_))
    ));
}
