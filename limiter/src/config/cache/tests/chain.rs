//! Trees are read with as few calls as what is known about them allows.

use super::bench::{Bench, Fake, bench};

/// The chain user → team → org → root.
fn tree() -> Bench {
    let bench = bench(Fake::default(), 60, 100);
    for (child, parent) in [
        ("user", "team"),
        ("user-2", "team"),
        ("team", "org"),
        ("org", "root"),
    ] {
        let mut state = bench.backend.state();
        state.parents.insert(child.to_owned(), parent.to_owned());
    }
    bench
}

const LEVELS: [&str; 4] = ["user", "team", "org", "root"];

#[tokio::test]
async fn a_tree_of_four_is_read_in_one_call_once_it_is_known() {
    let bench = tree();
    assert_eq!(bench.chain("user").await.unwrap(), LEVELS);
    assert_eq!(bench.loads(), 4, "each record tells the next");
    bench.after_ttl();
    bench.backend.requested();
    assert_eq!(bench.chain("user").await.unwrap(), LEVELS);
    assert_eq!(bench.loads(), 5);
    assert_eq!(bench.backend.requested().len(), 4 * 4 + 2);
    assert_eq!(bench.chain("user").await.unwrap(), LEVELS);
    assert_eq!(bench.loads(), 5);
}

#[tokio::test]
async fn a_new_child_of_a_known_parent_costs_one_call() {
    let bench = tree();
    bench.chain("user").await.unwrap();
    assert_eq!(
        bench.chain("user-2").await.unwrap(),
        ["user-2", "team", "org", "root"]
    );
    assert_eq!(bench.loads(), 5);
}

#[tokio::test]
async fn parents_that_have_expired_are_read_together_after_the_child_told_the_first() {
    let bench = tree();
    bench.chain("user").await.unwrap();
    bench.after_ttl();
    bench.chain("user-2").await.unwrap();
    assert_eq!(bench.loads(), 6);
}

#[tokio::test]
async fn the_record_decides_and_not_what_was_known() {
    let bench = tree();
    bench.chain("user").await.unwrap();
    let set = |child: &str, parent: &str| {
        let mut state = bench.backend.state();
        state.parents.insert(child.to_owned(), parent.to_owned());
    };
    set("user", "club");
    bench.after_ttl();
    assert_eq!(bench.chain("user").await.unwrap(), ["user", "club"]);
}

#[tokio::test]
async fn a_circle_is_refused_and_read_no_further() {
    let bench = tree();
    {
        let mut state = bench.backend.state();
        state.parents.insert("root".to_owned(), "user".to_owned());
    }
    for loads in [4, 5] {
        let refused = bench.chain("user").await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "entity user cannot have root above it: user is itself above root"
        );
        assert_eq!(
            bench.loads(),
            loads,
            "one by one, and together once they are known"
        );
        bench.after_ttl();
    }
}
