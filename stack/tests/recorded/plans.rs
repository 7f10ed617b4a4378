//! Plans that are stored and read again.

use zae_limiter_stack::{Change, Error, Plan};

use super::states::{changeable, converged};
use super::{changed, stack};
use crate::support::bare;

#[tokio::test(start_paused = true)]
async fn an_empty_plan_has_the_answer_in_it() {
    let (planner, calls) = stack(&bare(), &converged(&["UPDATE_COMPLETE"]));
    let plan = planner.plan().await.unwrap();
    assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"]);
    let applied = planner.apply(&plan).await.unwrap();
    assert_eq!(plan.unchanged(), Some(&applied));
    let stored = Plan::from_json(&plan.to_json()).unwrap();
    assert_eq!(stored.unchanged(), Some(&applied));

    // A process that deployed left before the end: the next one writes the table's records.
    let left: &[_] = &["CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let (next, _) = stack(&bare(), &converged(left));
    let plan = next.plan().await.unwrap();
    assert_eq!(plan.unchanged().unwrap().change, Change::Awaited);

    let (other, _) = stack(&changed(), &changeable(&["UPDATE_COMPLETE"], "x"));
    assert_eq!(other.plan().await.unwrap().unchanged(), None);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_this_release_cannot_read_is_refused() {
    let (planner, calls) = stack(&bare(), &converged(&["UPDATE_COMPLETE"]));
    let plan = planner.plan().await.unwrap().to_json();
    let made = calls.names().len();
    for (text, expected) in [
        (
            plan.replacen("\"format\": 1", "\"format\": 2", 1),
            "its format is 2",
        ),
        (plan[..plan.len() / 2].to_owned(), "EOF while parsing"),
        ("{}".to_owned(), "missing field"),
    ] {
        let refused = Plan::from_json(&text);
        assert!(
            matches!(&refused, Err(Error::PlanUnreadable { reason }) if reason.contains(expected)),
            "{refused:?}"
        );
    }
    assert_eq!(calls.names().len(), made, "nothing was asked");
}
