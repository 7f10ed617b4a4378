//! What a state decides, step by step, over an item that the tests keep.

#![allow(clippy::panic)]

mod absent;
pub(super) mod bench;
mod copy;
mod failures;
mod refill_guess;
mod refusals;
mod rewrites;
mod set_back;
mod sharing;
mod slots;
mod unconfirmed;

use self::bench::Bench;
use super::Completion;
use super::request::Outcome;

/// A bucket of ten of which one is taken.
fn created() -> Bench {
    let mut bench = Bench::new();
    bench.read();
    let _first = bench.ask(1);
    assert_eq!(bench.pass().len(), 1);
    bench
}

fn refused(completions: &[Completion]) -> usize {
    let is_refusal = |one: &&Completion| matches!(one, Completion::Decided(_, Outcome::Refused(_)));
    completions.iter().filter(is_refusal).count()
}

#[test]
fn a_call_is_no_change_and_a_correction_is_one() {
    let mut bench = created();
    let _call = bench.ask(1);
    assert!(!bench.core.has_changes(), "a call that waits");
    bench.write();
    assert!(!bench.core.has_changes(), "a call that is being written");
    bench.give_back(1);
    assert!(bench.core.has_changes(), "a correction that waits");
}
