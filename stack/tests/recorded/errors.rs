//! Throttling and missing permissions.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_stack::CreateStackError;
use aws_sdk_cloudformation::operation::describe_stack_events::DescribeStackEventsError;
use aws_sdk_cloudformation::operation::describe_stacks::{DescribeStacksError, DescribeStacksOutput};
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, Clients, Error, Event};

use super::tape::{Tape, described, looks, refusal, template};
use super::throttling::is_out_of_time;
use super::{body, count, stack, tags};
use crate::support::{Diary, bare};

const THROTTLED: &str = "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>";

fn throttled(times: usize) -> Rule {
    let tags = tags(&bare());
    mock!(Cfn::describe_stacks)
        .sequence()
        .http_status(400, Some(THROTTLED.to_owned()))
        .times(times)
        .output(move || {
            DescribeStacksOutput::builder()
                .stacks(described("CREATE_COMPLETE", &tags))
                .build()
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn throttled_calls_are_sent_again() {
    let (patient, calls) = stack(&bare(), &Tape::of([throttled(5), template(&body(&bare()))]));
    assert_eq!(patient.ensure().await.unwrap().change, Change::None);
    assert_eq!(count(&calls, "DescribeStacks"), 6);

    // More often than the SDK retries.
    let (throttled_long, calls) = stack(&bare(), &Tape::of([throttled(20), template(&body(&bare()))]));
    assert_eq!(throttled_long.ensure().await.unwrap().change, Change::None);
    assert_eq!(count(&calls, "DescribeStacks"), 21);

    let (out_of_time, _) = stack(&bare(), &Tape::of([throttled(1000)]));
    let allowed = std::time::Duration::from_secs(90);
    let error = out_of_time.within(allowed).ensure().await.unwrap_err();
    is_out_of_time(&error, allowed);
}

#[test]
fn clients_retry_more_than_the_sdk_does_and_never_less_than_their_caller() {
    use aws_config::retry::RetryConfig;
    let attempts = |retry: Option<RetryConfig>| {
        let mut config =
            aws_config::SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest());
        config.set_retry_config(retry);
        let clients = Clients::new(&config.build());
        clients
            .cloudformation
            .config()
            .retry_config()
            .unwrap()
            .max_attempts()
    };
    assert_eq!(attempts(None), 8);
    assert_eq!(attempts(Some(RetryConfig::standard().with_max_attempts(12))), 12);
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_named_with_its_resource() {
    let denied = mock!(Cfn::describe_stacks)
        .then_error(|| DescribeStacksError::generic(refusal("AccessDenied", "Access Denied")));
    let error = stack(&bare(), &Tape::of([denied])).0.ensure().await.unwrap_err();
    let Error::Denied { action, resource, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (action.as_str(), resource.as_str()),
        ("cloudformation:DescribeStacks", "demo")
    );

    let denied = mock!(Cfn::create_stack).then_error(|| {
        let said = "User: arn:aws:iam::123456789012:user/app is not authorized to perform: cloudformation:CreateStack on \
                    resource: arn:aws:cloudformation:us-east-1:123456789012:stack/demo/* because no policy allows it";
        CreateStackError::generic(refusal("AccessDenied", said))
    });
    let tape = Tape::of([looks(&[""], tags(&bare())), denied]).with_free_site();
    let error = stack(&bare(), &tape).0.ensure().await.unwrap_err();
    let Error::Denied { action, resource, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(action, "cloudformation:CreateStack");
    assert!(resource.ends_with("stack/demo/*"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn somebody_who_may_not_read_events_can_still_wait() {
    let blind = mock!(Cfn::describe_stack_events)
        .then_error(|| DescribeStackEventsError::generic(refusal("AccessDenied", "Access Denied")));
    let statuses: &[_] = &[
        "UPDATE_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
    ];
    let tape = Tape::of([looks(statuses, tags(&bare())), template(&body(&bare())), blind]);
    let diary = Diary::default();
    let (stack, calls) = stack(&bare(), &tape);
    assert_eq!(
        stack.observer(diary.clone()).ensure().await.unwrap().change,
        Change::Awaited
    );
    assert_eq!(count(&calls, "DescribeStackEvents"), 1, "asked once, and told");
    assert!(
        diary
            .events()
            .iter()
            .any(|event| matches!(event, Event::NotChecked { .. }))
    );
}
