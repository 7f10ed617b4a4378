//! Mistakes of the caller: an error that names them, before any write.

use zae_limiter::error::{Invalid, NotFound};
use zae_limiter::{Error, Limit};

use crate::acquire::support::*;

async fn message(acquire: zae_limiter::Acquire) -> String {
    acquire.await.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_in_itself_is_refused_without_a_call() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    let call = || limiter.acquire("user-1", GPT);
    let rpm = |capacity| Limit::per_minute("rpm", capacity).unwrap();
    for (acquire, named) in [
        (call(), "call `consume` at least once"),
        (call().consume("rpm", 0), "call `consume` at least once"),
        (
            call().consume("rpm", 0).consume("tpm", 0),
            "call `consume` at least once",
        ),
        (call().consume("rpm", u64::MAX), "18446744073709551615"),
        (call().consume("", 1), "limit name"),
        (call().consume("rpm", 1).limits([]), "at least one is needed"),
        (
            call().consume("rpm", 1).limits([rpm(1), rpm(2)]),
            "duplicate limit name",
        ),
        (limiter.acquire("", GPT).consume("rpm", 1), "entity"),
        (limiter.acquire("a#b", GPT).consume("rpm", 1), "a#b"),
        (limiter.acquire("user-1", "").consume("rpm", 1), "resource"),
        (limiter.acquire("user-1", "gpt#4").consume("rpm", 1), "gpt#4"),
    ] {
        let text = message(acquire).await;
        assert!(text.contains(named), "{text:?} does not name {named:?}");
    }
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_limit_is_named_with_those_that_exist_and_nothing_is_written() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10", "tpm:1000"]).await;
    let asked = limiter
        .acquire("user-1", GPT)
        .consume("rpm", 1)
        .consume("tmp", 500);
    let error = asked.await.unwrap_err();
    assert!(
        matches!(error, Error::Invalid(Invalid::Argument { field: "limit", .. })),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("\"tmp\"") && error.to_string().contains("rpm, tpm"),
        "{error}"
    );
    assert_eq!(
        stage.wire.operations(),
        ["BatchGetItem"],
        "the configuration had to be read"
    );
    let again = limiter.acquire("user-1", GPT).consume("tmp", 1);
    assert!(message(again).await.contains("rpm, tpm"));
    assert_eq!(stage.wire.operations(), Vec::<String>::new(), "and is known now");
    assert!(stage.bucket("user-1").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn without_any_limits_the_error_says_where_they_were_looked_for() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    let error = lease(&limiter, "user-1", "rpm", 1).await.unwrap_err();
    assert!(
        matches!(error, Error::NotFound(NotFound::Limits { .. })),
        "{error:?}"
    );
    assert_eq!(stage.wire.operations(), ["BatchGetItem"]);
}

#[tokio::test(start_paused = true)]
async fn more_of_a_lease_is_checked_in_the_same_way() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    let mut lease = lease(&limiter, "user-1", "rpm", 1).await.unwrap();
    stage.wire.calls();
    assert!(lease.consume("rpm", 0).await.is_err());
    assert!(lease.consume("tpm", 1).await.is_err());
    assert!(lease.consume("rpm", u64::MAX).await.is_err());
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
    lease.consume("rpm", 2).await.unwrap();
    lease.commit().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "rpm").await, 7);
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_nothing_is_admitted() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    limiter.shutdown().await;
    assert!(
        message(limiter.acquire("user-1", GPT).consume("rpm", 1))
            .await
            .contains("shut down")
    );
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
}
