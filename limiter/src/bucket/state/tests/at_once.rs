//! What is refused without a queue.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use smallvec::smallvec;

use super::super::Completion;
use super::bench::{Bench, rpm};
use super::created;
use crate::bucket::request::Outcome;
use crate::status::{LimitStatus, Refusal};

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
        let at_once = refuse_at_once(&mut bench, asked);
        let _second = bench.ask(asked);
        prop_assert_eq!(at_once.map(|refusal| refusal.statuses().to_vec()), refusal(bench.next().1));
    }

    /// Whatever was refused before, a refusal is the same as without a memory of it.
    #[test]
    fn a_refusal_does_not_depend_on_the_last_one(
        calls in proptest::collection::vec((1_i128..=12, 0_u64..3, any::<bool>()), 1..20),
    ) {
        let mut bench = created();
        for (asked, pause, adjusts) in calls {
            bench.elapsed += pause;
            if adjusts {
                bench.adjust(smallvec![(rpm(), 1000)]);
                bench.pass();
            }
            let at_once = refuse_at_once(&mut bench, asked);
            bench.state.last_refusal = None;
            prop_assert_eq!(at_once, refuse_at_once(&mut bench, asked));
        }
    }
}

fn refuse_at_once(bench: &mut Bench, asked: i128) -> Option<Arc<Refusal>> {
    let (moment, amounts) = (bench.moment(), smallvec![(rpm(), asked * 1000)]);
    bench
        .state
        .refuse_at_once(&amounts, &bench.config, moment.now, moment.elapsed)
}

#[test]
fn the_same_call_is_refused_by_the_same_answer_until_the_next_millisecond() {
    let is_same = |one: &Option<Arc<Refusal>>, other: &Option<Arc<Refusal>>| matches!((one, other), (Some(one), Some(other)) if Arc::ptr_eq(one, other));
    let mut bench = created();
    let first = refuse_at_once(&mut bench, 10);
    let second = refuse_at_once(&mut bench, 10);
    assert!(is_same(&first, &second));
    let more = refuse_at_once(&mut bench, 11);
    assert!(more.is_some() && !is_same(&first, &more), "another amount");
    bench.elapsed += 1;
    let later = refuse_at_once(&mut bench, 11);
    assert!(later.is_some() && !is_same(&more, &later), "more has come back");
}

#[test]
fn nothing_is_refused_at_once_while_something_is_queued_or_in_doubt() {
    let mut bench = created();
    let refuses = |bench: &mut Bench| refuse_at_once(bench, 10).is_some();
    assert!(refuses(&mut bench));
    bench.give_back(1);
    assert!(!refuses(&mut bench), "a refund is queued");
    let _lost = bench.write();
    assert!(!refuses(&mut bench), "it is under way");
    bench.lose();
    assert!(!refuses(&mut bench), "it is in doubt");
}
