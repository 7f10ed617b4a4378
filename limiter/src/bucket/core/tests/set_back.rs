//! A last refill in the future, which a wrong clock has left.

use zae_limiter_schema::bucket::{Attr, Scalar};

use super::super::Step;
use super::bench::Bench;
use super::{created, refused};

/// An empty bucket whose last refill is that far in the future, seen by a client that knows the time.
fn ahead_by(millis: i64) -> Bench {
    let mut bench = created();
    let _rest = bench.ask(9);
    bench.pass();
    bench.latest_after = Some(1_000);
    let refilled_at = bench.now().calendar.plus_millis(millis).millis();
    if let Some(item) = &mut bench.item {
        item.insert(Attr::RefilledAt, Scalar::Number(i128::from(refilled_at)));
    }
    bench.read();
    bench
}

#[test]
fn an_empty_bucket_is_set_back_by_a_call_that_is_refused() {
    let mut bench = ahead_by(120_000);
    let _call = bench.ask(1);
    let (step, completions) = bench.next();
    let Step::Send(write) = step else {
        panic!("{step:?}");
    };
    assert!(write.sets_refill_back() && refused(&completions) == 1);
    bench.respond(&write);
    assert_eq!(bench.level(), 0, "nothing comes back by it");
    bench.elapsed += 7_000;
    assert_eq!(bench.level(), 1, "one token comes back every six seconds");
    let _call = bench.ask(1);
    let taken = bench.pass();
    assert_eq!((taken.len(), refused(&taken)), (1, 0));
}

#[test]
fn clocks_that_are_a_few_seconds_ahead_are_left_alone() {
    for ahead in [1, 2_000, 4_000, 6_000] {
        let mut bench = ahead_by(ahead);
        let _call = bench.ask(1);
        let (step, completions) = bench.next();
        assert!(
            matches!(step, Step::Again) && refused(&completions) == 1,
            "{ahead}"
        );
    }
}

#[test]
fn a_client_that_does_not_know_the_time_leaves_the_bucket_alone() {
    let mut bench = ahead_by(120_000);
    bench.latest_after = None;
    let _call = bench.ask(1);
    let (step, completions) = bench.next();
    assert!(matches!(step, Step::Again) && refused(&completions) == 1);
}

#[test]
fn a_bucket_that_is_ahead_again_is_set_back_ten_minutes_later() {
    let mut bench = ahead_by(120_000);
    let _call = bench.ask(1);
    bench.pass();
    for (minutes, sets_back) in [(0, false), (9, false), (2, true)] {
        bench.elapsed += minutes * 60_000;
        let refilled_at = bench.now().calendar.plus_millis(120_000).millis();
        if let Some(item) = &mut bench.item {
            item.insert(Attr::RefilledAt, Scalar::Number(i128::from(refilled_at)));
        }
        bench.read();
        let _call = bench.ask(1);
        let (step, _) = bench.next();
        assert_eq!(matches!(step, Step::Send(_)), sets_back, "{step:?}");
    }
}
