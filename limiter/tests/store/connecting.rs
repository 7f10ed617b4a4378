//! Connecting: where the table is, and what is said if it is not there.

use std::time::Duration;

use aws_sdk_dynamodb::config::Credentials;
use zae_limiter::error::{Conflict, Invalid, NotFound, Unavailable};
use zae_limiter::{EmbeddedStore, Error, NewEntity, PageRequest, RateLimiter};

use crate::store::support::{Stage, rpm};

on_every_store! {
    a_missing_table_is_its_own_error,
    two_limiters_on_one_table_see_the_same,
    a_limiter_is_shared_between_threads,
}

async fn a_missing_table_is_its_own_error(stage: Stage) {
    let repository = stage.repository_without_setup().await;
    for result in [
        repository.create_entity(NewEntity::new("user-1")).await.map(drop),
        repository.resolve_limits("user-1", "gpt-4").await.map(drop),
        repository.get_version().await.map(drop),
    ] {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, Error::NotFound(NotFound::Table { table, .. }) if *table == stage.name),
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
    let (one, other) = (stage.repository().await, stage.repository().await);
    one.create_entity(NewEntity::new("user-1").name("shared"))
        .await
        .unwrap();
    assert_eq!(other.get_entity("user-1").await.unwrap().unwrap().name, "shared");
    assert!(matches!(
        other.create_entity(NewEntity::new("user-1")).await,
        Err(Error::Conflict(Conflict::EntityExists { .. }))
    ));
}

async fn a_limiter_is_shared_between_threads(stage: Stage) {
    fn is_shareable<T: Clone + Send + Sync + 'static>(_: &T) {}
    let repository = stage.repository().await;
    is_shareable(&repository);
    repository.set_system_defaults([rpm(5)]).await.unwrap();
    let tasks: Vec<_> = (0..4)
        .map(|number| {
            let repository = repository.clone();
            tokio::spawn(async move {
                repository
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
    let first = RateLimiter::embedded_at(&path).build_repository().await.unwrap();
    first.create_entity(NewEntity::new("user-1")).await.unwrap();
    first.set_limits("user-1", "gpt-4", [rpm(7)]).await.unwrap();
    drop(first);
    let second = RateLimiter::embedded_at(&path).build_repository().await.unwrap();
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

fn nowhere() -> zae_limiter::RateLimiterBuilder {
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
    let repository = nowhere().build_repository().await.unwrap();
    let error = repository.resolve_limits("user-1", "gpt-4").await.unwrap_err();
    assert!(
        matches!(error, Error::Unavailable(Unavailable::NoResponse { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn bad_settings_are_refused_when_the_limiter_is_built() {
    for name in ["", "my_app", "1app", "my.app"] {
        let refused = RateLimiter::builder(name).region("us-east-1").await;
        assert!(matches!(refused, Err(Error::Invalid(Invalid::Name(_)))), "{name}");
    }
    let twice = RateLimiter::embedded().default_limits([rpm(1), rpm(2)]).await;
    assert!(matches!(
        twice,
        Err(Error::Invalid(Invalid::Argument {
            field: "default limits",
            ..
        }))
    ));
    let never = RateLimiter::embedded().time_budget(Duration::ZERO).await;
    assert!(matches!(
        never,
        Err(Error::Invalid(Invalid::Argument {
            field: "time_budget",
            ..
        }))
    ));
    assert!(matches!(
        RateLimiter::embedded().principal("no name").await,
        Err(Error::Invalid(Invalid::Name(_)))
    ));
}

fn field_of(refused: zae_limiter::Result<RateLimiter>) -> &'static str {
    match refused {
        Err(Error::Invalid(Invalid::Argument { field, .. })) => field,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn an_sdk_configuration_is_used_and_what_is_set_by_hand_stands_above_it() {
    use aws_credential_types::provider::SharedCredentialsProvider;

    let stage = Stage::http();
    stage.repository().await;
    let config = |url: &str| {
        let credentials = Credentials::new("test", "test", None, None, "tests");
        aws_config::SdkConfig::builder()
            .behavior_version(aws_config::BehaviorVersion::v2026_01_12())
            .region(aws_config::Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url(url)
            .build()
    };
    let builder = || RateLimiter::builder(&stage.name);
    let given = builder().sdk_config(config(stage.endpoint())).await.unwrap();
    assert!(given.repository().get_version().await.unwrap().is_some());
    let elsewhere = builder().sdk_config(config("http://127.0.0.1:1"));
    let above = elsewhere.endpoint_url(stage.endpoint()).await.unwrap();
    assert!(above.repository().get_version().await.unwrap().is_some());
}

#[tokio::test]
async fn with_a_whole_configuration_nothing_is_looked_up() {
    use aws_credential_types::provider::SharedCredentialsProvider;
    use zae_limiter_testing::connection::Recorder;

    let credentials = Credentials::new("test", "test", None, None, "tests");
    let config = aws_config::SdkConfig::builder()
        .behavior_version(aws_config::BehaviorVersion::v2026_01_12())
        .region(aws_config::Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        // It panics on a call of any other service, such as STS.
        .http_client(Recorder::to(EmbeddedStore::memory().unwrap()))
        .build();
    let limiter = RateLimiter::with_sdk_config("limiter", config).create_table(true);
    let repository = limiter.build_repository().await.unwrap();
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    let entity = "user-1".parse().unwrap();
    let events = repository
        .list_audit_events(&entity, &PageRequest::new(1))
        .await
        .unwrap();
    assert_eq!(events.items[0].principal, None);
}

#[tokio::test]
async fn lengths_of_time_beyond_a_year_are_refused() {
    let forever = Duration::MAX;
    let embedded = RateLimiter::embedded;
    assert_eq!(field_of(embedded().time_budget(forever).await), "time_budget");
    assert_eq!(
        field_of(embedded().admin_time_budget(forever).await),
        "admin_time_budget"
    );
    assert_eq!(field_of(embedded().settle_budget(forever).await), "settle_budget");
    assert_eq!(
        field_of(embedded().refusal_cache_ttl(forever).await),
        "refusal_cache_ttl"
    );
    assert_eq!(
        field_of(embedded().config_cache_ttl(forever).await),
        "config_cache_ttl"
    );
    assert_eq!(
        field_of(nowhere().connect_timeout(forever).await),
        "connect_timeout"
    );
    let a_year = Duration::from_secs(366 * 86_400);
    let patient = embedded()
        .time_budget(a_year)
        .admin_time_budget(a_year)
        .config_cache_ttl(a_year);
    let repository = patient.build_repository().await.unwrap();
    repository.set_system_defaults([rpm(1)]).await.unwrap();
    assert!(repository.resolve_limits("user-1", "gpt-4").await.is_ok());
}

#[tokio::test]
async fn settings_that_would_be_ignored_are_refused() {
    let embedded = RateLimiter::embedded;
    let credentials = || Credentials::new("test", "test", None, None, "tests");
    let sdk_config = || {
        aws_config::SdkConfig::builder()
            .region(aws_config::Region::new("us-east-1"))
            .build()
    };
    assert_eq!(field_of(embedded().region("us-east-1").await), "region");
    assert_eq!(
        field_of(embedded().endpoint_url("http://here").await),
        "endpoint_url"
    );
    assert_eq!(
        field_of(embedded().credentials(credentials()).await),
        "credentials"
    );
    assert_eq!(field_of(embedded().profile("dev").await), "profile");
    assert_eq!(field_of(embedded().sdk_config(sdk_config()).await), "sdk_config");
    assert_eq!(
        field_of(embedded().connect_timeout(Duration::from_secs(1)).await),
        "connect_timeout"
    );
    let both = RateLimiter::builder("my-app")
        .sdk_config(sdk_config())
        .profile("dev");
    assert_eq!(field_of(both.await), "profile");
}

#[tokio::test]
async fn more_limits_than_a_write_can_hold_are_refused() {
    let limits = |count: usize| {
        (0..count).map(|number| zae_limiter::Limit::per_minute(format!("limit-{number}"), 10).unwrap())
    };
    let most = zae_limiter::MAX_LIMITS;
    let refused = RateLimiter::embedded().default_limits(limits(most + 1)).await;
    assert_eq!(field_of(refused), "default limits");
    let limiter = RateLimiter::embedded().await.unwrap();
    let refused = limiter
        .repository()
        .set_system_defaults(limits(most + 1))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid(Invalid::Argument { field: "limits", rule, .. }) if rule.contains("at most 28")),
        "{refused}"
    );
    let refused = limiter
        .acquire("user-1", "gpt-4")
        .limits(limits(most + 1))
        .consume("limit-0", 1)
        .await
        .unwrap_err();
    assert!(
        matches!(refused, Error::Invalid(Invalid::Argument { field: "limits", .. })),
        "{refused}"
    );

    limiter
        .repository()
        .set_system_defaults(limits(most))
        .await
        .unwrap();
    limiter
        .repository()
        .set_system_defaults(limits(most))
        .await
        .unwrap();
    let mut acquire = limiter.acquire("user-1", "gpt-4");
    for number in 0..most {
        acquire = acquire.consume(format!("limit-{number}"), 1);
    }
    acquire.await.unwrap().commit().await.unwrap();
    assert_eq!(
        limiter
            .acquire("user-1", "gpt-4")
            .peek()
            .await
            .unwrap()
            .tokens("limit-27"),
        Some(9)
    );
}
