//! The bucket with the functions' code.

use aws_sdk_s3::Client as S3;
use aws_sdk_s3::operation::create_bucket::{CreateBucketError, CreateBucketOutput};
use aws_sdk_s3::operation::get_bucket_versioning::GetBucketVersioningOutput;
use aws_sdk_s3::operation::head_bucket::HeadBucketOutput;
use aws_sdk_s3::operation::head_object::{HeadObjectError, HeadObjectOutput};
use aws_sdk_s3::operation::put_bucket_encryption::PutBucketEncryptionOutput;
use aws_sdk_s3::operation::put_bucket_policy::PutBucketPolicyOutput;
use aws_sdk_s3::operation::put_bucket_versioning::PutBucketVersioningOutput;
use aws_sdk_s3::operation::put_object::PutObjectOutput;
use aws_sdk_s3::operation::put_public_access_block::PutPublicAccessBlockOutput;
use aws_sdk_s3::types::BucketVersioningStatus;
use aws_smithy_mocks::{Rule, mock};
use aws_smithy_runtime_api::http::{Response, StatusCode};
use aws_smithy_types::body::SdkBody;
use zae_limiter_stack::{Change, Code, CodeError, Error, LambdaFunction, StackOptions};

use super::support::permits::Caller;
use super::support::{archive, bare, code};
use super::tape::{
    Tape, change_set, created, history, looks, no_event_source_mappings, no_log_groups, refusal,
};
use super::{NAME, change_sets, count, existing_table, stack, stack_of, tags};

const BUCKET: &str = "zae-limiter-artifacts-123456789012-us-east-1";
const OWNER: Option<&str> = Some("123456789012");

fn options() -> StackOptions {
    StackOptions::builder()
        .enable_audit_archival(false)
        .enable_alarms(false)
        .build()
        .unwrap()
}

fn tape(s3: Vec<Rule>) -> Tape {
    let events = history(&[(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")], "x");
    let mut tape =
        Tape::of([looks(&["", "CREATE_COMPLETE"], tags(&bare())), created(), events]).with_free_site();
    tape.logs.push(no_log_groups());
    tape.s3 = s3;
    tape
}

fn answer(status: u16) -> impl Fn() -> Response {
    move || Response::new(StatusCode::try_from(status).unwrap(), SdkBody::empty())
}

/// Our bucket, asked for in the name of our account.
fn bucket() -> Vec<Rule> {
    let ours = mock!(S3::head_bucket)
        .match_requests(|input| input.bucket() == Some(BUCKET) && input.expected_bucket_owner() == OWNER)
        .then_output(|| HeadBucketOutput::builder().build());
    let versioned = mock!(S3::get_bucket_versioning).then_output(|| {
        GetBucketVersioningOutput::builder()
            .status(BucketVersioningStatus::Enabled)
            .build()
    });
    vec![ours, versioned]
}

fn no_object() -> Rule {
    mock!(S3::head_object)
        .match_requests(|input| input.expected_bucket_owner() == OWNER)
        .then_error(|| HeadObjectError::generic(refusal("NotFound", "not found")))
}

fn upload() -> Rule {
    mock!(S3::put_object)
        .match_requests(|input| {
            let named = input.key().is_some_and(|key| {
                key.len() == 68 && key.split_once('.').is_some_and(|(_, end)| end == "zip")
            });
            let checked = input.checksum_sha256().is_some() && input.if_none_match() == Some("*");
            named && checked && input.expected_bucket_owner() == OWNER
        })
        .then_output(|| PutObjectOutput::builder().build())
}

fn hardening() -> Vec<Rule> {
    vec![
        mock!(S3::put_public_access_block)
            .match_requests(|input| {
                let closed = input.public_access_block_configuration().unwrap();
                let all = [
                    closed.block_public_acls(),
                    closed.block_public_policy(),
                    closed.ignore_public_acls(),
                    closed.restrict_public_buckets(),
                ];
                all == [Some(true); 4] && input.expected_bucket_owner() == OWNER
            })
            .then_output(|| PutPublicAccessBlockOutput::builder().build()),
        mock!(S3::put_bucket_encryption)
            .match_requests(|input| input.expected_bucket_owner() == OWNER)
            .then_output(|| PutBucketEncryptionOutput::builder().build()),
        mock!(S3::put_bucket_policy)
            .match_requests(|input| {
                input
                    .policy()
                    .is_some_and(|policy| policy.contains("aws:SecureTransport"))
                    && input.expected_bucket_owner() == OWNER
            })
            .then_output(|| PutBucketPolicyOutput::builder().build()),
        mock!(S3::put_bucket_versioning)
            .match_requests(|input| input.expected_bucket_owner() == OWNER)
            .then_output(|| PutBucketVersioningOutput::builder().build()),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_not_there_is_made_hardened() {
    let mut rules = vec![mock!(S3::head_bucket).then_http_response(answer(404))];
    // The region of the tests is the one that buckets do not name.
    rules.push(
        mock!(S3::create_bucket)
            .match_requests(|input| input.create_bucket_configuration().is_none())
            .then_output(|| CreateBucketOutput::builder().build()),
    );
    rules.extend(hardening());
    rules.extend([no_object(), upload()]);
    let (stack, calls) = stack(&options(), &tape(rules));
    assert_eq!(stack.code(code()).ensure().await.unwrap().change, Change::Created);
    let order = [
        "CreateBucket",
        "PutPublicAccessBlock",
        "PutBucketEncryption",
        "PutBucketPolicy",
        "PutBucketVersioning",
        "PutObject",
    ];
    let made: Vec<_> = calls
        .names()
        .into_iter()
        .filter(|name| order.contains(&name.as_str()))
        .collect();
    assert_eq!(made, order);
}

#[tokio::test(start_paused = true)]
async fn c8_a_bucket_of_another_account_is_refused_before_anything_is_made() {
    let (squatted, calls) = stack(
        &options(),
        &tape(vec![mock!(S3::head_bucket).then_http_response(answer(403))]),
    );
    let error = squatted.code(code()).ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::Code(CodeError::BucketTaken { bucket, .. }) if bucket == BUCKET),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateStack"), 0);

    let taken = mock!(S3::create_bucket)
        .then_error(|| CreateBucketError::generic(refusal("BucketAlreadyExists", "taken")));
    let rules = vec![mock!(S3::head_bucket).then_http_response(answer(404)), taken];
    let (raced, calls) = stack(&options(), &tape(rules));
    assert!(matches!(
        raced.code(code()).ensure().await,
        Err(Error::Code(CodeError::BucketTaken { .. }))
    ));
    assert_eq!((count(&calls, "PutObject"), count(&calls, "CreateStack")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_archive_for_another_processor_is_refused_before_any_upload() {
    // An ELF header of AArch64, and options for x86_64.
    let mut program = b"\x7fELF\x02\x01\x01".to_vec();
    program.resize(18, 0);
    program.extend(0xb7_u16.to_le_bytes());
    let archive = archive::zip("bootstrap", &program);
    let wrong = || Code::bundled([(LambdaFunction::Aggregator, archive.clone())]);
    let (stack, calls) = stack(
        &options(),
        &tape([bucket(), vec![no_object(), upload()]].concat()),
    );
    let error = stack.clone().code(wrong()).ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::Code(CodeError::WrongArchitecture { .. })),
        "{error}"
    );
    assert!(stack.code(wrong()).plan().await.is_err());
    let writing = ["CreateBucket", "PutObject", "CreateStack", "CreateChangeSet"];
    let written: Vec<_> = calls
        .names()
        .into_iter()
        .filter(|name| writing.contains(&name.as_str()))
        .collect();
    assert_eq!(written, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c8_an_object_that_is_not_what_its_name_says_is_refused() {
    let mut rules = bucket();
    let other = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    rules.push(
        mock!(S3::head_object)
            .then_output(move || HeadObjectOutput::builder().checksum_sha256(other).build()),
    );
    let (stack, calls) = stack(&options(), &tape(rules));
    assert!(matches!(
        stack.code(code()).ensure().await,
        Err(Error::Code(CodeError::ArtifactDiffers { .. }))
    ));
    assert_eq!(count(&calls, "CreateStack"), 0);
}

#[tokio::test(start_paused = true)]
async fn c8_an_object_without_a_checksum_is_written_again() {
    let mut rules = bucket();
    rules.push(mock!(S3::head_object).then_output(|| HeadObjectOutput::builder().build()));
    rules.push(
        mock!(S3::put_object)
            .match_requests(|input| input.if_none_match().is_none() && input.checksum_sha256().is_some())
            .then_output(|| PutObjectOutput::builder().build()),
    );
    let (stack, calls) = stack(&options(), &tape(rules));
    assert_eq!(stack.code(code()).ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "PutObject"), 1);
}

/// Of the archives of [`code`].
fn checksum() -> String {
    use base64::Engine;
    use sha2::Digest;
    let archive = super::support::archive::zip("bootstrap", b"#!/bin/sh\nsleep 1\n");
    base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(&archive))
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_is_there_is_not_uploaded_again() {
    let checksum = checksum();
    let mut rules = bucket();
    rules.push(
        mock!(S3::head_object)
            .then_output(move || HeadObjectOutput::builder().checksum_sha256(&checksum).build()),
    );
    let (stack, calls) = stack(&options(), &tape(rules));
    assert_eq!(stack.code(code()).ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "PutObject"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_whose_making_was_interrupted_is_hardened() {
    let mut rules =
        vec![mock!(S3::get_bucket_versioning).then_output(|| GetBucketVersioningOutput::builder().build())];
    rules.extend(bucket());
    rules.extend(hardening());
    rules.extend([no_object(), upload()]);
    let (stack, calls) = stack(&options(), &tape(rules));
    stack.code(code()).ensure().await.unwrap();
    assert_eq!(count(&calls, "PutBucketVersioning"), 1);
}

#[tokio::test(start_paused = true)]
async fn another_request_for_the_same_bucket_is_waited_for() {
    let busy = mock!(S3::create_bucket)
        .sequence()
        .error(|| {
            CreateBucketError::generic(refusal(
                "OperationAborted",
                "A conflicting operation is in progress",
            ))
        })
        .error(|| CreateBucketError::generic(refusal("BucketAlreadyOwnedByYou", "yours")))
        .build();
    let mut rules = vec![mock!(S3::head_bucket).then_http_response(answer(404)), busy];
    rules.extend(hardening());
    rules.extend([no_object(), upload()]);
    let (stack, calls) = stack(&options(), &tape(rules));
    assert_eq!(stack.code(code()).ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "CreateBucket"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_named_bucket_is_never_made() {
    let options = options()
        .to_builder()
        .code_bucket("our-archives")
        .build()
        .unwrap();
    let (stack, calls) = stack(
        &options,
        &tape(vec![mock!(S3::head_bucket).then_http_response(answer(404))]),
    );
    let error = stack.code(code()).ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::Code(CodeError::BucketMissing { bucket }) if bucket == "our-archives"),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateBucket"), 0);
}

#[tokio::test(start_paused = true)]
async fn c8_what_a_faster_process_has_written_must_be_the_archive() {
    let checksum = checksum();
    for (status, stored, accepted) in [
        (409, Some(checksum.clone()), true),
        (412, Some(checksum), true),
        (412, Some("AAAA".to_owned()), false),
    ] {
        let found = mock!(S3::head_object).sequence();
        let found = found
            .error(|| HeadObjectError::generic(refusal("NotFound", "not found")))
            .output(move || {
                HeadObjectOutput::builder()
                    .set_checksum_sha256(stored.clone())
                    .build()
            })
            .repeatedly()
            .build();
        let mut rules = bucket();
        rules.push(found);
        rules.push(mock!(S3::put_object).then_http_response(answer(status)));
        let (stack, calls) = stack(&options(), &tape(rules));
        let result = stack.code(code()).ensure().await;
        assert_eq!(result.is_ok(), accepted, "{status}");
        assert_eq!(count(&calls, "CreateStack"), usize::from(accepted));
    }
}

#[tokio::test(start_paused = true)]
async fn c8_what_another_process_has_written_without_a_checksum_is_written_again() {
    let found = mock!(S3::head_object).sequence();
    let found = found
        .error(|| HeadObjectError::generic(refusal("NotFound", "not found")))
        .output(|| HeadObjectOutput::builder().build())
        .repeatedly()
        .build();
    let mut rules = bucket();
    rules.push(found);
    rules.push(
        mock!(S3::put_object)
            .match_requests(|input| input.if_none_match().is_some())
            .then_http_response(answer(412)),
    );
    rules.push(mock!(S3::put_object).then_output(|| PutObjectOutput::builder().build()));
    let (stack, calls) = stack(&options(), &tape(rules));
    assert_eq!(stack.code(code()).ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "PutObject"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_applied_with_the_bucket_it_was_planned_with() {
    let planned = options()
        .to_builder()
        .code_bucket("our-archives")
        .build()
        .unwrap();
    let mut tape = tape(vec![
        mock!(S3::head_bucket)
            .match_requests(|input| input.bucket() == Some("our-archives"))
            .then_output(|| HeadBucketOutput::builder().build()),
        no_object(),
        mock!(S3::put_object)
            .match_requests(|input| input.bucket() == Some("our-archives"))
            .then_output(|| PutObjectOutput::builder().build()),
    ]);
    tape.cloudformation
        .insert(0, looks(&["", "", "CREATE_COMPLETE"], tags(&bare())));
    let (planner, _) = stack(&planned, &tape);
    let plan = planner.code(code()).plan().await.unwrap();
    let (applier, _) = stack_of(Caller::deployer(NAME, &planned), &options(), &tape);
    let outcome = applier.code(code()).apply(&plan).await.unwrap();
    assert_eq!(outcome.change, Change::Created);
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_archives_cannot_be_uploaded_leaves_no_change_set() {
    use aws_sdk_cloudformation::types::ChangeAction;
    use aws_sdk_s3::operation::put_object::PutObjectError;
    let denied = mock!(S3::put_object).then_error(|| PutObjectError::generic(refusal("AccessDenied", "no")));
    let function = change_sets::change("AggregatorFunction", ChangeAction::Add, None, None);
    let mut tape = change_sets::tape(&["CREATE_COMPLETE"], change_set(vec![function]));
    tape.logs.push(no_log_groups());
    tape.lambda.push(no_event_source_mappings());
    tape.dynamodb.push(existing_table::found_table());
    tape.s3 = bucket();
    tape.s3.extend([no_object(), denied]);
    let options = bare().to_builder().enable_aggregator(true).build().unwrap();
    let (changing, calls) = stack(&options, &tape);
    let error = changing.code(code()).ensure().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert_eq!(
        (
            count(&calls, "CreateChangeSet"),
            count(&calls, "DeleteChangeSet"),
            count(&calls, "ExecuteChangeSet")
        ),
        (1, 1, 0)
    );
}
