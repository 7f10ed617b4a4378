//! Deletions that take the data with them.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stack_resources::DescribeStackResourcesOutput;
use aws_sdk_cloudformation::types::{ResourceStatus, StackResource};
use aws_sdk_dynamodb::operation::delete_table::{DeleteTableError, DeleteTableOutput};
use aws_sdk_dynamodb::operation::describe_table::{DescribeTableError, DescribeTableOutput};
use aws_sdk_dynamodb::types::TableStatus;
use aws_sdk_s3::Client as S3;
use aws_sdk_s3::operation::delete_bucket::{DeleteBucketError, DeleteBucketOutput};
use aws_sdk_s3::operation::delete_objects::DeleteObjectsOutput;
use aws_sdk_s3::operation::get_object_lock_configuration::{
    GetObjectLockConfigurationError, GetObjectLockConfigurationOutput,
};
use aws_sdk_s3::operation::list_object_versions::{ListObjectVersionsError, ListObjectVersionsOutput};
use aws_sdk_s3::types::{DeleteMarkerEntry, ObjectLockConfiguration, ObjectVersion};
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Deletion, Error, StackOptions};
use zae_limiter_template::{CodeBucket, CodeLocation, FunctionCode, LambdaFunction};

use super::existing_table::{owned_by, table};
use super::tape::{Tape, deletion, history, looks, refusal, template};
use super::{NAME, count, stack, tags};
use crate::support::{self, bare};

const ARCHIVE: &str = "demo-auditarchivebucket-1";

fn purge() -> Deletion {
    Deletion {
        purge: true,
        ..Deletion::default()
    }
}

/// A stack with an archive.
fn archiving() -> (StackOptions, serde_json::Value) {
    let options = StackOptions::builder().enable_aggregator(false).build().unwrap();
    let object = CodeLocation::Object {
        bucket: CodeBucket::Artifacts,
        key: "a.zip".to_owned(),
    };
    let code = FunctionCode::none().with(LambdaFunction::Archiver, object);
    let body = zae_limiter_template::render(&support::name(NAME), &options, &code).unwrap();
    (options, body.to_value().clone())
}

fn deployed(statuses: &'static [&'static str]) -> (StackOptions, Tape) {
    let (options, body) = archiving();
    let resources = mock!(Cfn::describe_stack_resources).then_output(|| {
        let resource = |id: &str, physical: &str| {
            let resource = StackResource::builder().logical_resource_id(id);
            let resource = resource.physical_resource_id(physical);
            resource.resource_status(ResourceStatus::CreateComplete).build()
        };
        let found = DescribeStackResourcesOutput::builder();
        let found = found.stack_resources(resource("RateLimitsTable", NAME));
        found
            .stack_resources(resource("AuditArchiveBucket", ARCHIVE))
            .build()
    });
    let events = history(&[(NAME, "", "DELETE_IN_PROGRESS", "User Initiated")], "x");
    let tape = Tape::of([
        looks(statuses, tags(&options)),
        template(&body),
        deletion(),
        resources,
        events,
    ]);
    (options, tape)
}

fn found(protected: bool) -> Rule {
    mock!(aws_sdk_dynamodb::Client::describe_table).then_output(move || {
        let mut table = table();
        table.deletion_protection_enabled = Some(protected);
        DescribeTableOutput::builder().table(table).build()
    })
}

/// A table that is there, then on its way out, then gone.
fn going() -> Rule {
    let there = || DescribeTableOutput::builder().table(table()).build();
    let leaving = || {
        let mut table = table();
        table.table_status = Some(TableStatus::Deleting);
        DescribeTableOutput::builder().table(table).build()
    };
    let gone = || DescribeTableError::generic(refusal("ResourceNotFoundException", "no such table"));
    let looked = mock!(aws_sdk_dynamodb::Client::describe_table).sequence();
    let looked = looked.output(there).output(leaving).times(2);
    looked.error(gone).repeatedly().build()
}

fn dropped() -> Rule {
    mock!(aws_sdk_dynamodb::Client::delete_table).then_output(|| DeleteTableOutput::builder().build())
}

fn no_lock() -> Rule {
    mock!(S3::get_object_lock_configuration).then_error(|| {
        let code = "ObjectLockConfigurationNotFoundError";
        GetObjectLockConfigurationError::generic(refusal(code, "no lock"))
    })
}

fn page(versions: usize) -> ListObjectVersionsOutput {
    let version = |at: usize| {
        let version = ObjectVersion::builder().key(format!("audit/{at}"));
        version.version_id("1").build()
    };
    ListObjectVersionsOutput::builder()
        .set_versions(Some((0..versions).map(version).collect()))
        .build()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_purged_is_said_before_anything_is_deleted() {
    let lock = mock!(S3::get_object_lock_configuration).then_output(|| {
        let lock = ObjectLockConfiguration::builder().build();
        let found = GetObjectLockConfigurationOutput::builder();
        found.object_lock_configuration(lock).build()
    });
    let (options, mut tape) = deployed(&["CREATE_COMPLETE"]);
    tape.dynamodb.push(found(true));
    tape.s3.push(lock);
    tape.s3
        .push(mock!(S3::list_object_versions).then_output(|| page(1)));
    let (stack, calls) = stack(&options, &tape);
    let error = stack.delete_with(&purge()).await.unwrap_err();
    let Error::NotDeletable { obstacles } = &error else {
        panic!("{error}")
    };
    assert_eq!(obstacles.len(), 2, "{error}");
    assert!(
        error.to_string().contains("enable_deletion_protection"),
        "{error}"
    );
    assert!(error.to_string().contains(ARCHIVE), "{error}");
    assert_eq!(count(&calls, "DeleteStack"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_purge_empties_page_after_page_and_waits_for_the_table_to_go() {
    let (options, mut tape) = deployed(&["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]);
    tape.dynamodb.extend([going(), dropped()]);
    let pages = mock!(S3::list_object_versions).sequence();
    let pages = pages.output(|| page(1000)).output(|| page(3)).output(|| page(0));
    tape.s3.extend([
        no_lock(),
        pages.build(),
        mock!(S3::delete_objects).then_output(|| DeleteObjectsOutput::builder().build()),
        mock!(S3::delete_bucket).then_output(|| DeleteBucketOutput::builder().build()),
    ]);
    let (stack, calls) = stack(&options, &tape);
    let deleted = stack.delete_with(&purge()).await.unwrap();
    assert_eq!((deleted.purged.len(), deleted.kept.len()), (2, 0));
    assert_eq!(count(&calls, "DeleteObjects"), 2);
    assert_eq!(count(&calls, "DescribeTable"), 4, "until it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_purge_deletes_old_versions_and_delete_markers_by_their_version() {
    let (options, mut tape) = deployed(&["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]);
    tape.dynamodb.extend([going(), dropped()]);
    let marked = || {
        let marker = DeleteMarkerEntry::builder()
            .key("audit/0")
            .version_id("2")
            .build();
        let mut page = page(1);
        page.delete_markers = Some(vec![marker]);
        page
    };
    let pages = mock!(S3::list_object_versions).sequence();
    let emptied = mock!(S3::delete_objects)
        .match_requests(|request| {
            let objects = request.delete().unwrap().objects().iter();
            let named: Vec<_> = objects
                .map(|object| (object.key(), object.version_id()))
                .collect();
            named == [("audit/0", Some("1")), ("audit/0", Some("2"))]
        })
        .then_output(|| DeleteObjectsOutput::builder().build());
    tape.s3.extend([
        no_lock(),
        pages.output(marked).output(|| page(0)).build(),
        emptied,
        mock!(S3::delete_bucket).then_output(|| DeleteBucketOutput::builder().build()),
    ]);
    let (stack, calls) = stack(&options, &tape);
    assert_eq!(stack.delete_with(&purge()).await.unwrap().purged.len(), 2);
    assert_eq!(count(&calls, "DeleteObjects"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_s3_does_not_delete_ends_the_purge_and_is_named() {
    let (options, mut tape) = deployed(&["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]);
    tape.dynamodb.extend([going(), dropped()]);
    let locked = || {
        let error = aws_sdk_s3::types::Error::builder()
            .key("audit/1")
            .code("AccessDenied")
            .message("Access Denied because object protected by object lock.")
            .build();
        DeleteObjectsOutput::builder().errors(error).build()
    };
    tape.s3.extend([
        no_lock(),
        mock!(S3::list_object_versions).then_output(|| page(2)),
        mock!(S3::delete_objects).then_output(locked),
    ]);
    let (stack, calls) = stack(&options, &tape);
    let error = stack.delete_with(&purge()).await.unwrap_err();
    let Error::PurgeIncomplete { left, source } = &error else {
        panic!("{error}")
    };
    assert_eq!(*left, [format!("bucket {ARCHIVE}")]);
    assert!(source.to_string().contains("audit/1"), "{source}");
    assert_eq!(
        count(&calls, "DeleteObjects"),
        1,
        "the rest would fail the same way"
    );
    assert_eq!(
        (count(&calls, "DeleteTable"), count(&calls, "DeleteBucket")),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_gone_already_is_purged_and_one_that_cannot_be_deleted_is_left() {
    let purging = |listed: &'static str, deleted: &'static str| {
        let (options, mut tape) = deployed(&["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]);
        tape.dynamodb.extend([going(), dropped()]);
        tape.s3.extend([
            no_lock(),
            mock!(S3::list_object_versions)
                .then_error(move || ListObjectVersionsError::generic(refusal(listed, "no"))),
            mock!(S3::delete_bucket).then_error(move || DeleteBucketError::generic(refusal(deleted, "no"))),
        ]);
        stack(&options, &tape)
    };
    let (gone, calls) = purging("NoSuchBucket", "NoSuchBucket");
    assert_eq!(gone.delete_with(&purge()).await.unwrap().purged.len(), 2);
    assert_eq!(count(&calls, "DeleteBucket"), 1);

    for (listed, deleted) in [
        ("AccessDenied", "NoSuchBucket"),
        ("NoSuchBucket", "BucketNotEmpty"),
    ] {
        let (stuck, calls) = purging(listed, deleted);
        let error = stuck.delete_with(&purge()).await.unwrap_err();
        assert!(
            matches!(&error, Error::PurgeIncomplete { left, .. } if *left == [format!("bucket {ARCHIVE}")]),
            "{listed} {deleted}: {error}"
        );
        assert_eq!(count(&calls, "DeleteTable"), 1, "{listed} {deleted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_cannot_be_looked_for_stops_a_purge_before_anything_is_deleted() {
    let lock = |configured: bool| {
        mock!(S3::get_object_lock_configuration).then_output(move || {
            let lock = configured.then(|| ObjectLockConfiguration::builder().build());
            let found = GetObjectLockConfigurationOutput::builder();
            found.set_object_lock_configuration(lock).build()
        })
    };
    let (options, mut tape) = deployed(&["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]);
    tape.dynamodb.push(found(false));
    tape.s3.extend([
        lock(true),
        mock!(S3::list_object_versions)
            .then_error(|| ListObjectVersionsError::generic(refusal("AccessDenied", "no"))),
    ]);
    let (blind, calls) = stack(&options, &tape);
    let error = blind.delete_with(&purge()).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert_eq!(count(&calls, "DeleteStack"), 0);

    let (options, mut tape) = deployed(&["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]);
    tape.dynamodb.extend([going(), dropped()]);
    tape.s3.extend([
        lock(false),
        mock!(S3::list_object_versions).then_output(|| page(0)),
        mock!(S3::delete_bucket).then_output(|| DeleteBucketOutput::builder().build()),
    ]);
    let (unlocked, _) = stack(&options, &tape);
    assert_eq!(unlocked.delete_with(&purge()).await.unwrap().purged.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_purge_that_fails_half_way_says_what_is_left_and_deletes_the_rest() {
    let denied = mock!(aws_sdk_dynamodb::Client::delete_table)
        .then_error(|| DeleteTableError::generic(refusal("AccessDeniedException", "no")));
    let (options, mut tape) = deployed(&["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]);
    tape.dynamodb.extend([found(false), denied]);
    tape.s3.extend([
        no_lock(),
        mock!(S3::list_object_versions).then_output(|| page(0)),
        mock!(S3::delete_bucket).then_output(|| DeleteBucketOutput::builder().build()),
    ]);
    let (stack, calls) = stack(&options, &tape);
    let error = stack.delete_with(&purge()).await.unwrap_err();
    assert!(
        matches!(&error, Error::PurgeIncomplete { left, .. } if *left == ["table demo"]),
        "{error}"
    );
    assert_eq!(count(&calls, "DeleteBucket"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_purge_is_finished_after_the_stack_is_gone_but_only_of_a_table_that_no_stack_has() {
    let absent = |owner| Tape::of([looks(&[""], tags(&bare())), owned_by(owner)]);
    let mut tape = absent(None);
    tape.dynamodb.extend([found(false), dropped()]);
    let left = stack(&bare(), &tape).0.plan_delete().await.unwrap();
    assert_eq!((left.existed, left.kept.len()), (false, 1));

    let mut tape = absent(None);
    let again = mock!(aws_sdk_dynamodb::Client::describe_table).sequence();
    let there = || DescribeTableOutput::builder().table(table()).build();
    let gone = || DescribeTableError::generic(refusal("ResourceNotFoundException", "no such table"));
    let again = again.output(there).times(2).error(gone).repeatedly().build();
    tape.dynamodb.extend([again, dropped()]);
    let (finishing, calls) = stack(&bare(), &tape);
    let deleted = finishing.delete_with(&purge()).await.unwrap();
    assert_eq!((deleted.existed, deleted.purged.len()), (false, 1));
    assert_eq!(count(&calls, "DeleteTable"), 1);

    let mut tape = absent(Some("other"));
    tape.dynamodb.push(found(false));
    let (careful, calls) = stack(&bare(), &tape);
    assert_eq!(careful.delete_with(&purge()).await.unwrap().purged, []);
    assert_eq!(count(&calls, "DeleteTable"), 0);

    let mut foreign = table();
    foreign.global_secondary_indexes = None;
    let mut tape = absent(None);
    tape.dynamodb.push(
        mock!(aws_sdk_dynamodb::Client::describe_table)
            .then_output(move || DescribeTableOutput::builder().table(foreign.clone()).build()),
    );
    let (careful, calls) = stack(&bare(), &tape);
    assert_eq!(careful.delete_with(&purge()).await.unwrap().purged, []);
    assert_eq!(count(&calls, "DeleteTable"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_keeps_what_it_has_imported() {
    for (status, kept) in [
        (ResourceStatus::DeleteComplete, 0),
        (ResourceStatus::DeleteSkipped, 1),
    ] {
        let resources = mock!(Cfn::describe_stack_resources).then_output(move || {
            let table = StackResource::builder().logical_resource_id("RateLimitsTable");
            let table = table.physical_resource_id(NAME).resource_status(status.clone());
            let found = DescribeStackResourcesOutput::builder();
            found.stack_resources(table.build()).build()
        });
        let look = looks(&["ROLLBACK_COMPLETE"], tags(&bare()));
        let tape = Tape::of([look, template(&super::body(&bare())), resources]);
        let planned = stack(&bare(), &tape).0.plan_delete().await.unwrap();
        assert_eq!(planned.kept.len(), kept);
    }
}
