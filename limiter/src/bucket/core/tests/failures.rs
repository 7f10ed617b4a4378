//! Writes that are throttled or fail.

use smallvec::smallvec;

use super::super::Completion;
use super::bench::rpm;
use super::created;
use crate::Error;
use crate::bucket::core::request::Outcome;

#[test]
fn a_throttled_write_goes_into_the_next_one_together_with_later_calls() {
    let mut bench = created();
    let _two = bench.ask(2);
    bench.write();
    let _three = bench.ask(3);
    let error = Error::invalid("test", "", "throttled");
    let late = bench.core.throttled(bench.now().elapsed, &error);
    assert!(late.is_some_and(|late| late.is_empty()));
    let write = bench.write();
    assert_eq!(
        (write.batch.acquires, write.batch.demand(&rpm()).debit),
        (2, 5_000)
    );
    assert_eq!(bench.respond(&write).len(), 2);
}

#[test]
fn a_throttled_write_of_which_a_copy_was_lost_is_sent_again_as_it_is() {
    let mut bench = created();
    let _two = bench.ask(2);
    bench.write();
    bench.core.lost();
    let error = Error::invalid("test", "", "throttled");
    assert!(bench.core.throttled(bench.now().elapsed, &error).is_none());
}

#[test]
fn calls_that_have_waited_too_long_on_a_throttled_item_are_told() {
    let mut bench = created();
    let _two = bench.ask(2);
    bench.give_back(1);
    bench.write();
    bench.elapsed += 900;
    let error = Error::invalid("test", "", "throttled");
    let late = bench.core.throttled(bench.now().elapsed, &error);
    assert!(late.is_some_and(|late| matches!(late[..], [Completion::Decided(_, Outcome::Failed(_))])));
    assert!(bench.core.has_changes(), "changes stay");
}

#[test]
fn a_failure_that_is_not_transient_keeps_changes_in_the_queue() {
    let mut bench = created();
    let _five = bench.ask(5);
    bench.pass();
    let mut booked = bench.adjust_and_wait(smallvec![(rpm(), -2_000)]);
    let _call = bench.ask(1);
    bench.write();
    let completions = bench.postpone();
    assert!(
        matches!(
            completions[..],
            [
                Completion::Decided(_, Outcome::Failed(_)),
                Completion::Postponed(_, _)
            ]
        ),
        "{completions:?}"
    );
    drop(completions);
    assert!(booked.try_recv().is_err());
    assert!(matches!(bench.pass()[..], [Completion::Written(_)]));
    assert_eq!(bench.level(), 6);
}

#[test]
fn a_credit_without_an_answer_on_our_own_slot_is_sent_again_as_it_is() {
    let mut bench = created();
    let _booked = bench.adjust_and_wait(smallvec![(rpm(), -1_000)]);
    bench.write();
    assert!(bench.core.lost());
}

#[test]
fn a_write_that_no_caller_waits_for_is_unconfirmed_and_its_call_is_evaluated_again() {
    let mut bench = created();
    let _call = bench.ask(1);
    bench.write();
    let now = bench.now();
    let completions = bench.core.interrupted(now);
    assert!(completions.is_empty(), "{completions:?}");
    assert_eq!(bench.core.unconfirmed.len(), 1);
    assert_eq!(bench.write().batch.acquires, 1);
}

#[test]
fn only_corrections_that_have_waited_too_long_are_given_up() {
    let mut bench = created();
    let (first, error) = (bench.now().elapsed, Error::invalid("test", "", "gone"));
    bench.give_back(1);
    let _call = bench.ask(1);
    bench.outlast(1);
    bench.give_back(2);
    let expired = bench.core.expire(first, &error);
    assert!(
        matches!(&expired[..], [Completion::Unwritten(request, _)] if request.since == first),
        "{expired:?}"
    );
    assert!(bench.core.has_changes(), "the second one stays");
}
