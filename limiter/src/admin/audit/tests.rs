use super::*;

#[test]
fn ids_sort_in_the_order_of_the_changes_whatever_the_clocks_say() {
    let mut newest = None;
    let mut ids = vec![];
    for (now, random) in [
        (1_000, u128::MAX),
        (1_000, 0),
        (1_001, 7),
        (999, 5),
        (999, 5),
        (1_002, 0),
    ] {
        let id = id_after(newest, Timestamp::from_millis(now), random);
        newest = Some(id);
        ids.push(id.to_string());
    }
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
}

#[test]
fn an_id_from_the_far_future_does_not_stop_further_events() {
    let now = Timestamp::from_millis(1_000);
    let damaged = Ulid::parse("7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    assert_eq!(id_after(damaged, now, 3), Ulid::new(now, 3));
    let ahead = Ulid::new(Timestamp::from_millis(1_000 + MAX_AHEAD_MILLIS), 0);
    assert_eq!(Some(id_after(Some(ahead), now, 3)), ahead.successor());
}
