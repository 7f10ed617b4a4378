#![allow(clippy::unwrap_used)]

use super::*;

const CAPACITY: Capacity = Capacity { idle: 10, max: 15 };

fn key(number: usize) -> BucketKey {
    BucketKey {
        entity: format!("user-{number}").parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    }
}

fn full(capacity: Capacity) -> BoundedMap<usize> {
    let mut map = BoundedMap::new(capacity);
    for number in 0..capacity.idle {
        assert!(map.add(key(number), Arc::new(number), |_| true));
    }
    map
}

#[test]
fn the_one_that_was_not_used_for_longest_is_forgotten() {
    let mut map = full(CAPACITY);
    assert!(map.get(&key(0)).is_some());
    assert!(map.add(key(10), Arc::new(10), |_| true));
    assert!(map.get(&key(1)).is_none(), "the oldest use");
    assert!(map.get(&key(0)).is_some(), "the oldest, but used since");
    assert_eq!(map.len(), 10);
}

#[test]
fn one_that_is_held_or_has_work_to_do_is_never_forgotten() {
    let mut map = full(CAPACITY);
    let held = map.get(&key(0)).unwrap();
    for number in 10..14 {
        assert!(map.add(key(number), Arc::new(number), |number| *number != 1));
    }
    for kept in [0, 1] {
        assert!(map.get(&key(kept)).is_some(), "{kept}");
    }
    assert_eq!(*held, 0);
    assert_eq!(map.len(), 10);
}

#[test]
fn when_none_is_idle_there_is_an_end() {
    let mut map = full(CAPACITY);
    for number in 10..15 {
        assert!(map.add(key(number), Arc::new(number), |_| false));
    }
    assert!(!map.add(key(15), Arc::new(15), |_| false));
    assert_eq!(map.len(), 15);
    assert!(map.add(key(15), Arc::new(15), |_| true), "until some are");
    assert_eq!(map.len(), 10);
}

#[test]
fn looking_for_idle_ones_is_rare() {
    let capacity = Capacity {
        idle: 1_000,
        max: 5_000,
    };
    let mut map = full(capacity);
    let looks = std::cell::Cell::new(0);
    for number in 1_000..2_000 {
        map.add(key(number), Arc::new(number), |_| {
            looks.set(looks.get() + 1);
            false
        });
    }
    assert!(looks.get() <= 10 * 2_000, "{}", looks.get());
}
