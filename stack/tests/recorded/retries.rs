//! A change that was rolled back is not tried again by every process that starts.

use std::sync::{Arc, Mutex};

use aws_sdk_cloudformation::Client as Cfn;
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Change, Error};

use super::states::changeable;
use super::{changed, count, stack};

#[tokio::test(start_paused = true)]
async fn h8_the_same_change_is_not_tried_again_after_its_rollback() {
    for statuses in [&["UPDATE_ROLLBACK_COMPLETE"], &["IMPORT_ROLLBACK_COMPLETE"]] as [&'static [_]; 2] {
        // The token that a deployment of the same options sends.
        let token = token_of(statuses).await;
        let (first, calls) = stack(&changed(), &changeable(statuses, &token));
        let error = first.ensure().await.unwrap_err();
        let Error::RolledBackBefore {
            cause: Some(cause), ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!(cause.reason, "Table is being updated");
        assert_eq!(
            calls.names(),
            ["DescribeStacks", "GetTemplate", "DescribeStackEvents"]
        );

        let (planner, calls) = stack(&changed(), &changeable(statuses, &token));
        let plan = planner.plan().await.unwrap();
        assert!(
            plan.refusals[0].reason.contains("Table is being updated"),
            "{plan}"
        );
        assert_eq!(count(&calls, "CreateChangeSet"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn h8_a_plan_does_not_repeat_what_was_rolled_back_unless_asked_to() {
    let rolled_back: &'static [_] = &["UPDATE_ROLLBACK_COMPLETE"];
    let token = token_of(rolled_back).await;
    let plan = stack(&changed(), &changeable(rolled_back, "somebody-elses"));
    let plan = plan.0.plan().await.unwrap();
    assert!(!plan.is_refused(), "{plan}");

    let (again, calls) = stack(&changed(), &changeable(rolled_back, &token));
    let error = again.apply(&plan).await.unwrap_err();
    assert!(matches!(error, Error::RolledBackBefore { .. }), "{error}");
    assert_eq!(count(&calls, "ExecuteChangeSet"), 0);

    let heals: &[_] = &[
        "UPDATE_ROLLBACK_COMPLETE",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
    ];
    let (asked, _) = stack(&changed(), &changeable(heals, &token));
    let outcome = asked.retry_rolled_back(true).apply(&plan).await.unwrap();
    assert_eq!(outcome.change, Change::Updated);
}

#[tokio::test(start_paused = true)]
async fn h8_options_that_make_no_difference_do_not_make_it_another_change() {
    let rolled_back: &'static [_] = &["UPDATE_ROLLBACK_COMPLETE"];
    let token = token_of(rolled_back).await;
    // There is no function that could have this memory.
    let options = changed().to_builder().lambda_memory(512).build().unwrap();
    let (same, _) = stack(&options, &changeable(rolled_back, &token));
    let error = same.ensure().await.unwrap_err();
    assert!(matches!(error, Error::RolledBackBefore { .. }), "{error}");
}

async fn token_of(statuses: &'static [&'static str]) -> String {
    let sent = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&sent);
    let mut tape = changeable(statuses, "somebody-elses");
    let execute = mock!(Cfn::execute_change_set).then_compute_output(move |input| {
        seen.lock()
            .unwrap()
            .push_str(input.client_request_token().unwrap());
        aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetOutput::builder().build()
    });
    tape.cloudformation.insert(0, execute);
    let (stack, _) = stack(&changed(), &tape);
    // The stack stays rolled back, which is what a rollback of our own change looks like.
    let error = stack.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    let token = sent.lock().unwrap().clone();
    assert!(token.starts_with("zl-"), "{token}");
    token
}

#[tokio::test(start_paused = true)]
async fn h8_another_change_or_an_explicit_retry_is_tried_after_a_rollback() {
    let statuses: &[_] = &[
        "UPDATE_ROLLBACK_COMPLETE",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
    ];
    let (other, calls) = stack(
        &changed(),
        &changeable(statuses, "zl-00000000000000000000000000000000-1"),
    );
    assert_eq!(other.ensure().await.unwrap().change, Change::Updated);
    assert_eq!(count(&calls, "ExecuteChangeSet"), 1);

    let token = token_of(&["UPDATE_ROLLBACK_COMPLETE"]).await;
    let (retried, calls) = stack(&changed(), &changeable(statuses, &token));
    assert_eq!(
        retried.retry_rolled_back(true).ensure().await.unwrap().change,
        Change::Updated
    );
    assert_eq!(count(&calls, "ExecuteChangeSet"), 1);
}
