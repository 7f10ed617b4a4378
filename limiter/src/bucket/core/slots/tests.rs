use std::collections::{BTreeMap, BTreeSet};

use zae_limiter_schema::bucket::{SlotBefore, SlotIndex};

use super::choose;

#[test]
fn a_newcomer_takes_an_empty_slot_or_one_of_the_four_oldest() {
    // The later half of the slots was written first.
    let mut slots: BTreeMap<_, _> = SlotIndex::all()
        .enumerate()
        .map(|(place, index)| (index, (place as i128 + 8) % 16))
        .collect();
    let drawn = |slots: &BTreeMap<_, _>| -> Vec<_> { (0..100).map(|random| choose(slots, random)).collect() };
    let oldest: BTreeSet<_> = (8..12).map(SlotIndex::new).collect();
    let taken = drawn(&slots);
    assert!(taken.iter().all(|(_, before)| *before == SlotBefore::Any));
    assert_eq!(
        taken.into_iter().map(|(index, _)| index).collect::<BTreeSet<_>>(),
        oldest,
        "each of them is drawn at some time"
    );
    slots.remove(&SlotIndex::new(3));
    let empty = (SlotIndex::new(3), SlotBefore::Empty);
    assert!(drawn(&slots).into_iter().all(|taken| taken == empty));
}
