//! The bucket with the functions' archives.

use aws_sdk_s3::Client as S3;
use aws_sdk_s3::operation::create_bucket::{CreateBucketError, CreateBucketOutput};
use aws_sdk_s3::operation::get_bucket_versioning::GetBucketVersioningOutput;
use aws_sdk_s3::operation::head_bucket::HeadBucketOutput;
use aws_sdk_s3::operation::put_bucket_encryption::PutBucketEncryptionOutput;
use aws_sdk_s3::operation::put_bucket_policy::PutBucketPolicyOutput;
use aws_sdk_s3::operation::put_bucket_versioning::PutBucketVersioningOutput;
use aws_sdk_s3::operation::put_object::PutObjectOutput;
use aws_sdk_s3::operation::put_public_access_block::PutPublicAccessBlockOutput;
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, CodeError, Error, StackOptions};

use super::artifact_storage::{BUCKET, OWNER, bucket, no_object, options, response, tape, upload};
use super::tape::{looks, refusal};
use super::{NAME, count, stack, stack_of, tags};
use crate::support::permits::Caller;
use crate::support::{bare, code};

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

fn bucket_answers(status: u16) -> Rule {
    mock!(S3::head_bucket).then_http_response(response(status))
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_not_there_is_made_hardened() {
    let mut rules = vec![bucket_answers(404)];
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
    let (squatted, calls) = stack(&options(), &tape(vec![bucket_answers(403)]));
    let error = squatted.code(code()).ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::Code(CodeError::BucketTaken { bucket, .. }) if bucket == BUCKET),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateStack"), 0);

    let taken = mock!(S3::create_bucket)
        .then_error(|| CreateBucketError::generic(refusal("BucketAlreadyExists", "taken")));
    let rules = vec![bucket_answers(404), taken];
    let (raced, calls) = stack(&options(), &tape(rules));
    assert!(matches!(
        raced.code(code()).ensure().await,
        Err(Error::Code(CodeError::BucketTaken { .. }))
    ));
    assert_eq!((count(&calls, "PutObject"), count(&calls, "CreateStack")), (0, 0));
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
    let mut rules = vec![bucket_answers(404), busy];
    rules.extend(hardening());
    rules.extend([no_object(), upload()]);
    let (stack, calls) = stack(&options(), &tape(rules));
    assert_eq!(stack.code(code()).ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "CreateBucket"), 2);
}

/// Options that name the bucket.
fn with_named_bucket() -> StackOptions {
    options()
        .to_builder()
        .code_bucket("our-archives")
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_named_bucket_is_never_made() {
    let (stack, calls) = stack(&with_named_bucket(), &tape(vec![bucket_answers(404)]));
    let error = stack.code(code()).ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::Code(CodeError::BucketMissing { bucket }) if bucket == "our-archives"),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateBucket"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_applied_with_the_bucket_it_was_planned_with() {
    let planned = with_named_bucket();
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
