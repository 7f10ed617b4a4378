#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn the_entry_that_was_not_used_for_longest_makes_room() {
    let mut map = LruMap::bounded(2);
    assert_eq!(map.insert("a", 1), None);
    assert_eq!(map.insert("b", 2), None);
    assert_eq!(map.touch(&"a"), Some(&mut 1));
    assert_eq!(map.insert("c", 3), Some(("b", 2)));
    assert_eq!(map.get(&"a"), Some(&1));
    assert_eq!(map.insert("d", 4), Some(("a", 1)), "looking is no use");
}

#[test]
fn there_is_always_room_for_one() {
    let mut map = LruMap::bounded(0);
    assert_eq!(map.insert("a", 1), None);
    assert_eq!(map.insert("b", 2), Some(("a", 1)));
    assert_eq!(map.len(), 1);
}

#[derive(Debug, Clone)]
enum Use {
    Insert(u8, u32),
    Touch(u8),
    Change(u8, u32),
    Remove(u8),
    RemoveEven,
}

fn uses() -> impl Strategy<Value = Vec<Use>> {
    let key = 0..12_u8;
    let one = prop_oneof![
        4 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Use::Insert(key, value)),
        2 => key.clone().prop_map(Use::Touch),
        1 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Use::Change(key, value)),
        2 => key.prop_map(Use::Remove),
        1 => Just(Use::RemoveEven),
    ];
    vec(one, 0..200)
}

proptest! {
    /// A vector in the order of use does the same, slowly.
    #[test]
    fn it_is_a_list_in_the_order_of_use(uses in uses(), max in 1..10_usize) {
        let (mut map, mut model) = (LruMap::bounded(max), Vec::<(u8, u32)>::new());
        for one in uses {
            let place = |model: &[(u8, u32)], key| model.iter().position(|(own, _)| *own == key);
            match one {
                Use::Insert(key, value) => {
                    let mut evicted = None;
                    if let Some(place) = place(&model, key) {
                        model.remove(place);
                    } else if model.len() == max {
                        evicted = Some(model.remove(0));
                    }
                    model.push((key, value));
                    prop_assert_eq!(map.insert(key, value), evicted);
                }
                Use::Touch(key) => {
                    let found = place(&model, key).map(|place| model.remove(place));
                    model.extend(found);
                    prop_assert_eq!(map.touch(&key).copied(), found.map(|(_, value)| value));
                }
                Use::Change(key, value) => {
                    let changed = map.get_mut(&key).map(|own| *own = value);
                    let found = place(&model, key);
                    prop_assert_eq!(changed.is_some(), found.is_some());
                    if let Some(place) = found {
                        model[place].1 = value;
                    }
                }
                Use::Remove(key) => {
                    let removed = place(&model, key).map(|place| model.remove(place));
                    prop_assert_eq!(map.remove(&key), removed);
                }
                Use::RemoveEven => {
                    map.remove_where(|key| key % 2 == 0);
                    model.retain(|(key, _)| key % 2 != 0);
                }
            }
            let all: Vec<_> = map.iter().map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(&all, &model);
            prop_assert_eq!(map.len(), model.len());
            for (key, value) in &model {
                prop_assert_eq!(map.get(key), Some(value));
            }
        }
    }
}
