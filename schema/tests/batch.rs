//! Sums of calls, and what follows from them.

use crate::common::name;
use zae_limiter_schema::bucket::{Batch, Demand};

const CREDIT: Demand = demand(7, 0, 0, 0);
const ADJUST: Demand = demand(0, 5, 0, 0);
const DEBIT: Demand = demand(0, 0, 3, 0);
const RECOUNT: Demand = demand(0, 0, 0, -2);

const fn demand(credit: i128, adjust: i128, debit: i128, recount: i128) -> Demand {
    Demand {
        credit,
        adjust,
        debit,
        recount,
        top_up: 0,
    }
}

fn batch(demand: Demand) -> Batch {
    let mut batch = Batch::default();
    batch.add(&name("rpm"), demand);
    batch
}

#[test]
fn each_part_of_a_demand_is_something_to_do() {
    assert!(Demand::default().is_nothing());
    for one in [CREDIT, ADJUST, DEBIT, RECOUNT] {
        assert!(!one.is_nothing(), "{one:?}");
        assert!(!batch(one).is_nothing(), "{one:?}");
    }
}

#[test]
fn everything_but_a_recount_moves_tokens() {
    for one in [CREDIT, ADJUST, DEBIT] {
        assert!(one.moves_tokens(), "{one:?}");
    }
    assert!(!RECOUNT.moves_tokens());
    assert!(!Demand::default().moves_tokens());
}

#[test]
fn debits_and_adjustments_are_consumed_and_credits_are_not() {
    for (one, consumed) in [(CREDIT, -7), (ADJUST, 5), (DEBIT, 3), (RECOUNT, -2)] {
        assert_eq!(one.consumption(), consumed, "{one:?}");
    }
    assert_eq!(demand(7, 5, 3, -2).consumption(), -1);
}

#[test]
fn sums_are_by_limit_and_part() {
    let mut sum = batch(demand(1, 2, 3, 4));
    sum.acquires = 2;
    let mut other = batch(demand(10, 20, 30, 40));
    other.add(&name("tpm"), DEBIT);
    other.acquires = 3;
    sum.merge(&other);
    assert_eq!(sum.demand(&name("rpm")), demand(11, 22, 33, 44));
    assert_eq!(sum.demand(&name("tpm")), DEBIT);
    assert_eq!(sum.demand(&name("other")), Demand::default());
    assert_eq!(sum.acquires, 5);
}

#[test]
fn an_acquire_that_takes_nothing_is_still_counted() {
    assert!(Batch::default().is_nothing());
    assert!(batch(Demand::default()).is_nothing());
    let one = Batch {
        acquires: 1,
        ..Batch::default()
    };
    assert!(!one.is_nothing());
}

#[test]
fn credits_and_lower_counts_give_back() {
    for (one, gives_back) in [
        (CREDIT, true),
        (RECOUNT, true),
        (ADJUST, false),
        (DEBIT, false),
        (demand(0, 0, 0, 2), false),
        (Demand::default(), false),
    ] {
        assert_eq!(batch(one).gives_back(), gives_back, "{one:?}");
    }
}
