//! A bucket that is not there, or not any more.

use super::super::{Completion, LastSeen, Seen, Step};
use super::created;

#[test]
fn a_correction_of_a_bucket_that_is_gone_ends_without_another_look() {
    let mut bench = created();
    bench.give_back(1);
    bench.item = None;
    bench.read();
    let (step, completions) = bench.next();
    assert!(
        matches!(&completions[..], [Completion::Gone(request)] if !request.maybe_written),
        "{completions:?}"
    );
    assert!(!matches!(step, Step::Read), "{step:?}");
}

#[test]
fn a_correction_that_may_have_happened_before_the_bucket_was_deleted_is_unconfirmed() {
    let mut bench = created();
    bench.give_back(1);
    bench.write();
    bench.lose();
    bench.item = None;
    let completions = bench.read();
    assert!(
        matches!(&completions[..], [Completion::Gone(request)] if request.maybe_written),
        "{completions:?}"
    );
}

#[test]
fn a_call_creates_a_bucket_that_was_not_there_and_only_a_correction_looks_first() {
    let mut bench = created();
    bench.item = None;
    let now = bench.now();
    let unproven = LastSeen::Absent(Seen {
        at: now.elapsed,
        consistent: false,
    });
    bench.core.reread(&unproven, now);
    let _call = bench.ask(1);
    bench.give_back(1);
    assert!(matches!(bench.next().0, Step::Read));

    let mut bench = created();
    bench.item = None;
    bench.core.reread(&unproven, now);
    let _call = bench.ask(1);
    let write = bench.write();
    assert!(bench.arrive(&write));
}
