//! The refill time of a shared bucket, guessed from an old image.

use super::super::Step;
use super::bench::Bench;
use super::{created, refused};

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
    let (decoded, now) = (bench.decoded(), bench.now());
    bench.core.refused(decoded, now);
    assert_eq!(refused(&bench.next().1), 1);
    bench.elapsed += 6_000;
    bench
}

#[test]
fn a_read_that_only_spares_a_guess_refuses_nobody_if_it_fails() {
    let mut bench = guessed_wrong();
    bench.core.guess.wrong_at = Some(bench.now().elapsed);
    let _call = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Read));
    assert!(bench.core.goes_on_unread());
    let decided = bench.pass();
    assert_eq!((decided.len(), refused(&decided)), (1, 0));
    assert!(!bench.core.goes_on_unread(), "once");
}

#[test]
fn a_read_that_decides_is_not_done_without() {
    let mut bench = Bench::new();
    let _call = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Read));
    assert!(!bench.core.goes_on_unread(), "nothing is known of the bucket");
}

#[test]
fn what_was_read_before_a_rest_does_not_stand_for_a_read_after_it() {
    let mut bench = guessed_wrong();
    bench.read();
    assert!(matches!(bench.next().0, Step::Idle));
    bench.elapsed += 100;
    bench.core.guess.wrong_at = Some(bench.now().elapsed);
    let _call = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Read));
}
