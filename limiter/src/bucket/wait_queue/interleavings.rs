//! The queue under every order of its callers that a random scheduler finds. Every operation holds the lock from beginning
//! to end, so that what can go wrong is their order.
#![allow(clippy::unwrap_used)]

use shuttle::future::{block_on, spawn, yield_now};
use shuttle::sync::Arc as SharedArc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use zae_limiter_schema::LimitName;

use super::*;

const SCHEDULES: usize = 2_000;

/// What a caller does when it is woken.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    /// Takes its tokens and goes.
    Served,
    /// Is refused once, and waits again if somebody is ahead of it.
    RefusedOnce,
    /// Leaves before it is woken, as one whose time is over does.
    Leaves,
}

async fn caller(queue: Arc<WaitQueue>, arrival: u64, manner: Manner, turns: SharedArc<AtomicUsize>) {
    let rpm: LimitName = "rpm".parse().unwrap();
    yield_now().await;
    let mut turn = queue
        .join(arrival, &smallvec::smallvec![(rpm.clone(), 1)])
        .unwrap();
    yield_now().await;
    if manner == Manner::Leaves {
        return;
    }
    let mut refused = manner == Manner::RefusedOnce;
    loop {
        let is_first = turn.woken().await == Wakeup::First;
        if is_first {
            assert_eq!(turns.fetch_add(1, Ordering::SeqCst), 0, "two have their turn");
        }
        turn.wake_next(|batch| batch.demand(&rpm).debit <= 2);
        yield_now().await;
        if is_first {
            turns.fetch_sub(1, Ordering::SeqCst);
        }
        if !std::mem::take(&mut refused) {
            return;
        }
        turn.step_back_unless_first();
    }
}

/// All callers end, whatever the order: a lost wakeup would be a deadlock, which the scheduler reports.
#[test]
fn one_has_its_turn_at_a_time_and_everybody_is_woken() {
    let manners = [
        Manner::Served,
        Manner::RefusedOnce,
        Manner::Leaves,
        Manner::RefusedOnce,
        Manner::Served,
    ];
    shuttle::check_random_with_seed(
        move || {
            block_on(async move {
                let (queue, turns) = (
                    Arc::new(WaitQueue::default()),
                    SharedArc::new(AtomicUsize::new(0)),
                );
                let callers: Vec<_> = (0..)
                    .zip(manners)
                    .map(|(arrival, manner)| spawn(caller(queue.clone(), arrival, manner, turns.clone())))
                    .collect();
                for caller in callers {
                    caller.await.unwrap();
                }
                assert!(queue.is_empty());
                let places = queue.places();
                assert_eq!(places.woken, 0, "nobody is left awake");
            });
        },
        2_026,
        SCHEDULES,
    );
}
