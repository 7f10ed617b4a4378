//! Which of the queued calls are refused.

use std::time::Duration;

use super::super::{Completion, Step};
use super::bench::Bench;
use super::{created, refused};
use crate::bucket::core::request::Outcome;

#[test]
fn a_call_is_not_refused_because_of_an_earlier_one_that_may_fail_itself() {
    let mut bench = created();
    bench.elsewhere(3);
    let (_large, _small) = (bench.ask(7), bench.ask(5));
    let (step, decided) = bench.next();
    let Step::Send(write) = step else {
        panic!("{step:?}")
    };
    assert_eq!(
        refused(&decided),
        0,
        "the seven are not there any more, the five are"
    );
    assert_eq!(refused(&bench.respond(&write)), 0);
    let (step, decided) = bench.next();
    assert_eq!(refused(&decided), 1);
    let Step::Send(write) = step else {
        panic!("{step:?}")
    };
    assert_eq!(bench.respond(&write).len(), 1);
    assert_eq!(bench.level(), 1);
}

#[test]
fn without_memory_one_look_is_enough_to_refuse() {
    let mut bench = Bench::remembering(Duration::ZERO);
    bench.read();
    let _first = bench.ask(1);
    bench.pass();
    bench.elapsed += 5;
    bench.elsewhere(9);
    let _call = bench.ask(2);
    bench.elapsed += 1;
    let write = bench.write();
    assert_eq!(refused(&bench.respond(&write)), 0);
    bench.elapsed += 1;
    let (step, decided) = bench.next();
    assert_eq!((refused(&decided), matches!(step, Step::Again)), (1, true));
    let _another = bench.ask(2);
    bench.elapsed += 1;
    assert!(
        matches!(bench.next().0, Step::Read),
        "what was seen before it came does not refuse"
    );
}

#[test]
fn what_is_given_back_in_the_same_write_counts_for_those_who_wait() {
    let mut bench = created();
    let _all = bench.ask(9);
    bench.pass();
    let _next = bench.ask(5);
    bench.give_back(9);
    let (step, decided) = bench.next();
    assert_eq!(refused(&decided), 0);
    let Step::Send(write) = step else {
        panic!("{step:?}")
    };
    assert_eq!(bench.respond(&write).len(), 2);
    assert_eq!(bench.level(), 4);
}

#[test]
fn a_call_that_does_not_fit_beside_earlier_ones_waits_for_their_answer_once() {
    let mut bench = created();
    let (_first, _second, _third) = (bench.ask(5), bench.ask(5), bench.ask(5));
    let write = bench.write();
    assert_eq!(write.batch.acquires, 1, "the others wait");
    assert_eq!(bench.respond(&write).len(), 1);
    // By now there is enough again for either of them.
    bench.elapsed += 30_000;
    let (step, decided) = bench.next();
    assert!(matches!(step, Step::Send(_)), "{step:?}");
    let [Completion::Decided(_, Outcome::Refused(statuses))] = &decided[..] else {
        panic!("{decided:?}")
    };
    assert!(statuses.iter().any(|status| status.refused), "{statuses:?}");
}

#[test]
fn while_writes_wait_calls_that_fit_stay() {
    let mut bench = created();
    let _nine = bench.ask(9);
    let _ten = bench.ask(10);
    let refused = bench.core.refuse_in_advance(bench.now());
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(bench.pass().len(), 1);
    assert_eq!(bench.level(), 0);
}

#[test]
fn while_writes_wait_calls_that_are_hopeless_are_refused_at_once() {
    let mut bench = created();
    let _nine = bench.ask(9);
    bench.pass();
    let _one = bench.ask(1);
    let _ten = bench.ask(10);
    let refused = bench.core.refuse_in_advance(bench.now());
    assert_eq!(refused.len(), 2, "{refused:?}");
    let _next = bench.ask(1);
    bench.give_back(5);
    assert!(
        bench.core.refuse_in_advance(bench.now()).is_empty(),
        "the next write makes room"
    );
    assert_eq!(bench.pass().len(), 2);
}
