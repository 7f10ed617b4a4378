#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::RateLimiter;

fn scratch(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

#[tokio::test]
async fn a_file_of_another_program_is_refused_and_left_alone() {
    let (_folder, path) = scratch("notes.db");
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign
        .execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')")
        .unwrap();
    drop(foreign);
    let before = std::fs::read(&path).unwrap();
    let error = EmbeddedStore::file(&path).await.unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let (_folder, path) = scratch("letter.txt");
    std::fs::write(&path, "Dear reader, ".repeat(100)).unwrap();
    let error = EmbeddedStore::file(&path).await.unwrap_err();
    assert!(
        error.to_string().contains("cannot be used as an embedded store"),
        "{error}"
    );
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("Dear reader"));
}

#[tokio::test]
async fn a_locked_file_is_reported_as_held_by_another_process() {
    let (_folder, path) = scratch("limiter.db");
    drop(EmbeddedStore::file(&path).await.unwrap());
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = EmbeddedStore::file(&path).await.unwrap_err();
    assert!(
        matches!(&error, Error::FileHeld { path: held } if *held == path),
        "{error}"
    );
    assert!(error.is_unavailable());
    other.execute_batch("ROLLBACK").unwrap();
    EmbeddedStore::file(&path).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_locked_later_is_named_within_the_time_budget() {
    let (_folder, path) = scratch("limiter.db");
    let limiter = RateLimiter::embedded_at(&path)
        .admin_time_budget(std::time::Duration::from_secs(2))
        .await
        .unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = limiter
        .create_entity(crate::NewEntity::new("user-1"))
        .await
        .unwrap_err();
    assert!(
        error.is_unavailable() && error.to_string().contains("another process holds"),
        "{error}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    limiter
        .create_entity(crate::NewEntity::new("user-2"))
        .await
        .unwrap();
}

#[tokio::test]
async fn several_openers_of_a_new_file_all_get_the_table() {
    let (_folder, path) = scratch("limiter.db");
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

#[tokio::test]
async fn an_invalid_request_is_a_validation_error_to_the_sdk() {
    let limiter = RateLimiter::embedded().await.unwrap();
    let client = &limiter.repository().inner.table.client;
    let error = client.describe_table().table_name("x").send().await.unwrap_err();
    assert!(
        matches!(
            crate::dynamo::failure::classify(&error),
            crate::dynamo::failure::Failure::Invalid(_)
        ),
        "{error:?}"
    );
    let error = client
        .describe_table()
        .table_name("another-table")
        .send()
        .await
        .unwrap_err();
    assert_eq!(
        crate::dynamo::failure::classify(&error),
        crate::dynamo::failure::Failure::MissingTable
    );
}
