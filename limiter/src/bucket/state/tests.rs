//! What a state decides, step by step, over an item that the tests keep.

#![allow(clippy::panic)]

mod bench;
mod idle;

use std::time::Duration;

use proptest::prelude::*;
use smallvec::smallvec;
use zae_limiter_schema::bucket::{Decoded, SlotBefore};

use self::bench::{Bench, rpm};
use super::super::request::Outcome;
use super::{Completion, Step};
use crate::Error;
use crate::status::LimitStatus;

fn refused(completions: &[Completion]) -> usize {
    let is_refusal = |one: &&Completion| matches!(one, Completion::Answer(_, Outcome::Refused(_)));
    completions.iter().filter(is_refusal).count()
}

/// The statuses of the only call that was refused.
fn refusal(completions: Vec<Completion>) -> Option<Vec<LimitStatus>> {
    completions.into_iter().find_map(|completion| match completion {
        Completion::Answer(_, Outcome::Refused(statuses)) => Some(statuses),
        _ => None,
    })
}

proptest! {
    /// Memory decides without the queue exactly what it would decide with it, whatever is left and however long ago.
    #[test]
    fn a_call_is_refused_at_once_as_the_queue_would(
        taken in 1_i128..=10,
        asked in 1_i128..=12,
        pause in 0_u64..20_000,
        memory in 0_u64..20_000,
    ) {
        let mut bench = Bench::remembering(Duration::from_millis(memory));
        bench.read();
        let _first = bench.ask(taken);
        bench.pass();
        bench.elapsed += pause;
        let (moment, amounts) = (bench.moment(), smallvec![(rpm(), asked * 1000)]);
        let at_once = bench.state.refuse_at_once(&amounts, &bench.config, moment.now, moment.elapsed);
        let _second = bench.ask(asked);
        prop_assert_eq!(at_once, refusal(bench.next().1));
    }
}

#[test]
fn nothing_is_refused_at_once_while_something_is_queued_or_in_doubt() {
    let mut bench = created();
    let amounts = smallvec![(rpm(), 10_000)];
    let refuses = |bench: &Bench| {
        let moment = bench.moment();
        let refused = bench
            .state
            .refuse_at_once(&amounts, &bench.config, moment.now, moment.elapsed);
        refused.is_some()
    };
    assert!(refuses(&bench));
    bench.give_back(1);
    assert!(!refuses(&bench), "a refund is queued");
    let _lost = bench.write();
    assert!(!refuses(&bench), "it is under way");
    bench.lose();
    assert!(!refuses(&bench), "it is in doubt");
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
    bench.write();
    bench.lose();
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
fn a_write_in_doubt_is_looked_for_once_until_somebody_asks() {
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
fn a_failure_that_is_not_transient_keeps_changes_in_the_queue() {
    let mut bench = created();
    let _five = bench.ask(5);
    bench.pass();
    let mut booked = bench.adjust_and_wait(smallvec::smallvec![(rpm(), -2_000)]);
    let _call = bench.ask(1);
    bench.write();
    let completions = bench.postpone();
    assert!(
        matches!(
            completions[..],
            [
                Completion::Answer(_, Outcome::Failed(_)),
                Completion::Postponed(_, _)
            ]
        ),
        "{completions:?}"
    );
    drop(completions);
    assert!(booked.try_recv().is_err());
    assert!(matches!(bench.pass()[..], [Completion::Booked(_)]));
    assert_eq!(bench.level(), 6);
}

#[test]
fn what_is_given_up_while_its_write_is_under_way_is_in_doubt() {
    let mut bench = created();
    let _five = bench.ask(5);
    bench.pass();
    bench.give_back(5);
    let write = bench.write();
    let given_up = bench.fail();
    let [Completion::Unwritten(request, _)] = &given_up[..] else {
        panic!("{given_up:?}")
    };
    assert!(request.in_doubt);
    assert!(matches!(bench.next().0, Step::Idle));
    assert!(bench.arrive(&write), "it may happen yet");
}

#[test]
fn a_creation_in_doubt_is_found_when_somebody_asks_and_not_before() {
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
    bench.state.saw(known);
    assert!(
        bench.state.knows_nothing(),
        "the write in doubt is looked for by a read of its own"
    );
    let _next = bench.ask(1);
    bench.read();
    assert_eq!(bench.pass().len(), 2);
    assert_eq!(bench.level(), 9);
}

/// Others write until our number is in no slot any more.
fn crowd(bench: &mut Bench) {
    let ours = |bench: &Bench| match bench.decoded() {
        Some(Decoded::Bucket(image)) => image
            .slots
            .values()
            .any(|number| bench.state.client.wrote(*number)),
        _ => false,
    };
    let mut tag = 1_000;
    while ours(bench) {
        bench.elapsed += 1;
        bench.elsewhere_by(tag, 0);
        tag += 1;
        assert!(tag < 2_000, "never taken over");
    }
}

#[test]
fn a_credit_whose_slot_was_taken_over_is_reported_once_and_never_sent_again() {
    let mut bench = created();
    let _five = bench.ask(5);
    bench.pass();
    bench.give_back(3);
    let first = bench.write();
    assert!(bench.arrive(&first));
    bench.state.lost(bench.moment().elapsed);
    crowd(&mut bench);
    let completions = bench.answer(&first);
    assert!(
        matches!(&completions[..], [Completion::Unwritten(request, _)] if request.in_doubt),
        "{completions:?}"
    );
    assert!(matches!(bench.next().0, Step::Idle));
}

#[test]
fn a_debit_whose_slot_was_taken_over_is_asked_again() {
    let mut bench = created();
    let _five = bench.ask(5);
    let first = bench.write();
    bench.state.lost(bench.moment().elapsed);
    crowd(&mut bench);
    assert!(bench.answer(&first).is_empty());
    let second = bench.write();
    assert_eq!(second.slot.before, SlotBefore::Any, "all slots are in use");
    assert_eq!(bench.answer(&second).len(), 1);
    assert!(!bench.arrive(&first), "the slot it needs is gone");
    assert_eq!(bench.level(), 4);
}

#[test]
fn on_anothers_slot_a_lost_credit_is_looked_for_once_and_not_sent_again() {
    for landed in [true, false] {
        let mut bench = created();
        let _five = bench.ask(5);
        bench.pass();
        crowd(&mut bench);
        bench.give_back(1);
        let refused = bench.write();
        assert!(bench.answer(&refused).is_empty(), "our slot is gone");
        let write = bench.write();
        assert_eq!(write.slot.before, SlotBefore::Any);
        if landed {
            assert!(bench.arrive(&write));
        }
        assert!(!bench.state.lost(bench.moment().elapsed), "it is not sent again");
        bench
            .state
            .give_up_current(&Error::invalid("test", "", "no answer"));
        assert!(matches!(bench.next().0, Step::Read), "it is looked for");
        let completions = bench.read();
        match &completions[..] {
            [Completion::Booked(_)] => assert!(landed),
            [Completion::Unwritten(request, _)] => assert!(!landed && request.in_doubt),
            other => panic!("{other:?}"),
        }
        assert!(matches!(bench.next().0, Step::Idle), "once");
    }
}

#[test]
fn sixteen_clients_have_a_slot_each_and_the_item_has_no_more() {
    let mut bench = created();
    for tag in 0..100 {
        bench.elapsed += 1;
        bench.elsewhere_by(1_000 + tag, 0);
        let Some(Decoded::Bucket(image)) = bench.decoded() else {
            panic!("no bucket")
        };
        let expected = usize::try_from(tag + 2).unwrap_or(16).min(16);
        assert_eq!(image.slots.len(), expected);
    }
}

#[test]
fn a_call_that_does_not_fit_beside_earlier_ones_waits_for_their_answer_once() {
    let mut bench = created();
    let (_first, _second, _third) = (bench.ask(5), bench.ask(5), bench.ask(5));
    let write = bench.write();
    assert_eq!(write.batch.acquires, 1, "the others wait");
    assert_eq!(bench.answer(&write).len(), 1);
    // By now there is enough again for either of them.
    bench.elapsed += 30_000;
    let (step, answered) = bench.next();
    assert!(matches!(step, Step::Send(_)), "{step:?}");
    let [Completion::Answer(_, Outcome::Refused(statuses))] = &answered[..] else {
        panic!("{answered:?}")
    };
    assert!(statuses.iter().any(|status| status.exceeded), "{statuses:?}");
}

#[test]
fn a_throttled_write_goes_into_the_next_one_together_with_later_calls() {
    let mut bench = created();
    let _two = bench.ask(2);
    bench.write();
    let _three = bench.ask(3);
    let error = Error::invalid("test", "", "throttled");
    let late = bench.state.throttled(bench.moment().elapsed, &error);
    assert!(late.is_some_and(|late| late.is_empty()));
    let write = bench.write();
    assert_eq!(
        (write.batch.acquires, write.batch.demand(&rpm()).debit),
        (2, 5_000)
    );
    assert_eq!(bench.answer(&write).len(), 2);
}

#[test]
fn a_throttled_write_of_which_a_copy_was_lost_is_sent_again_as_it_is() {
    let mut bench = created();
    let _two = bench.ask(2);
    bench.write();
    bench.state.lost(bench.moment().elapsed);
    let error = Error::invalid("test", "", "throttled");
    assert!(bench.state.throttled(bench.moment().elapsed, &error).is_none());
}

#[test]
fn calls_that_have_waited_too_long_on_a_throttled_item_are_told() {
    let mut bench = created();
    let _two = bench.ask(2);
    bench.give_back(1);
    bench.write();
    bench.elapsed += 900;
    let error = Error::invalid("test", "", "throttled");
    let late = bench.state.throttled(bench.moment().elapsed, &error);
    assert!(late.is_some_and(|late| matches!(late[..], [Completion::Answer(_, Outcome::Failed(_))])));
    assert!(bench.state.has_changes(), "changes stay");
}

#[test]
fn while_writes_wait_calls_that_are_hopeless_are_refused_at_once() {
    let mut bench = created();
    let _nine = bench.ask(9);
    bench.pass();
    let _one = bench.ask(1);
    let _ten = bench.ask(10);
    let refused = bench.state.refuse_hopeless(bench.moment());
    assert_eq!(refused.len(), 2, "{refused:?}");
    let _next = bench.ask(1);
    bench.give_back(5);
    assert!(
        bench.state.refuse_hopeless(bench.moment()).is_empty(),
        "the next write makes room"
    );
    assert_eq!(bench.pass().len(), 2);
}

/// A shared bucket whose refill time was guessed wrong, so that the next guess is preceded by a read.
fn guessed_wrong() -> Bench {
    let mut bench = created();
    let _rest = bench.ask(9);
    bench.pass();
    bench.elapsed += 6_000;
    bench.elsewhere(1);
    bench.elapsed += 6_000;
    // Nothing is left without refill, and the refill time on the item is another by now.
    bench.elsewhere(1);
    let _wrong = bench.ask(1);
    let write = bench.write();
    assert!(!bench.arrive(&write));
    let (decoded, moment) = (bench.decoded(), bench.moment());
    bench.state.refused(decoded, moment);
    assert_eq!(refused(&bench.next().1), 1);
    bench.elapsed += 6_000;
    bench
}

#[test]
fn a_read_that_only_spares_a_guess_refuses_nobody_if_it_fails() {
    let mut bench = guessed_wrong();
    bench.state.guess.wrong_at = Some(bench.moment().elapsed);
    let _call = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Read));
    assert!(bench.state.goes_on_unread());
    let answered = bench.pass();
    assert_eq!((answered.len(), refused(&answered)), (1, 0));
    assert!(!bench.state.goes_on_unread(), "once");
}

#[test]
fn a_read_that_decides_is_not_done_without() {
    let mut bench = Bench::new();
    let _call = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Read));
    assert!(!bench.state.goes_on_unread(), "nothing is known of the bucket");
}

#[test]
fn what_was_read_before_a_rest_does_not_stand_for_a_read_after_it() {
    let mut bench = guessed_wrong();
    bench.read();
    assert!(matches!(bench.next().0, Step::Idle));
    bench.elapsed += 100;
    bench.state.guess.wrong_at = Some(bench.moment().elapsed);
    let _call = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Read));
}
