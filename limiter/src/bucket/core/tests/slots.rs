//! A bucket that more clients write than it has slots.

use zae_limiter_schema::bucket::{ClientTag, SlotBefore};

use super::super::slots::Ownership;
use super::super::{Completion, Step};
use super::bench::{Bench, rpm};
use super::created;
use crate::Error;

/// Others write until our number is in no slot any more.
fn crowd(bench: &mut Bench) {
    let ours = |bench: &Bench| {
        let image = bench.bucket();
        image
            .slots
            .values()
            .any(|number| bench.core.client.wrote(*number))
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
    bench.core.lost();
    crowd(&mut bench);
    let completions = bench.respond(&first);
    assert!(
        matches!(&completions[..], [Completion::Unwritten(request, _)] if request.maybe_written),
        "{completions:?}"
    );
    assert!(matches!(bench.next().0, Step::Idle));
}

#[test]
fn a_debit_whose_slot_was_taken_over_is_asked_again() {
    let mut bench = created();
    let _five = bench.ask(5);
    let first = bench.write();
    bench.core.lost();
    crowd(&mut bench);
    assert!(bench.respond(&first).is_empty());
    let second = bench.write();
    assert_eq!(second.slot.before, SlotBefore::Any, "all slots are in use");
    assert_eq!(bench.respond(&second).len(), 1);
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
        assert!(bench.respond(&refused).is_empty(), "our slot is gone");
        let write = bench.write();
        assert_eq!(write.slot.before, SlotBefore::Any);
        if landed {
            assert!(bench.arrive(&write));
        }
        assert!(!bench.core.lost(), "it is not sent again");
        bench
            .core
            .give_up_current(&Error::invalid("test", "", "no response"));
        assert!(matches!(bench.next().0, Step::Read), "it is looked for");
        let completions = bench.read();
        match &completions[..] {
            [Completion::Written(_)] => assert!(landed),
            [Completion::Unwritten(request, _)] => assert!(!landed && request.maybe_written),
            other => panic!("{other:?}"),
        }
        assert!(matches!(bench.next().0, Step::Idle), "once");
    }
}

#[test]
fn an_unconfirmed_creation_is_found_though_its_slot_was_taken_over() {
    let mut bench = Bench::new();
    bench.read();
    let _call = bench.ask(4);
    let creation = bench.write();
    assert!(bench.arrive(&creation));
    assert_eq!(bench.lose().len(), 1, "its caller is told");
    crowd(&mut bench);
    let _next = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Read));
    bench.read();
    assert_eq!(bench.pass().len(), 2, "the call, and what nobody has goes back");
    let image = bench.bucket();
    assert_eq!(image.limits[&rpm()].consumed, 1_000, "the last call alone");
}

#[test]
fn a_copy_of_this_process_is_no_longer_taken_for_it() {
    let mut bench = created();
    let tag = ClientTag::from_random(1);
    assert_eq!(bench.core.client, tag);
    let _five = bench.ask(5);
    bench.pass();
    bench.elapsed += 1;
    // It has our tag, and takes our number for its own.
    bench.elsewhere_by(1, 1);
    bench.elsewhere_by(1, 1);
    bench.give_back(3);
    let first = bench.write();
    let completions = bench.respond(&first);
    assert!(
        matches!(&completions[..], [Completion::Unwritten(request, _)] if request.maybe_written),
        "the copy may give it back too: {completions:?}"
    );
    assert_ne!(bench.core.client, tag);
    let _one = bench.ask(1);
    let second = bench.write();
    assert_eq!(second.slot.before, SlotBefore::Empty, "a slot of its own");
    assert_eq!(bench.respond(&second).len(), 1);
    assert_eq!(bench.level(), 10 - 1 - 5 - 2 - 1);
    assert!(matches!(bench.next().0, Step::Idle));
}

/// Everything that it has to do, each write with its response.
fn finish(bench: &mut Bench) -> Vec<Completion> {
    let mut completions = Vec::new();
    for _ in 0..10 {
        let (step, decided) = bench.next();
        completions.extend(decided);
        match step {
            Step::Send(write) => completions.extend(bench.respond(&std::sync::Arc::unwrap_or_clone(write))),
            Step::Read => completions.extend(bench.read()),
            Step::Idle => return completions,
            step => panic!("{step:?}"),
        }
    }
    panic!("it never ends")
}

#[test]
fn a_lost_debit_is_not_taken_for_that_of_a_copy_in_the_same_millisecond() {
    let mut bench = created();
    bench.outlast(1_000);
    let mut copy = bench.copy();
    let _three = bench.ask(3);
    bench.write();
    assert_eq!(bench.lose().len(), 1, "it never arrives, and the caller is told");
    let _one = copy.ask(1);
    copy.pass();
    let level = copy.level();
    bench.item = copy.item;
    finish(&mut bench);
    assert_eq!(
        bench.level(),
        level,
        "nothing was taken, and nothing is given back"
    );
}

#[test]
fn what_two_copies_find_out_about_is_given_back_once() {
    let mut bench = created();
    let _five = bench.ask(5);
    let debit = bench.write();
    assert!(bench.arrive(&debit));
    assert_eq!(bench.lose().len(), 1, "its caller is told");
    let mut copy = bench.copy();
    let mut calls = Vec::new();
    for process in [&mut bench, &mut copy] {
        calls.push(process.ask(1));
        let write = process.write();
        assert!(process.respond(&write).is_empty(), "the slot shows the debit");
    }
    finish(&mut bench);
    assert_eq!(bench.level(), 8, "five are back");
    copy.item.clone_from(&bench.item);
    let completions = finish(&mut copy);
    assert!(
        completions
            .iter()
            .any(|one| matches!(one, Completion::Unwritten(_, _))),
        "{completions:?}"
    );
    assert_eq!(copy.level(), 7);
}

#[test]
fn sixteen_clients_have_a_slot_each_and_the_item_has_no_more() {
    let mut bench = created();
    for tag in 0..100 {
        bench.elapsed += 1;
        bench.elsewhere_by(1_000 + tag, 0);
        let image = bench.bucket();
        let expected = usize::try_from(tag + 2).unwrap_or(16).min(16);
        assert_eq!(image.slots.len(), expected);
    }
}

/// Sixteen other processes write the bucket, and we have seen all of them.
fn see_a_crowd(bench: &mut Bench) {
    for tag in 0..20 {
        bench.outlast(1);
        bench.elsewhere_by(1_000 + tag, 0);
        bench.read();
    }
}

#[test]
fn on_a_crowded_bucket_a_process_gives_up_its_slot_for_a_minute() {
    let mut bench = created();
    see_a_crowd(&mut bench);
    let _call = bench.ask(1);
    let write = bench.write();
    assert_eq!(write.slot.before, SlotBefore::Any, "{write:?}");
    bench.respond(&write);
    bench.outlast(60_000);
    let _call = bench.ask(1);
    let write = bench.write();
    assert!(matches!(write.slot.before, SlotBefore::Own(_)), "{write:?}");
}

/// How many of the writes of one call a second, over this many seconds, compare and set our slot.
fn owned_writes(bench: &mut Bench, seconds: u64) -> u64 {
    let mut owned = 0;
    for _ in 0..seconds {
        bench.outlast(1_000);
        let _call = bench.ask(0);
        loop {
            match bench.next() {
                (Step::Send(write), _) => {
                    let write = std::sync::Arc::unwrap_or_clone(write);
                    if !bench.respond(&write).is_empty() {
                        owned += u64::from(matches!(write.slot.before, SlotBefore::Own(_)));
                        break;
                    }
                }
                (Step::Read, _) => drop(bench.read()),
                (step, _) => panic!("{step:?}"),
            }
        }
    }
    owned
}

#[test]
fn after_another_process_has_created_the_bucket_again_writes_own_their_slot() {
    let mut bench = created();
    bench.outlast(5_000);
    bench.item = None;
    bench.elsewhere(1);
    assert!(owned_writes(&mut bench, 600) >= 598);
    assert_eq!(bench.bucket().slots.len(), 2);
}

#[test]
fn a_process_that_is_alone_after_a_crowd_owns_its_slot_within_two_minutes() {
    let mut bench = created();
    see_a_crowd(&mut bench);
    owned_writes(&mut bench, 120);
    assert_eq!(owned_writes(&mut bench, 600), 600);
}

#[test]
fn a_slot_that_somebody_else_took_first_is_not_claimed_again() {
    let mut bench = created();
    bench.outlast(1);
    bench.elsewhere(1);
    bench.read();
    let image = bench.bucket();
    let taken = image
        .slots
        .iter()
        .find(|(_, number)| !bench.core.client.wrote(**number));
    let Some((taken, _)) = taken else {
        panic!("{image:?}")
    };
    bench.core.ownership = Ownership::Claiming(*taken);
    let _call = bench.ask(1);
    let write = bench.write();
    assert!(bench.arrive(&write), "{write:?}");
}

/// A credit is sent and lost, and does not arrive.
fn lose_credit(bench: &mut Bench) {
    bench.give_back(1);
    bench.write();
    bench.lose();
}

#[test]
fn a_credit_that_shows_nowhere_is_sent_again() {
    let mut bench = created();
    lose_credit(&mut bench);
    assert!(bench.read().is_empty(), "our last number is still in its slot");
    let completions = bench.pass();
    assert!(
        matches!(completions[..], [Completion::Written(_)]),
        "{completions:?}"
    );
    assert_eq!(bench.level(), 10);
}

#[test]
fn a_slot_that_this_process_has_left_does_not_make_its_writes_untraceable() {
    let mut bench = created();
    see_a_crowd(&mut bench);
    let _call = bench.ask(1);
    bench.pass();
    bench.outlast(60_000);
    lose_credit(&mut bench);
    assert!(bench.read().is_empty());
    assert!(matches!(bench.pass()[..], [Completion::Written(_)]));
    assert_eq!(
        bench.bucket().limits[&rpm()].consumed,
        1_000,
        "two calls and a refund"
    );
}

#[test]
fn a_credit_on_a_slot_that_somebody_else_took_first_did_not_happen() {
    let mut bench = created();
    bench.outlast(1);
    let before = bench.item.clone();
    bench.elsewhere(1);
    let image = bench.bucket();
    let other = |number: &i128| !bench.core.client.wrote(*number);
    let Some((taken, _)) = image.slots.iter().find(|(_, number)| other(number)) else {
        panic!("{image:?}")
    };
    let after = std::mem::replace(&mut bench.item, before);
    bench.core.ownership = Ownership::Claiming(*taken);
    lose_credit(&mut bench);
    bench.item = after;
    assert!(bench.read().is_empty(), "the client in the slot was first");
    assert!(matches!(bench.pass()[..], [Completion::Written(_)]));
    assert_eq!(bench.level(), 9);
}

#[test]
fn a_bucket_is_crowded_only_if_all_slots_were_written_lately() {
    let mut full = created();
    crowd(&mut full);
    for (idle, crowded) in [(0, true), (24 * 60 * 60_000, false)] {
        let mut late = Bench::new();
        (late.item, late.elapsed) = (full.item.clone(), full.elapsed + idle);
        late.read();
        let _call = late.ask(0);
        assert_eq!(late.write().slot.before, SlotBefore::Any);
        let calendar = late.now().calendar;
        assert_eq!(late.core.contention.is_crowded(calendar), crowded);
    }
}
