#![allow(clippy::unwrap_used)]

use zae_limiter_schema::LimitName;

use super::*;

fn rpm() -> LimitName {
    "rpm".parse().unwrap()
}

fn join(line: &Arc<WaitQueue>, arrival: u64, tokens: i128) -> Turn {
    line.join(arrival, &vec![(rpm(), tokens)]).unwrap()
}

/// Why it was called, if it was.
fn called(turn: &mut Turn) -> Option<Call> {
    turn.waits.as_mut()?.try_recv().ok()
}

fn fits(most: i128) -> impl Fn(&Batch) -> bool {
    move |batch| batch.demand(&rpm()).debit <= most
}

#[test]
fn a_second_one_is_not_called_while_the_first_has_its_turn() {
    let line = Arc::new(WaitQueue::default());
    let (mut first, mut second) = (join(&line, 1, 1), join(&line, 2, 1));
    assert_eq!(called(&mut first), Some(Call::Turn));
    let mut third = join(&line, 3, 1);
    assert_eq!((called(&mut second), called(&mut third)), (None, None));
    drop(first);
    assert_eq!(called(&mut second), Some(Call::Turn));
    assert_eq!(called(&mut third), None);
    drop(second);
    assert_eq!(called(&mut third), Some(Call::Turn));
    drop(third);
    assert!(line.is_empty());
}

#[test]
fn one_who_leaves_while_waiting_changes_nobody_s_turn() {
    let line = Arc::new(WaitQueue::default());
    let (mut first, second, mut third) = (join(&line, 1, 1), join(&line, 2, 1), join(&line, 3, 1));
    drop(second);
    assert_eq!(called(&mut third), None);
    assert_eq!(called(&mut first), Some(Call::Turn));
    drop(first);
    assert_eq!(called(&mut third), Some(Call::Turn));
}

#[test]
fn an_earlier_arrival_goes_ahead_of_all_but_the_one_that_has_its_turn() {
    let line = Arc::new(WaitQueue::default());
    let (mut five, mut seven) = (join(&line, 5, 1), join(&line, 7, 1));
    let mut three = join(&line, 3, 1);
    assert_eq!(called(&mut five), Some(Call::Turn));
    assert_eq!(called(&mut three), None);
    five.waits = None;
    five.step_back_unless_first();
    assert_eq!(called(&mut three), Some(Call::Turn));
    drop(three);
    assert_eq!(called(&mut five), Some(Call::Turn));
    assert_eq!(called(&mut seven), None);
}

#[test]
fn those_who_fit_are_called_along_in_order_and_nobody_passes_by() {
    let line = Arc::new(WaitQueue::default());
    let mut first = join(&line, 1, 4);
    let mut others: Vec<Turn> = [3, 2, 5, 1]
        .into_iter()
        .zip(2..)
        .map(|(tokens, arrival)| join(&line, arrival, tokens))
        .collect();
    assert_eq!(called(&mut first), Some(Call::Turn));
    first.call_along(fits(10));
    let calls: Vec<_> = others.iter_mut().map(called).collect();
    // The one token of the last would fit; the five of the one before it do not.
    assert_eq!(calls, [Some(Call::Along), Some(Call::Along), None, None]);
    drop(first);
    let mut left = others.split_off(2);
    assert_eq!(called(&mut left[0]), None, "two are still asking");
    drop(others);
    assert_eq!(called(&mut left[0]), Some(Call::Turn));
    assert_eq!(called(&mut left[1]), None);
}

#[test]
fn one_that_was_called_along_in_vain_waits_at_its_old_place() {
    let line = Arc::new(WaitQueue::default());
    let mut turns: Vec<Turn> = (1..=3).map(|arrival| join(&line, arrival, 1)).collect();
    turns[0].call_along(fits(3));
    for turn in &mut turns {
        assert!(called(turn).is_some());
        turn.waits = None;
        turn.step_back_unless_first();
    }
    assert!(!turns[0].is_waiting(), "the first keeps its turn");
    assert!(turns[1].is_waiting() && turns[2].is_waiting());
    turns.remove(0);
    assert_eq!(called(&mut turns[0]), Some(Call::Turn));
    assert_eq!(called(&mut turns[1]), None);
}

#[test]
fn only_the_first_calls_others_along() {
    let line = Arc::new(WaitQueue::default());
    let (_first, second, mut third) = (join(&line, 1, 1), join(&line, 2, 1), join(&line, 3, 1));
    second.call_along(fits(100));
    assert_eq!(called(&mut third), None);
}

#[test]
fn what_those_ahead_want_is_added_up() {
    let line = Arc::new(WaitQueue::default());
    let turns: Vec<Turn> = (1..=4).map(|arrival| join(&line, arrival, 10)).collect();
    assert_eq!(turns[3].ahead().demand(&rpm()).debit, 30);
    assert_eq!(turns[0].ahead().demand(&rpm()).debit, 0);
}

#[test]
fn a_full_queue_takes_nobody_in() {
    let line = Arc::new(WaitQueue::default());
    let limit = MAX_WAITING as u64;
    let turns: Vec<Turn> = (0..limit).map(|arrival| join(&line, arrival, 1)).collect();
    assert!(line.join(limit, &vec![(rpm(), 1)]).is_none());
    drop(turns);
    assert!(line.join(limit, &vec![(rpm(), 1)]).is_some());
}
