//! What is refused without a queue.

use std::time::Duration;

use proptest::prelude::*;
use smallvec::smallvec;

use super::super::Completion;
use super::bench::{Bench, rpm};
use super::created;
use crate::bucket::request::Outcome;
use crate::status::LimitStatus;

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
