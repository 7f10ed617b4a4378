//! What a state decides, step by step, over an item that the tests keep.

#![allow(clippy::panic)]

mod at_once;
mod bench;
mod failures;
mod idle;
mod in_doubt;
mod refill_guess;
mod refusals;
mod slots;

use self::bench::Bench;
use super::Completion;
use crate::bucket::request::Outcome;

/// A bucket of ten of which one is taken.
fn created() -> Bench {
    let mut bench = Bench::new();
    bench.read();
    let _first = bench.ask(1);
    assert_eq!(bench.pass().len(), 1);
    bench
}

fn refused(completions: &[Completion]) -> usize {
    let is_refusal = |one: &&Completion| matches!(one, Completion::Answer(_, Outcome::Refused(_)));
    completions.iter().filter(is_refusal).count()
}
