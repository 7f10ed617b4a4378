use zae_limiter_stack::{Deletion, Error, Event, StackOptions, Verdict};

use super::{put_item, stack};
use crate::support::{Diary, bare, ministack};

#[tokio::test]
async fn deleting_keeps_what_holds_data_and_says_so() {
    let options = StackOptions::builder().enable_alarms(false).build().unwrap();
    let bucket = stack("delete", &options).ensure().await.unwrap().outputs["AuditArchiveBucketName"].clone();
    put_item("delete").await;
    let preview = stack("delete", &options).plan_delete().await.unwrap();
    let diary = Diary::default();
    let deleted = stack("delete", &options)
        .observer(diary.clone())
        .delete()
        .await
        .unwrap();
    assert_eq!(deleted, preview);
    let mut kept: Vec<_> = deleted.kept.iter().map(|kept| kept.physical_id.clone()).collect();
    kept.sort();
    let mut expected = vec!["delete".to_owned(), bucket];
    expected.sort();
    assert_eq!(kept, expected);
    assert!(stack("delete", &options).status().await.unwrap().is_none());
    assert!(
        diary
            .events()
            .iter()
            .any(|event| matches!(event, Event::Resource(_))),
        "progress is told"
    );
    // Deleting what is not there is fine.
    assert!(!stack("delete", &options).delete().await.unwrap().existed);
}

#[tokio::test]
async fn only_a_purge_deletes_data() {
    let options = StackOptions::builder().enable_alarms(false).build().unwrap();
    let bucket = stack("purge", &options).ensure().await.unwrap().outputs["AuditArchiveBucketName"].clone();
    put_item("purge").await;
    let clients = ministack::clients();
    for body in ["one", "two"] {
        clients
            .s3
            .put_object()
            .bucket(&bucket)
            .key("audit/x")
            .body(body.as_bytes().to_vec().into())
            .send()
            .await
            .unwrap();
    }
    let deleted = stack("purge", &options)
        .delete_with(&Deletion {
            purge: true,
            ..Deletion::default()
        })
        .await
        .unwrap();
    assert_eq!(deleted.purged.len(), 2);
    assert_eq!(deleted.kept, []);
    assert!(clients.s3.head_bucket().bucket(&bucket).send().await.is_err());
    assert!(
        clients
            .dynamodb
            .describe_table()
            .table_name("purge")
            .send()
            .await
            .is_err()
    );
}

#[tokio::test]
async fn drift_is_told_property_by_property() {
    let options = StackOptions::builder()
        .enable_audit_archival(false)
        .build()
        .unwrap();
    let stack = stack("drift", &options);
    assert!(matches!(stack.drift().await, Err(Error::NoSuchStack { .. })));
    stack.ensure().await.unwrap();
    let drift = stack.drift().await.unwrap();
    assert_eq!(
        (drift.verdict, drift.drifted.len()),
        (Verdict::InSync, 0),
        "{drift:?}"
    );

    let call = ministack::clients()
        .lambda
        .update_function_configuration()
        .function_name("drift-aggregator");
    call.memory_size(1024).send().await.unwrap();
    let drift = stack.drift().await.unwrap();
    assert_eq!(drift.verdict, Verdict::Drifted);
    let function = drift
        .drifted
        .iter()
        .find(|resource| resource.logical_id == "AggregatorFunction")
        .unwrap();
    let memory = function
        .properties
        .iter()
        .find(|property| property.path == "/MemorySize")
        .unwrap();
    assert_eq!(
        (memory.expected.as_str(), memory.actual.as_str()),
        ("256", "1024")
    );
}

#[tokio::test]
async fn a_stack_that_is_not_there_has_no_status() {
    assert!(stack("nowhere", &bare()).status().await.unwrap().is_none());
}
