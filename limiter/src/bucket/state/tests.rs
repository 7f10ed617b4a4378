//! What a state decides, step by step, over an item that the tests keep.

#![allow(clippy::panic)]

mod bench;

use std::time::Duration;

use zae_limiter_schema::bucket::{Attr, Attributes, Decoded, Slot};

use self::bench::{Bench, rpm};
use super::super::request::Outcome;
use super::{Completion, Step};

fn refused(completions: &[Completion]) -> usize {
    let is_refusal = |one: &&Completion| matches!(one, Completion::Answer(_, Outcome::Refused(_)));
    completions.iter().filter(is_refusal).count()
}

fn created() -> Bench {
    let mut bench = Bench::new();
    bench.read();
    let _first = bench.ask(1);
    assert_eq!(bench.pass().len(), 1);
    bench
}

#[test]
fn a_call_is_not_refused_because_of_an_earlier_one_that_may_fail_itself() {
    let mut bench = created();
    bench.elsewhere(3);
    let (_large, _small) = (bench.ask(7), bench.ask(5));
    let (step, answered) = bench.next();
    let Step::Send(write) = step else {
        panic!("{step:?}")
    };
    assert_eq!(
        refused(&answered),
        0,
        "the seven are not there any more, the five are"
    );
    assert_eq!(refused(&bench.answer(&write)), 0);
    let (step, answered) = bench.next();
    assert_eq!(refused(&answered), 1);
    let Step::Send(write) = step else {
        panic!("{step:?}")
    };
    assert_eq!(bench.answer(&write).len(), 1);
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
    assert_eq!(refused(&bench.answer(&write)), 0);
    bench.elapsed += 1;
    let (step, answered) = bench.next();
    assert_eq!((refused(&answered), matches!(step, Step::Again)), (1, true));
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
    let (step, answered) = bench.next();
    assert_eq!(refused(&answered), 0);
    let Step::Send(write) = step else {
        panic!("{step:?}")
    };
    assert_eq!(bench.answer(&write).len(), 2);
    assert_eq!(bench.level(), 4);
}

#[test]
fn a_credit_whose_answer_is_lost_late_in_a_long_outage_happens_once() {
    let mut bench = created();
    let _seven = bench.ask(7);
    bench.pass();
    bench.give_back(7);
    // More than a minute without any answer: nothing arrives.
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
    let moment = bench.moment();
    let completions = bench.state.refused(bench.decoded(), moment);
    assert!(
        matches!(completions[..], [Completion::Booked(_)]),
        "{completions:?}"
    );
    assert!(matches!(bench.next().0, Step::Idle));
    assert_eq!(bench.level(), (before + 7).min(10));
}

#[test]
fn a_debit_in_doubt_is_found_and_given_back_however_long_the_outage_was() {
    let mut bench = created();
    let _call = bench.ask(5);
    let write = bench.write();
    assert!(bench.arrive(&write));
    assert_eq!(bench.lose().len(), 1, "its caller is told");
    bench.outlast(10 * 60_000);
    assert!(matches!(bench.next().0, Step::Idle), "nobody asks for it");
    let _next = bench.ask(1);
    let write = bench.write();
    assert!(!bench.arrive(&write));
    let moment = bench.moment();
    bench.state.refused(bench.decoded(), moment);
    bench.pass();
    let Some(Decoded::Bucket(image)) = bench.decoded() else {
        panic!("no bucket")
    };
    assert_eq!(
        image.limits[&rpm()].consumed,
        2_000,
        "the first and the last call"
    );
}

#[test]
fn looking_for_a_write_in_doubt_ends_though_no_look_is_answered() {
    let mut bench = created();
    let _call = bench.ask(5);
    bench.write();
    bench.lose();
    let mut looks = 0;
    while let (Step::Send(write), _) = bench.next() {
        assert!(write.batch.demands.is_empty());
        bench.lose();
        bench.outlast(1_000);
        looks += 1;
        assert!(looks < 100, "for ever");
    }
    assert!(looks > 50);
}

#[test]
fn a_creation_that_arrives_after_a_look_is_found_and_given_back() {
    let mut bench = Bench::new();
    bench.read();
    let _call = bench.ask(4);
    let creation = bench.write();
    bench.lose();
    assert!(matches!(bench.next().0, Step::Read));
    bench.read();
    assert!(matches!(bench.next().0, Step::Later(_)));
    assert!(bench.arrive(&creation));
    bench.elapsed += 200;
    bench.read();
    assert_eq!(bench.pass().len(), 1);
    assert_eq!(bench.level(), 10);
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
    bench.state.saw(known);
    assert!(
        bench.state.knows_nothing(),
        "the write in doubt is looked for by a read of its own"
    );
    bench.read();
    assert_eq!(bench.pass().len(), 1);
    assert_eq!(bench.level(), 10);
}

#[test]
fn a_change_is_booked_once_though_its_old_slot_was_removed_while_it_was_under_way() {
    let mut bench = created();
    let _five = bench.ask(5);
    bench.pass();
    bench.elapsed += u64::try_from(Slot::PRUNED_AFTER).unwrap_or(0) + 1_000;
    bench.adjust(vec![(rpm(), 3_000)]);
    let first = bench.write();
    bench.state.lost(bench.moment().elapsed);
    bench.elapsed += 100;
    bench.elsewhere(1);
    let slots = |item: &Attributes| {
        item.iter()
            .filter(|(attr, _)| matches!(attr, Attr::Slot(_)))
            .count()
    };
    assert_eq!(bench.item.as_ref().map(slots), Some(1), "ours is gone");
    // The copy that is sent again is refused: the bucket was refilled meanwhile.
    let completions = bench.answer(&first);
    assert!(completions.is_empty(), "{completions:?}");
    let second = bench.write();
    let completions = bench.answer(&second);
    assert!(
        matches!(completions[..], [Completion::Booked(_)]),
        "{completions:?}"
    );
    assert!(!bench.arrive(&first), "and its first copy comes too late");
}
