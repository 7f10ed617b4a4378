//! What is in the way, found before anything is touched.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::list_imports::{ListImportsError, ListImportsOutput};
use aws_sdk_cloudwatchlogs::operation::describe_log_groups::{
    DescribeLogGroupsError, DescribeLogGroupsOutput,
};
use aws_sdk_cloudwatchlogs::types::LogGroup;
use aws_sdk_iam::operation::get_policy::{GetPolicyError, GetPolicyOutput};
use aws_sdk_iam::operation::get_role::{GetRoleError, GetRoleOutput};
use aws_sdk_iam::types::Role;
use aws_sdk_lambda::operation::list_event_source_mappings::ListEventSourceMappingsOutput;
use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use aws_sdk_sns::operation::get_topic_attributes::GetTopicAttributesError;
use aws_smithy_mocks::{Rule, mock};
use aws_smithy_types::DateTime;
use zae_limiter_stack::{Change, Error, Event, StackOptions};

use super::kept::{aggregating, aggregating_body};
use super::tape::{
    Tape, caller, change_set, created, history, looks, no_log_groups, no_table, refusal, template,
    with_outputs,
};
use super::{NAME, body, count, stack, tags};
use crate::support::{Diary, bare, code};

const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:ops";

fn role(trust: &'static str) -> Rule {
    mock!(aws_sdk_iam::Client::get_role)
        .match_requests(|input| input.role_name() == Some("theirs"))
        .then_output(move || {
            let role = Role::builder()
                .path("/")
                .role_name("theirs")
                .role_id("1")
                .arn("arn")
                .assume_role_policy_document(trust);
            GetRoleOutput::builder()
                .role(role.create_date(DateTime::from_secs(0)).build().unwrap())
                .build()
        })
}

fn enterprise() -> StackOptions {
    StackOptions::builder()
        .permission_boundary("limits")
        .aggregator_role_arn("arn:aws:iam::123456789012:role/service/theirs")
        .enable_audit_archival(false)
        .alarm_sns_topic(TOPIC)
        .build()
        .unwrap()
}

fn creation(iam: Vec<Rule>, logs: Rule, sns: Rule) -> Tape {
    let mut tape = Tape::of([looks(&[""], tags(&bare())), created()]);
    tape.iam = iam;
    tape.logs.push(logs);
    tape.sns.push(sns);
    tape.sts.push(caller());
    tape.dynamodb.push(no_table());
    tape
}

#[tokio::test(start_paused = true)]
async fn all_findings_come_together_before_anything_is_touched() {
    let ec2 = "%7B%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22Principal%22%3A%7B%22Service%22%3A%22ec2.amazonaws.com\
               %22%7D%2C%22Action%22%3A%22sts%3AAssumeRole%22%7D%5D%7D";
    let boundary = mock!(aws_sdk_iam::Client::get_policy)
        .match_requests(|input| input.policy_arn() == Some("arn:aws:iam::123456789012:policy/limits"))
        .then_error(|| GetPolicyError::generic(refusal("NoSuchEntity", "no")));
    // The names of the three policies are taken.
    let taken = mock!(aws_sdk_iam::Client::get_policy).then_output(|| GetPolicyOutput::builder().build());
    let left = mock!(aws_sdk_cloudwatchlogs::Client::describe_log_groups).then_output(|| {
        let group = LogGroup::builder()
            .log_group_name("/aws/lambda/demo-aggregator")
            .build();
        DescribeLogGroupsOutput::builder().log_groups(group).build()
    });
    let topic = mock!(aws_sdk_sns::Client::get_topic_attributes)
        .then_error(|| GetTopicAttributesError::generic(refusal("NotFound", "Topic does not exist")));
    let (stack, calls) = stack(
        &enterprise(),
        &creation(vec![boundary, taken, role(ec2)], left, topic),
    );
    let error = stack.code(code()).ensure().await.unwrap_err();
    let Error::Preflight { findings } = &error else {
        panic!("{error}")
    };
    let said = error.to_string();
    for part in [
        "policy/limits does not exist",
        "role/service/theirs cannot be assumed by Lambda",
        "policy demo-acq exists",
        "policy demo-full exists",
        "policy demo-read exists",
        "log group /aws/lambda/demo-aggregator exists",
        "topic arn:aws:sns:us-east-1:123456789012:ops does not exist",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(findings.len(), 7, "{said}");
    assert_eq!(
        count(&calls, "CreateStack") + count(&calls, "CreateBucket") + count(&calls, "PutObject"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn roles_buckets_and_archives_that_the_options_name_must_exist() {
    use aws_sdk_s3::operation::head_bucket::HeadBucketError;
    use aws_sdk_s3::operation::head_object::HeadObjectError;
    let options = StackOptions::builder()
        .aggregator_role_arn("arn:aws:iam::123456789012:role/service/theirs")
        .archive_bucket("old-archive")
        .code_bucket("ours")
        .aggregator_code_key("a.zip")
        .archiver_code_key("b.zip")
        .enable_alarms(false)
        .build()
        .unwrap();
    let iam = Tape::default().with_free_names().iam;
    let sns = mock!(aws_sdk_sns::Client::get_topic_attributes)
        .then_error(|| GetTopicAttributesError::generic(refusal("NotFound", "no")));
    let mut tape = creation(iam, no_log_groups(), sns);
    tape.s3.extend([
        mock!(aws_sdk_s3::Client::head_bucket)
            .then_error(|| HeadBucketError::generic(refusal("NotFound", "not found"))),
        mock!(aws_sdk_s3::Client::head_object)
            .then_error(|| HeadObjectError::generic(refusal("NotFound", "not found"))),
    ]);
    let (stack, calls) = stack(&options, &tape);
    let error = stack.ensure().await.unwrap_err();
    let said = error.to_string();
    for part in [
        "role/service/theirs does not exist",
        "archive bucket old-archive does not exist",
        "archive ours/a.zip does not exist",
        "archive ours/b.zip does not exist",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(matches!(error, Error::Preflight { .. }), "{said}");
    assert_eq!(count(&calls, "CreateStack"), 0);
}

#[tokio::test(start_paused = true)]
async fn checks_that_are_not_permitted_are_passed_over_and_told() {
    let iam = vec![
        mock!(aws_sdk_iam::Client::get_policy)
            .then_error(|| GetPolicyError::generic(refusal("AccessDenied", "no"))),
        mock!(aws_sdk_iam::Client::get_role)
            .then_error(|| GetRoleError::generic(refusal("AccessDenied", "no"))),
    ];
    let logs = mock!(aws_sdk_cloudwatchlogs::Client::describe_log_groups)
        .then_error(|| DescribeLogGroupsError::generic(refusal("AccessDeniedException", "no")));
    let sns = mock!(aws_sdk_sns::Client::get_topic_attributes)
        .then_error(|| GetTopicAttributesError::generic(refusal("AuthorizationError", "no")));
    let options = bare()
        .to_builder()
        .permission_boundary("limits")
        .alarm_sns_topic(TOPIC)
        .build()
        .unwrap();
    let mut tape = creation(iam, logs, sns);
    tape.cloudformation
        .insert(0, looks(&["", "CREATE_COMPLETE"], tags(&bare())));
    tape.cloudformation
        .push(history(&[(NAME, "", "CREATE_IN_PROGRESS", "")], "x"));
    let diary = Diary::default();
    let (stack, _) = stack(&options, &tape);
    assert_eq!(
        stack.observer(diary.clone()).ensure().await.unwrap().change,
        Change::Created
    );
    let passed: Vec<_> = diary
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::NotChecked { what, .. } => Some(what),
            _ => None,
        })
        .collect();
    assert_eq!(
        passed,
        [
            "the permission boundary",
            "names of roles and policies",
            "the alarms' topic"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_role_of_another_account_and_a_topic_of_another_region_need_no_question() {
    let options = enterprise()
        .to_builder()
        .aggregator_role_arn("arn:aws:iam::999999999999:role/theirs");
    let options = options
        .alarm_sns_topic("arn:aws:sns:eu-west-1:123456789012:ops")
        .build()
        .unwrap();
    let free = mock!(aws_sdk_iam::Client::get_policy)
        .match_requests(|input| input.policy_arn() != Some("arn:aws:iam::123456789012:policy/limits"))
        .then_error(|| GetPolicyError::generic(refusal("NoSuchEntity", "no")));
    let boundary = mock!(aws_sdk_iam::Client::get_policy).then_output(|| GetPolicyOutput::builder().build());
    let mut tape = creation(vec![free, boundary], no_log_groups(), role(""));
    tape.sns.clear();
    let error = stack(&options, &tape).0.code(code()).ensure().await.unwrap_err();
    let Error::Preflight { findings } = &error else {
        panic!("{error}")
    };
    let what: Vec<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "role arn:aws:iam::999999999999:role/theirs",
            "topic arn:aws:sns:eu-west-1:123456789012:ops"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn m14_an_export_that_others_import_is_not_taken_away() {
    let with_roles = bare().to_builder().create_iam_roles(true).build().unwrap();
    let imports = mock!(Cfn::list_imports)
        .match_requests(|input| input.export_name() == Some("demo-AppRoleArn"))
        .then_output(|| ListImportsOutput::builder().imports("app").build());
    let unused = mock!(Cfn::list_imports).then_error(|| {
        ListImportsError::generic(refusal(
            "ValidationError",
            "Export 'x' is not imported by any stack.",
        ))
    });
    let rules = [
        looks(&["CREATE_COMPLETE"], tags(&with_roles)),
        template(&body(&with_roles)),
        imports,
        unused,
    ];
    let (stack, calls) = stack(&bare(), &Tape::of(rules));
    let error = stack.ensure().await.unwrap_err();
    let Error::Preflight { findings } = &error else {
        panic!("{error}")
    };
    assert_eq!(findings.len(), 1, "{error}");
    assert!(
        error.to_string().contains("demo-AppRoleArn") && error.to_string().contains("imported by app"),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateChangeSet"), 0);
}

#[tokio::test(start_paused = true)]
async fn h13_a_foreign_reader_of_the_stream_is_refused_however_many_readers_there_are() {
    let adds = || (bare(), aggregating());
    refused_with_readers(adds(), &["peer-aggregator"]).await;
    refused_with_readers(adds(), &["peer-aggregator", "audit"]).await;
    // The mapping of the stack stays as it is.
    let keeps = aggregating().to_builder().lambda_timeout(90).build().unwrap();
    refused_with_readers((aggregating(), keeps), &["demo-aggregator", "peer-aggregator"]).await;
}

async fn refused_with_readers((before, after): (StackOptions, StackOptions), names: &'static [&'static str]) {
    let theirs = mock!(aws_sdk_lambda::Client::list_event_source_mappings).then_output(|| {
        let reader = |name: &str| {
            let arn = format!("arn:aws:lambda:us-east-1:123456789012:function:{name}");
            EventSourceMappingConfiguration::builder()
                .function_arn(arn)
                .build()
        };
        let readers = names.iter().map(|name| reader(name)).collect();
        ListEventSourceMappingsOutput::builder()
            .set_event_source_mappings(Some(readers))
            .build()
    });
    let look = with_outputs("CREATE_COMPLETE", &tags(&before), &[("StreamArn", "arn:stream")]);
    let mut tape = Tape::of([look, template(&aggregating_body(&before))]).with_free_names();
    tape.cloudformation.extend(change_set(vec![]));
    tape.lambda.push(theirs);
    tape.logs.push(no_log_groups());
    let (changes, calls) = stack(&after, &tape);
    let error = changes.code(code()).ensure().await.unwrap_err();
    let Error::Preflight { findings } = &error else {
        panic!("{error}")
    };
    let foreign = &findings[0].problem;
    assert!(foreign.contains("peer-aggregator"), "{error}");
    assert!(!foreign.contains("demo-aggregator"), "{error}");
    assert_eq!(count(&calls, "CreateChangeSet"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_is_not_permitted_does_not_hide_what_others_found() {
    let taken = mock!(aws_sdk_iam::Client::get_policy)
        .match_requests(|input| input.policy_arn().is_some_and(|arn| arn.ends_with("demo-full")))
        .then_output(|| GetPolicyOutput::builder().build());
    let denied = mock!(aws_sdk_iam::Client::get_policy)
        .then_error(|| GetPolicyError::generic(refusal("AccessDenied", "no")));
    let mut tape = Tape::of([looks(&[""], tags(&bare()))]);
    tape.iam = vec![taken, denied];
    tape.sts.push(caller());
    tape.dynamodb.push(no_table());
    let diary = Diary::default();
    let (stack, _) = stack(&bare(), &tape);
    let error = stack.observer(diary.clone()).ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::Preflight { findings } if findings.len() == 1),
        "{error}"
    );
    let told = diary.events();
    assert!(
        told.iter().any(|event| matches!(event, Event::NotChecked { .. })),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_name_of_a_role_or_policy_that_exists_must_be_free() {
    let renamed = bare().to_builder().policy_name_format("pb-{}").build().unwrap();
    let taken = mock!(aws_sdk_iam::Client::get_policy)
        .match_requests(|input| {
            input
                .policy_arn()
                .is_some_and(|arn| arn.ends_with("pb-demo-read"))
        })
        .then_output(|| GetPolicyOutput::builder().build());
    let mut tape = Tape::of([
        looks(&["CREATE_COMPLETE"], tags(&bare())),
        template(&body(&bare())),
    ]);
    tape.iam.push(taken);
    let (stack, calls) = stack(&renamed, &tape.with_free_names());
    let error = stack.ensure().await.unwrap_err();
    assert!(
        error.to_string().contains("policy pb-demo-read exists"),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateChangeSet"), 0);
}
