//! What an application may do to a stack, and what it is told instead.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetError;
use aws_sdk_cloudformation::operation::describe_stacks::DescribeStacksError;
use aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetError;
use aws_sdk_cloudformation::primitives::DateTime;
use aws_sdk_iam::operation::get_policy::GetPolicyError;
use aws_sdk_iam::operation::get_role::GetRoleOutput;
use aws_smithy_mocks::{Rule, mock};
use serde_json::json;
use zae_limiter_stack::{Change, Error, LambdaFunction, Mode, Outcome, StackOptions};
use zae_limiter_template::{CodeLocation, FunctionCode};

use super::kept::{aggregating, aggregating_body};
use super::states::changeable;
use super::tape::{Tape, history, looks, refusal, template};
use super::{NAME, body, changed, count, stack, tags};
use crate::support::{bare, name};

const CHANGES: [&str; 5] = [
    "CreateStack",
    "CreateChangeSet",
    "ExecuteChangeSet",
    "UpdateStack",
    "DeleteStack",
];

/// A stack of [`bare`] options, for a caller that may read it and nothing else.
fn readable(statuses: &'static [&'static str]) -> Tape {
    let denied = mock!(Cfn::create_change_set)
        .then_error(|| CreateChangeSetError::generic(refusal("AccessDenied", "not for you")));
    let mut tape = Tape::of([looks(statuses, tags(&bare())), template(&body(&bare())), denied]);
    tape.iam.push(iam_denied());
    tape
}

fn iam_denied() -> Rule {
    mock!(aws_sdk_iam::Client::get_policy)
        .then_error(|| GetPolicyError::generic(refusal("AccessDenied", "not for you")))
}

/// The response to the question whether the caller may execute change sets.
fn execution(code: &'static str) -> Rule {
    mock!(Cfn::execute_change_set)
        .match_requests(|input| {
            let name = input.change_set_name().unwrap();
            input.stack_name() == Some(NAME) && name.starts_with("zl-none-")
        })
        .then_error(move || ExecuteChangeSetError::generic(refusal(code, "the response of AWS")))
}

/// What an application in [`Mode::Auto`] gets if the question whether it may deploy has this response.
async fn auto(options: &StackOptions, mut tape: Tape, code: &'static str) -> Result<Outcome, Error> {
    tape.cloudformation.insert(0, execution(code));
    let (app, calls) = stack(options, &tape);
    let outcome = app.mode(Mode::Auto).ensure().await;
    let made = CHANGES.iter().map(|change| count(&calls, change));
    assert_eq!(made.sum::<usize>(), 1, "only the question: {:?}", calls.names());
    outcome
}

/// An error for a process that may deploy is a warning for one that may not.
async fn is_only_for_deployers(options: &StackOptions, tape: impl Fn() -> Tape, said: &str) {
    let error = auto(options, tape(), "ChangeSetNotFound").await.unwrap_err();
    assert!(error.to_string().contains(said), "{error}");

    let outcome = auto(options, tape(), "AccessDenied").await.unwrap();
    assert!(!outcome.changed());
    let [observed, rest @ ..] = outcome.warnings.as_slice() else {
        panic!("{outcome:?}")
    };
    assert!(observed.contains("cloudformation:ExecuteChangeSet"), "{observed}");
    let obstacles = rest.iter().filter(|warning| **warning == error.to_string());
    assert_eq!(obstacles.count(), 1, "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_guarded_change_is_a_warning_for_an_application_that_may_not_deploy() {
    // Without its archiver, the stack would lose the archive.
    let with_bucket = bare().to_builder().enable_audit_archival(true).build().unwrap();
    let code = json!({ "S3Bucket": "code", "S3Key": "1.zip" });
    let code = FunctionCode::none().with(LambdaFunction::Archiver, CodeLocation::Deployed(code));
    let deployed = zae_limiter_template::render(&name(NAME), &with_bucket, &code).unwrap();
    let tape = || {
        Tape::of([
            looks(&["UPDATE_COMPLETE"], tags(&with_bucket)),
            template(deployed.to_value()),
        ])
    };
    is_only_for_deployers(&bare(), tape, "AuditArchiveBucket").await;
}

#[tokio::test(start_paused = true)]
async fn missing_code_is_a_warning_for_an_application_that_may_not_deploy() {
    is_only_for_deployers(&aggregating(), || readable(&["UPDATE_COMPLETE"]), "has no code").await;
}

#[tokio::test(start_paused = true)]
async fn another_architecture_is_a_warning_for_an_application_that_may_not_deploy() {
    let arm = aggregating()
        .to_builder()
        .lambda_architecture("arm64")
        .build()
        .unwrap();
    let tape = || {
        Tape::of([
            looks(&["UPDATE_COMPLETE"], tags(&aggregating())),
            template(&aggregating_body(&aggregating())),
        ])
    };
    is_only_for_deployers(&arm, tape, "runs on x86_64").await;

    let observer = stack(&arm, &tape()).0.mode(Mode::Observe);
    let outcome = observer.ensure().await.unwrap();
    assert!(outcome.warnings[0].contains("runs on x86_64"), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_is_a_warning_for_an_application_that_may_not_deploy() {
    // The stack has no roles yet, and the name of one of them is taken.
    let roles = bare().to_builder().create_iam_roles(true).build().unwrap();
    let tape = || {
        let mut tape = readable(&["UPDATE_COMPLETE"]);
        tape.iam.insert(
            0,
            mock!(aws_sdk_iam::Client::get_role).then_output(|| {
                let role = aws_sdk_iam::types::Role::builder()
                    .path("/")
                    .role_name("taken")
                    .role_id("1")
                    .arn("arn:aws:iam::123456789012:role/taken")
                    .create_date(DateTime::from_secs(0));
                GetRoleOutput::builder().role(role.build().unwrap()).build()
            }),
        );
        tape
    };
    is_only_for_deployers(&roles, tape, "exists").await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_operation_of_others_is_a_warning_for_an_application_that_may_not_deploy() {
    for statuses in [&["UPDATE_ROLLBACK_FAILED"], &["UPDATE_FAILED"]] as [&'static [_]; 2] {
        let tape = || {
            let mut tape = readable(statuses);
            let events = [(NAME, "", "UPDATE_IN_PROGRESS", "User Initiated")];
            tape.cloudformation.push(history(&events, "x"));
            tape
        };
        is_only_for_deployers(&bare(), tape, statuses[0]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_cannot_serve_stays_an_error_for_an_application_that_may_not_deploy() {
    let mut tape = readable(&["ROLLBACK_COMPLETE"]);
    let events = [(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")];
    tape.cloudformation.push(history(&events, "x"));
    let error = auto(&bare(), tape, "AccessDenied").await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_application_that_may_not_deploy_observes_and_is_warned_of_each_difference() {
    let (app, calls) = stack(&changed(), &readable(&["UPDATE_COMPLETE"]));
    let outcome = app.mode(Mode::Auto).ensure().await.unwrap();
    assert_eq!((outcome.change, outcome.changed()), (Change::None, false));
    let said = outcome.warnings.join("\n");
    assert!(said.contains("cloudformation:CreateChangeSet"), "{said}");
    assert!(
        said.contains("RateLimitsTable: DeletionProtectionEnabled is false, should be true"),
        "{said}"
    );
    assert_eq!(
        count(&calls, "ExecuteChangeSet") + count(&calls, "UpdateStack"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn another_release_in_tags_or_metadata_is_a_warning_for_an_observer() {
    let mut older = body(&bare());
    older["Metadata"]["zae-limiter"]["version"] = "0.0.9".into();
    let mut marked = tags(&bare());
    marked.insert("zae-limiter:version".to_owned(), "0.0.9".to_owned());
    let (app, calls) = stack(
        &bare(),
        &Tape::of([looks(&["UPDATE_COMPLETE"], marked), template(&older)]),
    );
    let outcome = app.mode(Mode::Observe).ensure().await.unwrap();
    assert_eq!(
        (outcome.change, outcome.version.as_str()),
        (Change::None, "0.0.9")
    );
    assert!(
        outcome.warnings[0].contains("release 0.0.9"),
        "{:?}",
        outcome.warnings
    );
    assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"]);
}

#[tokio::test(start_paused = true)]
async fn an_observer_waits_for_the_deployment_of_others() {
    for options in [bare(), changed()] {
        let statuses: &[_] = &["UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];
        let (app, calls) = stack(&options, &readable(statuses));
        let outcome = app.mode(Mode::Observe).ensure().await.unwrap();
        assert_eq!(outcome.change, Change::Awaited);
        assert_eq!(outcome.warnings.is_empty(), options == bare());
        assert!(CHANGES.iter().all(|change| count(&calls, change) == 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_serves_although_an_operation_failed_is_a_warning_for_an_observer() {
    let events = || history(&[(NAME, "", "UPDATE_IN_PROGRESS", "User Initiated")], "x");
    for statuses in [
        &["UPDATE_ROLLBACK_FAILED"],
        &["UPDATE_FAILED"],
        &["DELETE_FAILED"],
    ] as [&'static [_]; 3]
    {
        let mut tape = readable(statuses);
        tape.cloudformation.push(events());
        let outcome = stack(&bare(), &tape)
            .0
            .mode(Mode::Observe)
            .ensure()
            .await
            .unwrap();
        assert!(
            outcome.warnings[0].contains(statuses[0]),
            "{:?}",
            outcome.warnings
        );
    }
    let mut tape = readable(&["ROLLBACK_COMPLETE"]);
    tape.cloudformation.push(events());
    let error = stack(&bare(), &tape)
        .0
        .mode(Mode::Observe)
        .ensure()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    let absent = Tape::of([looks(&[""], tags(&bare()))]).with_free_site();
    let (absent, _) = stack(&bare(), &absent);
    let error = absent.mode(Mode::Observe).ensure().await.unwrap_err();
    assert!(matches!(error, Error::NoSuchStack { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_exact_stack_can_be_required() {
    let (equal, _) = stack(&bare(), &readable(&["UPDATE_COMPLETE"]));
    assert_eq!(
        equal.mode(Mode::RequireExact).ensure().await.unwrap().change,
        Change::None
    );
    let (differs, calls) = stack(&changed(), &readable(&["UPDATE_COMPLETE"]));
    let error = differs.mode(Mode::RequireExact).ensure().await.unwrap_err();
    let Error::Differs { differences, .. } = &error else {
        panic!("{error}")
    };
    assert!(differences[0].contains("DeletionProtectionEnabled"), "{error}");
    assert!(CHANGES.iter().all(|change| count(&calls, change) == 0));
}

#[tokio::test(start_paused = true)]
async fn an_application_without_any_right_to_cloudformation_is_warned_and_goes_on() {
    let denied = || {
        mock!(Cfn::describe_stacks).then_error(|| DescribeStacksError::generic(refusal("AccessDenied", "no")))
    };
    let (app, _) = stack(&bare(), &Tape::of([denied()]));
    let outcome = app.mode(Mode::Auto).ensure().await.unwrap();
    assert!(!outcome.changed());
    assert!(
        outcome.warnings[0].contains("cloudformation:DescribeStacks"),
        "{outcome:?}"
    );
    let (observer, _) = stack(&bare(), &Tape::of([denied()]));
    let error = observer.mode(Mode::Observe).ensure().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_second_service_with_other_options_is_refused_and_told_which() {
    let statuses: &[_] = &["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];
    let mut tape = changeable(statuses, "x");
    let allowed = execution("ChangeSetNotFound");
    tape.cloudformation.insert(0, allowed.clone());
    let (second, calls) = stack(&changed(), &tape);
    let error = second.mode(Mode::Auto).ensure().await.unwrap_err();
    assert_eq!(allowed.num_calls(), 1, "it may deploy");
    assert!(matches!(error, Error::Guarded { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("enable_deletion_protection is false, here true") && said.contains("other options"),
        "{said}"
    );
    assert_eq!(
        (
            count(&calls, "ExecuteChangeSet"),
            count(&calls, "DeleteChangeSet")
        ),
        (1, 1),
        "only the question was executed"
    );

    let (told, _) = stack(&changed(), &changeable(statuses, "x"));
    assert_eq!(
        told.mode(Mode::Apply).ensure().await.unwrap().change,
        Change::Updated
    );
}

#[tokio::test(start_paused = true)]
async fn an_application_upgrades_a_stack_of_an_earlier_release_though_its_options_differ() {
    let statuses: &[_] = &["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];
    let mut older = body(&bare());
    older["Metadata"]["zae-limiter"]["version"] = "0.0.9".into();
    let mut tape = changeable(statuses, "x");
    tape.cloudformation.insert(0, template(&older));
    let (upgrades, _) = stack(&changed(), &tape);
    assert_eq!(
        upgrades.mode(Mode::Auto).ensure().await.unwrap().change,
        Change::Updated
    );
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_another_tool_deploys_is_left_alone_unless_told() {
    let tape = |statuses: &'static [&'static str]| {
        let mut terraformed = tags(&bare());
        terraformed.insert("ManagedBy".to_owned(), "terraform".to_owned());
        let mut tape = changeable(statuses, "x");
        tape.cloudformation.insert(0, looks(statuses, terraformed));
        tape
    };
    let (applies, calls) = stack(&changed(), &tape(&["UPDATE_COMPLETE"]));
    let error = applies.ensure().await.unwrap_err();
    assert!(matches!(error, Error::ManagedElsewhere { .. }), "{error}");
    assert!(
        error.to_string().contains("ManagedBy is \"terraform\""),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateChangeSet"), 0);

    let plan = stack(&changed(), &tape(&["UPDATE_COMPLETE"]))
        .0
        .plan()
        .await
        .unwrap();
    assert!(
        plan.is_refused() && plan.to_string().contains("--adopt"),
        "{plan}"
    );
    let outcome = stack(&changed(), &tape(&["UPDATE_COMPLETE"]))
        .0
        .mode(Mode::Auto)
        .ensure()
        .await
        .unwrap();
    assert!(!outcome.changed() && outcome.warnings.len() > 1, "{outcome:?}");
    let adopted = stack(
        &changed(),
        &tape(&["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"]),
    )
    .0
    .adopt(true)
    .ensure()
    .await
    .unwrap();
    assert_eq!(adopted.change, Change::Updated);
}
