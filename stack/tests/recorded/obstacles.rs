//! What would make a deletion fail is named before anything is deleted.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stack_resources::{
    DescribeStackResourcesError, DescribeStackResourcesOutput,
};
use aws_sdk_cloudformation::operation::describe_stacks::DescribeStacksOutput;
use aws_sdk_cloudformation::types::StackResource;
use aws_sdk_iam::operation::list_attached_role_policies::ListAttachedRolePoliciesOutput;
use aws_sdk_iam::operation::list_entities_for_policy::{
    ListEntitiesForPolicyError, ListEntitiesForPolicyOutput,
};
use aws_sdk_iam::types::{AttachedPolicy, PolicyRole, PolicyUser};
use aws_sdk_s3::operation::list_object_versions::ListObjectVersionsOutput;
use aws_sdk_s3::types::ObjectVersion;
use aws_smithy_mocks::{Rule, mock};
use serde_json::json;
use zae_limiter_stack::{Deletion, Error, Event};

use super::tape::{Tape, deletion, described, history, looks, refusal, template};
use super::{NAME, body, count, stack, tags};
use crate::support::{Diary, bare};

const POLICY: &str = "arn:aws:iam::123456789012:policy/demo-acq";

fn resources() -> Rule {
    mock!(Cfn::describe_stack_resources).then_output(|| {
        let resource = |id: &str, physical: &str| {
            StackResource::builder()
                .logical_resource_id(id)
                .physical_resource_id(physical)
                .build()
        };
        DescribeStackResourcesOutput::builder()
            .stack_resources(resource("AcquireOnlyPolicy", POLICY))
            .stack_resources(resource("AppRole", "demo-app"))
            .stack_resources(resource("Exports", "demo-auditarchivebucket-exports"))
            .build()
    })
}

fn attached(user: Option<&'static str>, roles: &'static [&'static str]) -> Rule {
    mock!(aws_sdk_iam::Client::list_entities_for_policy)
        .match_requests(|input| input.policy_arn() == Some(POLICY))
        .then_output(move || {
            let roles = roles
                .iter()
                .map(|name| PolicyRole::builder().role_name(*name).build());
            let users = user.map(|name| PolicyUser::builder().user_name(name).build());
            ListEntitiesForPolicyOutput::builder()
                .set_policy_roles(Some(roles.collect()))
                .set_policy_users(Some(users.into_iter().collect()))
                .build()
        })
}

/// A stack with a bucket that it would delete.
fn tape(iam: Rule, objects: usize) -> Tape {
    let mut deployed = body(&bare());
    deployed["Resources"]["Exports"] = json!({ "Type": "AWS::S3::Bucket" });
    let statuses: &[_] = &["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"];
    let rules = [
        looks(statuses, tags(&bare())),
        template(&deployed),
        resources(),
        deletion(),
    ];
    let mut tape = Tape::of(rules);
    tape.cloudformation
        .push(history(&[(NAME, "", "DELETE_IN_PROGRESS", "")], "x"));
    tape.iam.push(iam);
    tape.s3.push(
        mock!(aws_sdk_s3::Client::list_object_versions).then_output(move || {
            let versions = (0..objects).map(|_| ObjectVersion::builder().key("x").build());
            ListObjectVersionsOutput::builder()
                .set_versions(Some(versions.collect()))
                .build()
        }),
    );
    tape
}

#[tokio::test(start_paused = true)]
async fn policies_of_applications_and_full_buckets_are_named_before_anything_is_deleted() {
    let (blocked, calls) = stack(&bare(), &tape(attached(Some("ci"), &["checkout", "demo-app"]), 1));
    let error = blocked.delete().await.unwrap_err();
    let Error::NotDeletable { obstacles } = &error else {
        panic!("{error}")
    };
    assert_eq!(obstacles.len(), 2, "{error}");
    assert!(
        obstacles[0].contains("attached to role checkout, user ci"),
        "the stack's own role goes with it: {error}"
    );
    assert!(
        obstacles[1].contains("bucket demo-auditarchivebucket-exports is not empty"),
        "{error}"
    );
    assert_eq!(count(&calls, "DeleteStack"), 0);

    let (free, _) = stack(&bare(), &tape(attached(None, &["demo-app"]), 0));
    assert!(free.delete().await.unwrap().existed);

    let (retained, _) = stack(&bare(), &tape(attached(None, &["checkout"]), 1));
    let retain = ["AcquireOnlyPolicy", "Exports"].map(str::to_owned).into();
    let how = Deletion { retain, purge: false };
    assert!(retained.delete_with(&how).await.unwrap().existed);
}

#[tokio::test(start_paused = true)]
async fn policies_of_others_on_the_roles_of_the_stack_are_named() {
    const BOSS: &str = "arn:aws:iam::aws:policy/AdministratorAccess";
    const FOREIGN: [&str; 2] = [POLICY, BOSS];
    let roles = bare().to_builder().create_iam_roles(true).build().unwrap();
    let attached = |arns: &'static [&'static str]| {
        mock!(aws_sdk_iam::Client::list_attached_role_policies)
            .match_requests(|input| input.role_name() == Some("demo-app"))
            .then_output(|| {
                let policies = arns
                    .iter()
                    .map(|arn| AttachedPolicy::builder().policy_arn(*arn).build());
                ListAttachedRolePoliciesOutput::builder()
                    .set_attached_policies(Some(policies.collect()))
                    .build()
            })
    };
    for (arns, expected) in [(&FOREIGN[..], Some(BOSS)), (&FOREIGN[..1], None)] {
        let mut tape = tape(super::obstacles::attached(None, &["demo-app"]), 0);
        tape.cloudformation.insert(0, template(&body(&roles)));
        tape.iam.push(attached(arns));
        let (deletes, calls) = stack(&roles, &tape);
        match (deletes.delete().await, expected) {
            (Ok(deleted), None) => assert!(deleted.existed),
            (Err(Error::NotDeletable { obstacles }), Some(foreign)) => {
                let [obstacle] = obstacles.as_slice() else {
                    panic!("{obstacles:?}")
                };
                assert!(
                    obstacle.contains("role demo-app has") && obstacle.contains(foreign),
                    "{obstacle}"
                );
                assert!(!obstacle.contains(POLICY), "its own goes with it: {obstacle}");
                assert_eq!(count(&calls, "DeleteStack"), 0);
            }
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_is_not_permitted_does_not_stop_a_deletion() {
    let denied = mock!(aws_sdk_iam::Client::list_entities_for_policy)
        .then_error(|| ListEntitiesForPolicyError::generic(refusal("AccessDenied", "no")));
    let diary = Diary::default();
    let (deletes, _) = stack(&bare(), &tape(denied, 0));
    assert!(deletes.observer(diary.clone()).delete().await.unwrap().existed);
    let skipped = diary
        .events()
        .iter()
        .any(|event| matches!(event, Event::NotChecked { what, .. } if what.contains("AcquireOnlyPolicy")));
    assert!(skipped, "{:?}", diary.events());
}

#[tokio::test(start_paused = true)]
async fn a_throttled_deletion_is_started_once_aws_answers() {
    let throttled = mock!(Cfn::describe_stack_resources)
        .sequence()
        .error(|| DescribeStackResourcesError::generic(refusal("Throttling", "Rate exceeded")))
        .times(9)
        .output(|| DescribeStackResourcesOutput::builder().build())
        .build();
    let mut tape = tape(attached(None, &[]), 0);
    tape.cloudformation.insert(0, throttled);
    tape.cloudformation.insert(
        0,
        looks(
            &[
                "CREATE_COMPLETE",
                "CREATE_COMPLETE",
                "CREATE_COMPLETE",
                "DELETE_COMPLETE",
            ],
            tags(&bare()),
        ),
    );
    let (deletes, calls) = stack(&bare(), &tape);
    assert!(deletes.delete().await.unwrap().existed);
    assert_eq!(count(&calls, "DeleteStack"), 1);
}

#[tokio::test(start_paused = true)]
async fn termination_protection_is_named() {
    let all = tags(&bare());
    let looked = mock!(Cfn::describe_stacks).then_output(move || {
        let mut stack = described("CREATE_COMPLETE", &all);
        stack.enable_termination_protection = Some(true);
        DescribeStacksOutput::builder().stacks(stack).build()
    });
    let mut tape = tape(attached(None, &[]), 0);
    tape.cloudformation.insert(0, looked);
    let (protected, calls) = stack(&bare(), &tape);
    let error = protected.delete().await.unwrap_err();
    assert!(error.to_string().contains("termination protection"), "{error}");
    assert_eq!(count(&calls, "DeleteStack"), 0);
}
