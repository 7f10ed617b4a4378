#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::CallError;

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
async fn a_path_that_cannot_be_opened_is_refused_with_the_reason() {
    use std::os::unix::ffi::OsStrExt as _;

    let (folder, path) = scratch("plain.txt");
    std::fs::write(&path, "text").unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"\xff.db");
    for (path, expected) in [
        (
            folder.path().join("missing/limiter.db"),
            "unable to open database file",
        ),
        (path.join("limiter.db"), "Not a directory"),
        (folder.path().to_owned(), "it is not a file"),
        (folder.path().join(odd), "its path is not valid UTF-8"),
    ] {
        let error = EmbeddedStore::file(&path).await.unwrap_err();
        let Error::Store { place, reason } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*place, path.display().to_string());
        assert!(reason.contains(expected), "{error}");
    }
    // Nothing was created on the way.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn an_operation_that_the_store_lacks_is_refused_by_name() {
    let store = EmbeddedStore::memory().unwrap();
    let client = aws_sdk_dynamodb::Client::from_conf(store.sdk_config().build());
    let error = client.list_backups().send().await.unwrap_err();
    let CallError::Invalid(text) = CallError::from(&error) else {
        panic!("{error:?}")
    };
    assert!(text.contains("no operation \"ListBackups\""), "{text}");
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
    other.execute_batch("ROLLBACK").unwrap();
    EmbeddedStore::file(&path).await.unwrap();
}

#[tokio::test]
async fn an_invalid_request_is_a_validation_error_to_the_sdk() {
    let store = EmbeddedStore::memory().unwrap();
    let client = aws_sdk_dynamodb::Client::from_conf(store.sdk_config().build());
    let error = client.describe_table().table_name("x").send().await.unwrap_err();
    assert!(
        matches!(CallError::from(&error), CallError::Invalid(_)),
        "{error:?}"
    );
    let error = client
        .describe_table()
        .table_name("another-table")
        .send()
        .await
        .unwrap_err();
    assert_eq!(CallError::from(&error), CallError::TableMissing);
}

#[tokio::test]
async fn writes_that_wait_for_each_other_on_a_slow_disk_wait_for_no_other_process() {
    let (_folder, path) = scratch("slow.db");
    let store = EmbeddedStore::file(&path).await.unwrap();
    let finish = || store.finished_writes.fetch_add(1, Ordering::Relaxed);
    let mut finished = 0;
    assert!(store.waits_for_another(&mut finished, async { true }).await);
    assert!(!store.waits_for_another(&mut finished, async { false }).await);
    finish();
    assert!(
        !store.waits_for_another(&mut finished, async { true }).await,
        "before"
    );
    let during = async {
        finish();
        true
    };
    assert!(!store.waits_for_another(&mut finished, during).await);
    assert!(
        !store.waits_for_another(&mut finished, async { true }).await,
        "since"
    );
    assert!(
        store.waits_for_another(&mut finished, async { true }).await,
        "none since"
    );
}

#[tokio::test]
async fn finished_writes_are_counted_and_reads_are_not() {
    let (_folder, path) = scratch("counted.db");
    let store = EmbeddedStore::file(&path).await.unwrap();
    let create = br#"{"TableName": "table", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}]}"#;
    let key = r#"{"PK": {"S": "a"}}"#;
    let put = format!(r#"{{"TableName": "table", "Item": {key}}}"#);
    let get = format!(r#"{{"TableName": "table", "Key": {key}}}"#);
    let requests = [
        ("CreateTable", &create[..]),
        ("PutItem", put.as_bytes()),
        ("GetItem", get.as_bytes()),
    ];
    for (operation, body) in requests {
        let response = store
            .respond(&format!("DynamoDB_20120810.{operation}"), body)
            .unwrap();
        assert_eq!(response.status, 200, "{}", response.json);
    }
    assert_eq!(store.finished_writes.load(Ordering::Relaxed), 1);
}
