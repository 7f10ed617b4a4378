//! The functions' archives.

use aws_sdk_cloudformation::types::ChangeAction;
use aws_sdk_s3::Client as S3;
use aws_sdk_s3::operation::head_object::{HeadObjectError, HeadObjectOutput};
use aws_sdk_s3::operation::put_object::{PutObjectError, PutObjectOutput};
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Change, Code, CodeError, Error, LambdaFunction};

use super::artifact_storage::{bucket, no_object, options, response, tape, upload};
use super::existing_table::found_table;
use super::kept::aggregating;
use super::tape::{change_set, no_event_source_mappings, no_log_groups, refusal};
use super::{change_sets, count, stack};
use crate::support::{archive, code};

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
    let archive = archive::zip("bootstrap", b"#!/bin/sh\nsleep 1\n");
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
        rules.push(mock!(S3::put_object).then_http_response(response(status)));
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
            .then_http_response(response(412)),
    );
    rules.push(mock!(S3::put_object).then_output(|| PutObjectOutput::builder().build()));
    let (stack, calls) = stack(&options(), &tape(rules));
    assert_eq!(stack.code(code()).ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "PutObject"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_archives_cannot_be_uploaded_leaves_no_change_set() {
    let denied = mock!(S3::put_object).then_error(|| PutObjectError::generic(refusal("AccessDenied", "no")));
    let function = change_sets::change("AggregatorFunction", ChangeAction::Add, None, None);
    let mut tape = change_sets::tape(&["CREATE_COMPLETE"], change_set(vec![function]));
    tape.logs.push(no_log_groups());
    tape.lambda.push(no_event_source_mappings());
    tape.dynamodb.push(found_table());
    tape.s3 = bucket();
    tape.s3.extend([no_object(), denied]);
    let (changing, calls) = stack(&aggregating(), &tape);
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
