//! Files that several processes use at once.

use zae_limiter::{NewEntity, RateLimiter};

#[tokio::test]
async fn a_file_that_is_locked_later_is_named_within_the_time_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limiter.db");
    let repository = RateLimiter::embedded_at(&path)
        .admin_time_budget(std::time::Duration::from_secs(2))
        .build_repository()
        .await
        .unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = repository
        .create_entity(NewEntity::new("user-1"))
        .await
        .unwrap_err();
    assert!(
        error.is_unavailable() && error.to_string().contains("another process holds"),
        "{error}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    repository.create_entity(NewEntity::new("user-2")).await.unwrap();
}

#[tokio::test]
async fn several_openers_of_a_new_file_all_get_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limiter.db");
    let openers: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move { RateLimiter::embedded_at(path).await.map(|_| ()) })
        })
        .collect();
    for opener in openers {
        opener.await.unwrap().unwrap();
    }
}
