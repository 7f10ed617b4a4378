#![allow(clippy::unwrap_used, clippy::trivially_copy_pass_by_ref)]

use super::*;

const CAPACITY: Capacity = Capacity {
    whole: 8,
    unfoldable: 12,
    max: 16,
    folded: 20,
};

fn key(number: usize) -> BucketKey {
    BucketKey {
        entity: format!("user-{number}").parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    }
}

/// A map of numbers, each folded into the same number.
type Map = BoundedMap<usize, usize>;

fn foldable(number: &usize) -> Unused<usize> {
    Unused::Folded(*number)
}

/// Uses a bucket: the whole one, or one that is made. True if something was known about it.
fn used(map: &mut Map, number: usize, unused: impl Fn(&usize) -> Unused<usize>) -> Option<bool> {
    if map.get(&key(number), &unused).is_some() {
        return Some(true);
    }
    let mut known = false;
    let made = map.add(&key(number), unused, |_, folded| {
        known = folded.is_some();
        number
    });
    made.map(|_| known)
}

fn full() -> Map {
    let mut map = Map::new(CAPACITY);
    for number in 0..CAPACITY.whole {
        assert_eq!(used(&mut map, number, foldable), Some(false));
    }
    map
}

#[test]
fn the_one_that_was_not_used_for_longest_is_folded_and_comes_back() {
    let mut map = full();
    assert!(map.get(&key(0), |_| Unused::Busy).is_some());
    assert_eq!(used(&mut map, 8, foldable), Some(false));
    assert!(map.get(&key(1), |_| Unused::Busy).is_none(), "the oldest use");
    assert!(
        map.get(&key(0), |_| Unused::Busy).is_some(),
        "the oldest, but used since"
    );
    assert_eq!(map.len(), 9, "nothing is forgotten");
    assert_eq!(used(&mut map, 1, foldable), Some(true));
    assert_eq!(map.len(), 9);
}

#[test]
fn folded_ones_are_bounded_and_the_oldest_is_forgotten() {
    let mut map = Map::new(CAPACITY);
    for number in 0..100 {
        used(&mut map, number, foldable);
        assert!(map.len() <= CAPACITY.whole + CAPACITY.folded);
    }
    assert_eq!(used(&mut map, 0, foldable), Some(false));
    assert_eq!(used(&mut map, 99, foldable), Some(true));
    assert_eq!(used(&mut map, 80, foldable), Some(true));
}

#[test]
fn one_that_is_held_or_busy_stays_whole() {
    let mut map = full();
    let held = map.get(&key(0), |_| Unused::Busy).unwrap();
    let unused = |number: &usize| match number {
        1 => Unused::Busy,
        number => Unused::Folded(*number),
    };
    for number in 8..100 {
        assert!(used(&mut map, number, unused).is_some());
    }
    for kept in [0, 1] {
        assert!(map.get(&key(kept), |_| Unused::Busy).is_some(), "{kept}");
    }
    assert_eq!(*held, 0);
    assert!(map.all().len() <= CAPACITY.whole);
}

#[test]
fn one_with_nothing_to_keep_is_dropped() {
    let mut map = full();
    assert_eq!(used(&mut map, 8, |_| Unused::Blank), Some(false));
    assert_eq!(map.len(), CAPACITY.whole);
    assert_eq!(used(&mut map, 0, foldable), Some(false));
}

#[test]
fn those_that_cannot_be_folded_stay_until_there_are_too_many() {
    let mut map = full();
    for number in 8..CAPACITY.unfoldable {
        assert!(used(&mut map, number, |_| Unused::Unfoldable).is_some());
    }
    for number in 0..CAPACITY.unfoldable {
        assert!(map.get(&key(number), |_| Unused::Busy).is_some(), "{number}");
    }
    for number in CAPACITY.unfoldable..100 {
        assert!(used(&mut map, number, |_| Unused::Unfoldable).is_some());
        assert!(map.len() <= CAPACITY.unfoldable + 1);
    }
    assert!(map.get(&key(0), |_| Unused::Busy).is_none());
}

#[test]
fn when_all_are_busy_there_is_an_end() {
    let mut map = full();
    for number in 8..16 {
        assert!(used(&mut map, number, |_| Unused::Busy).is_some());
    }
    assert_eq!(used(&mut map, 16, |_| Unused::Busy), None);
    assert_eq!(map.len(), 16);
    assert!(used(&mut map, 16, foldable).is_some(), "until some are not");
}

#[test]
fn looking_for_unused_ones_is_rare() {
    let capacity = Capacity {
        whole: 1_000,
        max: 5_000,
        ..CAPACITY
    };
    let mut map = Map::new(capacity);
    let looks = std::cell::Cell::new(0);
    for number in 0..2_000 {
        used(&mut map, number, |_| {
            looks.set(looks.get() + 1);
            Unused::Busy
        });
    }
    assert!(looks.get() <= 10 * 2_000, "{}", looks.get());
}

#[test]
fn those_that_were_used_all_at_a_time_are_folded_though_no_other_comes() {
    let mut map = full();
    for number in CAPACITY.whole..CAPACITY.max {
        assert!(used(&mut map, number, |_| Unused::Busy).is_some());
    }
    assert_eq!(map.all().len(), CAPACITY.max);
    for _ in 0..=CAPACITY.max {
        assert_eq!(used(&mut map, 0, foldable), Some(true));
    }
    assert!(map.all().len() <= CAPACITY.whole, "{}", map.all().len());
    assert_eq!(map.len(), CAPACITY.max, "none is forgotten");
}
