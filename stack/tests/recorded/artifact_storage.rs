//! What S3 returns about the bucket with the functions' archives.

use aws_sdk_s3::Client as S3;
use aws_sdk_s3::operation::get_bucket_versioning::GetBucketVersioningOutput;
use aws_sdk_s3::operation::head_bucket::HeadBucketOutput;
use aws_sdk_s3::operation::head_object::HeadObjectError;
use aws_sdk_s3::operation::put_object::PutObjectOutput;
use aws_sdk_s3::types::BucketVersioningStatus;
use aws_smithy_mocks::{Rule, mock};
use aws_smithy_runtime_api::http::{Response, StatusCode};
use aws_smithy_types::body::SdkBody;
use zae_limiter_stack::StackOptions;

use super::tape::{Tape, created, history, looks, no_log_groups, refusal};
use super::{NAME, tags};
use crate::support::bare;

pub(crate) const BUCKET: &str = "zae-limiter-artifacts-123456789012-us-east-1";
pub(crate) const OWNER: Option<&str> = Some("123456789012");

/// With the aggregator alone, whose archive must be uploaded.
pub(crate) fn options() -> StackOptions {
    StackOptions::builder()
        .enable_audit_archival(false)
        .enable_alarms(false)
        .build()
        .unwrap()
}

/// A new stack, and these responses of S3.
pub(crate) fn tape(s3: Vec<Rule>) -> Tape {
    let events = history(&[(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")], "x");
    let mut tape =
        Tape::of([looks(&["", "CREATE_COMPLETE"], tags(&bare())), created(), events]).with_free_site();
    tape.logs.push(no_log_groups());
    tape.s3 = s3;
    tape
}

pub(crate) fn response(status: u16) -> impl Fn() -> Response {
    move || Response::new(StatusCode::try_from(status).unwrap(), SdkBody::empty())
}

/// Our bucket, asked for in the name of our account.
pub(crate) fn bucket() -> Vec<Rule> {
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

pub(crate) fn no_object() -> Rule {
    mock!(S3::head_object)
        .match_requests(|input| input.expected_bucket_owner() == OWNER)
        .then_error(|| HeadObjectError::generic(refusal("NotFound", "not found")))
}

pub(crate) fn upload() -> Rule {
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
