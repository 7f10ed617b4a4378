#![allow(clippy::unwrap_used)]

use zae_limiter_schema::LimitName;

use super::*;

fn rpm() -> LimitName {
    "rpm".parse().unwrap()
}

fn join(queue: &Arc<WaitQueue>, arrival: u64, tokens: i128) -> Turn {
    queue
        .join(arrival, &smallvec::smallvec![(rpm(), tokens)])
        .unwrap()
}

/// Why it was woken, if it was.
fn woken(turn: &mut Turn) -> Option<Wakeup> {
    turn.waits.as_mut()?.try_recv().ok()
}

fn fits(most: i128) -> impl Fn(&Batch) -> bool {
    move |batch| batch.demand(&rpm()).debit <= most
}

#[test]
fn a_second_one_is_not_woken_while_the_first_is_awake() {
    let queue = Arc::new(WaitQueue::default());
    let (mut first, mut second) = (join(&queue, 1, 1), join(&queue, 2, 1));
    assert_eq!(woken(&mut first), Some(Wakeup::First));
    let mut third = join(&queue, 3, 1);
    assert_eq!((woken(&mut second), woken(&mut third)), (None, None));
    drop(first);
    assert_eq!(woken(&mut second), Some(Wakeup::First));
    assert_eq!(woken(&mut third), None);
    drop(second);
    assert_eq!(woken(&mut third), Some(Wakeup::First));
    drop(third);
    assert!(queue.is_empty());
}

#[test]
fn one_who_leaves_while_waiting_changes_nobody_s_turn() {
    let queue = Arc::new(WaitQueue::default());
    let (mut first, second, mut third) = (join(&queue, 1, 1), join(&queue, 2, 1), join(&queue, 3, 1));
    drop(second);
    assert_eq!(woken(&mut third), None);
    assert_eq!(woken(&mut first), Some(Wakeup::First));
    drop(first);
    assert_eq!(woken(&mut third), Some(Wakeup::First));
}

#[test]
fn an_earlier_arrival_goes_ahead_of_all_but_the_one_that_has_its_turn() {
    let queue = Arc::new(WaitQueue::default());
    let (mut five, mut seven) = (join(&queue, 5, 1), join(&queue, 7, 1));
    let mut three = join(&queue, 3, 1);
    assert_eq!(woken(&mut five), Some(Wakeup::First));
    assert_eq!(woken(&mut three), None);
    five.waits = None;
    five.step_back_unless_first();
    assert_eq!(woken(&mut three), Some(Wakeup::First));
    drop(three);
    assert_eq!(woken(&mut five), Some(Wakeup::First));
    assert_eq!(woken(&mut seven), None);
}

#[test]
fn waiters_that_fit_are_woken_in_order_and_nobody_overtakes() {
    let queue = Arc::new(WaitQueue::default());
    let mut first = join(&queue, 1, 4);
    let mut others: Vec<Turn> = [3, 2, 5, 1]
        .into_iter()
        .zip(2..)
        .map(|(tokens, arrival)| join(&queue, arrival, tokens))
        .collect();
    assert_eq!(woken(&mut first), Some(Wakeup::First));
    first.wake_next(fits(10));
    let wakeups: Vec<_> = others.iter_mut().map(woken).collect();
    // The one token of the last would fit; the five of the one before it do not.
    assert_eq!(
        wakeups,
        [Some(Wakeup::Combined), Some(Wakeup::Combined), None, None]
    );
    drop(first);
    let mut left = others.split_off(2);
    assert_eq!(woken(&mut left[0]), None, "two are still asking");
    drop(others);
    assert_eq!(woken(&mut left[0]), Some(Wakeup::First));
    assert_eq!(woken(&mut left[1]), None);
}

#[test]
fn one_that_was_woken_in_vain_waits_at_its_old_place() {
    let queue = Arc::new(WaitQueue::default());
    let mut turns: Vec<Turn> = (1..=3).map(|arrival| join(&queue, arrival, 1)).collect();
    turns[0].wake_next(fits(3));
    for turn in &mut turns {
        assert!(woken(turn).is_some());
        turn.waits = None;
        turn.step_back_unless_first();
    }
    assert!(!turns[0].is_waiting(), "the first keeps its turn");
    assert!(turns[1].is_waiting() && turns[2].is_waiting());
    turns.remove(0);
    assert_eq!(woken(&mut turns[0]), Some(Wakeup::First));
    assert_eq!(woken(&mut turns[1]), None);
}

#[test]
fn only_the_first_wakes_others() {
    let queue = Arc::new(WaitQueue::default());
    let (_first, second, mut third) = (join(&queue, 1, 1), join(&queue, 2, 1), join(&queue, 3, 1));
    second.wake_next(fits(100));
    assert_eq!(woken(&mut third), None);
}

#[test]
fn what_those_ahead_want_is_added_up() {
    let queue = Arc::new(WaitQueue::default());
    let turns: Vec<Turn> = (1..=4).map(|arrival| join(&queue, arrival, 10)).collect();
    assert_eq!(turns[3].ahead().demand(&rpm()).debit, 30);
    assert_eq!(turns[0].ahead().demand(&rpm()).debit, 0);
}

#[test]
fn a_full_queue_takes_nobody_in() {
    let queue = Arc::new(WaitQueue::default());
    let limit = MAX_WAITING as u64;
    let turns: Vec<Turn> = (0..limit).map(|arrival| join(&queue, arrival, 1)).collect();
    assert!(queue.join(limit, &smallvec::smallvec![(rpm(), 1)]).is_none());
    drop(turns);
    assert!(queue.join(limit, &smallvec::smallvec![(rpm(), 1)]).is_some());
}
