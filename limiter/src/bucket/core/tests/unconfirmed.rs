//! Writes that may have happened.

use super::super::{Completion, Step};
use super::bench::{Bench, rpm};
use super::created;
use crate::bucket::core::request::Outcome;

#[test]
fn a_credit_whose_answer_is_lost_late_in_a_long_outage_happens_once() {
    let mut bench = created();
    let _seven = bench.ask(7);
    bench.pass();
    bench.give_back(7);
    // More than a minute without any response: nothing arrives.
    for _ in 0..70 {
        bench.write();
        bench.lose();
        bench.outlast(1_000);
    }
    let before = bench.level();
    let write = bench.write();
    assert!(bench.arrive(&write));
    bench.lose();
    bench.outlast(1_000);
    let write = bench.write();
    assert!(!bench.arrive(&write), "the slot has moved on");
    let now = bench.now();
    let completions = bench.core.refused(bench.decoded(), now);
    assert!(
        matches!(completions[..], [Completion::Written(_)]),
        "{completions:?}"
    );
    assert!(matches!(bench.next().0, Step::Idle));
    assert_eq!(bench.level(), (before + 7).min(10));
}

#[test]
fn of_more_writes_than_are_remembered_one_that_was_forgotten_is_not_repeated() {
    let mut bench = created();
    let _seven = bench.ask(7);
    bench.pass();
    bench.give_back(7);
    let forgotten = bench.write();
    bench.lose();
    for _ in 0..1_000 {
        bench.outlast(1);
        bench.write();
        bench.lose();
    }
    assert_eq!(bench.core.unconfirmed.len(), 1_000);
    let before = bench.level();
    assert!(bench.arrive(&forgotten), "a copy that comes very late");
    let write = bench.write();
    assert!(!bench.arrive(&write), "the slot has moved on");
    let now = bench.now();
    let completions = bench.core.refused(bench.decoded(), now);
    assert!(
        matches!(&completions[..], [Completion::Unwritten(request, _)] if request.maybe_written),
        "{completions:?}"
    );
    assert!(matches!(bench.next().0, Step::Idle));
    assert_eq!(bench.level(), (before + 7).min(10), "given back once");
}

#[test]
fn an_unconfirmed_debit_is_found_and_refunded_after_an_outage_of_any_length() {
    let mut bench = created();
    let _call = bench.ask(5);
    let write = bench.write();
    assert!(bench.arrive(&write));
    assert_eq!(bench.lose().len(), 1, "its caller is told");
    bench.write();
    bench.lose();
    bench.outlast(10 * 60_000);
    assert!(matches!(bench.next().0, Step::Idle), "nobody asks for it");
    let _next = bench.ask(1);
    let write = bench.write();
    assert!(!bench.arrive(&write));
    let now = bench.now();
    bench.core.refused(bench.decoded(), now);
    bench.pass();
    let image = bench.bucket();
    assert_eq!(
        image.limits[&rpm()].consumed,
        2_000,
        "the first and the last call"
    );
}

#[test]
fn a_correction_that_was_given_up_and_happened_after_all_is_not_taken_back() {
    let mut bench = created();
    let _five = bench.ask(5);
    bench.pass();
    bench.give_back(2);
    let write = bench.write();
    assert!(bench.arrive(&write));
    bench.lose();
    assert_eq!(bench.fail().len(), 1, "it is reported");
    bench.read();
    assert!(matches!(bench.next().0, Step::Idle));
    assert_eq!(bench.level(), 6);
}

#[test]
fn an_unconfirmed_write_is_searched_for_once_until_a_call_needs_it() {
    let mut bench = created();
    for _ in 0..3 {
        let _call = bench.ask(5);
        bench.write();
        bench.lose();
        let look = bench.write();
        assert!(look.batch.demands.is_empty());
        bench.lose();
        for _ in 0..100 {
            bench.outlast(1_000);
            assert!(matches!(bench.next().0, Step::Idle));
        }
    }
}

#[test]
fn a_look_that_is_throttled_is_not_repeated_either() {
    let mut bench = created();
    let _call = bench.ask(5);
    bench.write();
    bench.lose();
    bench.write();
    bench.give_up();
    assert!(matches!(bench.next().0, Step::Idle));
}

#[test]
fn a_call_that_is_dropped_while_its_write_is_under_way_is_unconfirmed() {
    let mut bench = created();
    let _five = bench.ask(5);
    bench.pass();
    bench.give_back(5);
    let write = bench.write();
    let given_up = bench.fail();
    let [Completion::Unwritten(request, _)] = &given_up[..] else {
        panic!("{given_up:?}")
    };
    assert!(request.maybe_written);
    assert!(matches!(bench.next().0, Step::Idle));
    assert!(bench.arrive(&write), "it may happen yet");
}

#[test]
fn an_unconfirmed_creation_is_found_when_a_call_needs_it_and_not_before() {
    let mut bench = Bench::new();
    bench.read();
    let _call = bench.ask(4);
    let creation = bench.write();
    bench.lose();
    assert!(matches!(bench.next().0, Step::Idle));
    assert!(bench.arrive(&creation));
    let _next = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Read));
    bench.read();
    assert_eq!(bench.pass().len(), 2, "the call, and what nobody has goes back");
    assert_eq!(bench.level(), 9);
    assert!(matches!(bench.next().0, Step::Idle));
}

#[test]
fn a_look_at_the_configuration_does_not_pass_for_an_answer() {
    let mut bench = Bench::new();
    bench.read();
    let _call = bench.ask(4);
    let creation = bench.write();
    assert!(bench.arrive(&creation));
    bench.lose();
    let known = bench.known();
    bench.core.read_along(known, bench.now());
    assert!(
        bench.core.knows_nothing(),
        "the unconfirmed write is searched for by a read of its own"
    );
    let _next = bench.ask(1);
    bench.read();
    assert_eq!(bench.pass().len(), 2);
    assert_eq!(bench.level(), 9);
}

/// The network delivers a request twice: the first copy is applied, and the response is that of the second.
#[test]
fn a_refund_that_is_delivered_twice_is_written_once() {
    let mut bench = created();
    let _seven = bench.ask(7);
    bench.pass();
    assert_eq!(bench.level(), 2);
    bench.give_back(3);
    let write = bench.write();
    assert!(bench.arrive(&write));
    let completions = bench.respond(&write);
    assert!(
        matches!(completions[..], [Completion::Written(_)]),
        "{completions:?}"
    );
    assert!(matches!(bench.next().0, Step::Idle));
    assert_eq!(bench.level(), 5);
}

#[test]
fn a_creation_that_is_delivered_twice_is_one_call() {
    let mut bench = Bench::new();
    bench.read();
    let _call = bench.ask(4);
    let creation = bench.write();
    assert!(bench.arrive(&creation));
    let completions = bench.respond(&creation);
    assert!(
        matches!(completions[..], [Completion::Decided(_, Outcome::Granted(_))]),
        "{completions:?}"
    );
    assert_eq!(bench.level(), 6);
}

/// The first copy is refused, and the second one arrives when there is room for it: its caller was told no, so that its
/// tokens go back.
#[test]
fn a_refused_write_whose_copy_is_applied_later_is_refunded() {
    let mut bench = created();
    bench.outlast(1);
    let before = bench.item.clone();
    bench.elsewhere(5);
    let _call = bench.ask(5);
    let write = bench.write();
    assert!(bench.respond(&write).is_empty(), "only four are left");
    let (step, completions) = bench.next();
    assert!(matches!(step, Step::Again), "{step:?}");
    assert_eq!(super::refused(&completions), 1);
    bench.item = before;
    assert!(bench.arrive(&write), "a copy that comes late");
    assert_eq!(bench.level(), 4);
    let _next = bench.ask(1);
    while let (Step::Send(write), _) = bench.next() {
        bench.respond(&write);
    }
    assert_eq!(bench.level(), 8, "one of ten before, and one now");
}
