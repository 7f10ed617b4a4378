//! What a process takes for a shared bucket, and when it guesses a refill.

use zae_limiter_schema::bucket::{Batch, Demand, Evaluation, Sharing};

use super::super::LastSeen;
use super::super::combine::needs_refill;
use super::bench::{Bench, rpm};
use super::created;

fn sharing(bench: &Bench) -> Sharing {
    match &bench.core.known {
        LastSeen::Live(image, seen) => bench.core.sharing(image, *seen, bench.now()),
        known => panic!("{known:?}"),
    }
}

#[test]
fn a_bucket_is_shared_for_ten_seconds_after_others_wrote_it() {
    let mut bench = created();
    assert_eq!(sharing(&bench), Sharing::Alone);
    bench.outlast(1_000);
    bench.elsewhere(1);
    bench.read();
    assert_eq!(sharing(&bench), Sharing::Shared);
    bench.outlast(20);
    assert_eq!(sharing(&bench), Sharing::Shared);
    bench.outlast(1);
    assert_eq!(sharing(&bench), Sharing::SharedAndStale);
    // Seen again, which says that nobody has written it since.
    bench.outlast(9_000);
    bench.read();
    assert_eq!(sharing(&bench), Sharing::Shared);
    bench.outlast(1_000);
    bench.read();
    assert_eq!(sharing(&bench), Sharing::Alone);
}

#[test]
fn a_bucket_is_shared_for_ten_seconds_after_a_write_was_refused() {
    let mut bench = created();
    bench.core.contention.refused_at = Some(bench.now().elapsed);
    assert_eq!(sharing(&bench), Sharing::Shared);
    bench.outlast(10_000);
    bench.read();
    assert_eq!(sharing(&bench), Sharing::Shared);
    bench.outlast(1);
    bench.read();
    assert_eq!(sharing(&bench), Sharing::Alone);
}

#[test]
fn a_refill_is_needed_where_tokens_and_corrections_do_not_cover_the_debit() {
    let bench = created();
    let image = bench.bucket();
    let evaluation = Evaluation::live(&image, &bench.config, bench.now().calendar);
    let needed = |credit: i128, adjust: i128, debit: i128| {
        let mut batch = Batch::default();
        let demand = Demand {
            credit: credit * 1_000,
            adjust: adjust * 1_000,
            debit: debit * 1_000,
            ..Demand::default()
        };
        batch.add(&rpm(), demand);
        needs_refill(&evaluation, &batch)
    };
    // The item has nine tokens.
    assert!(!needed(0, 0, 9) && needed(0, 0, 10));
    assert!(!needed(1, 0, 10) && needed(1, 0, 11));
    assert!(!needed(0, 2, 7) && needed(0, 2, 8));
    assert!(!needed(0, 20, 0), "what is no call needs none");
}
