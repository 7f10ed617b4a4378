//! The numbers that say who wrote last.

use zae_limiter_schema::bucket::{ClientTag, LegacyClient, Slot, SlotIndex};

#[test]
fn a_number_is_the_sequence_number_five_random_digits_and_the_ten_digits_of_the_client() {
    let client = ClientTag::from_random(1_234_567_890);
    assert_eq!(client.to_string(), "1234567890");
    let number = client.number(1_700_000_000_000, 7_700_042);
    assert_eq!(number, 1_700_000_000_000_000_421_234_567_890);
    assert_eq!(ClientTag::of(number), client);
    assert_eq!(Slot::written_at(number), 1_700_000_000_000);
}

#[test]
fn a_client_knows_its_own_numbers_and_nobody_elses() {
    let (one, other) = (ClientTag::from_random(7), ClientTag::from_random(8));
    for sequence in [0, 1, 1_700_000_000_000] {
        assert!(one.wrote(one.number(sequence, 99_999)));
        assert!(!one.wrote(other.number(sequence, 99_999)));
    }
    let (earlier, later) = (other.number(1, 99_999), one.number(2, 0));
    assert!(earlier < later, "the sequence number comes first");
}

#[test]
fn a_tag_is_the_last_ten_digits_of_a_random_number() {
    let tag = |random| ClientTag::from_random(random).to_string();
    assert_eq!(tag(0), "0000000000");
    assert_eq!(tag(9_999_999_999), "9999999999");
    assert_eq!(tag(10_000_000_000), "0000000000");
    assert_eq!(tag(u128::MAX), "1768211455");
}

#[test]
fn the_sixteen_slots_are_the_hexadecimal_digits() {
    let digits: String = SlotIndex::all().map(|slot| slot.to_string()).collect();
    assert_eq!(digits, "0123456789abcdef");
    for slot in SlotIndex::all() {
        assert_eq!(SlotIndex::parse(&slot.to_string()), Some(slot));
    }
    for text in ["", "g", "A", "10", "/", ":", "`"] {
        assert_eq!(SlotIndex::parse(text), None, "{text:?}");
    }
    assert_eq!(SlotIndex::new(16), SlotIndex::FIRST);
    assert_eq!(SlotIndex::new(17), SlotIndex::new(1));
}

#[test]
fn a_slot_of_an_earlier_release_has_four_letters_or_digits() {
    assert_eq!(LegacyClient::parse("a1Z9").unwrap().to_string(), "a1Z9");
    for text in ["", "abc", "abcde", "ab-1", "ab_1", "äb1"] {
        assert_eq!(LegacyClient::parse(text), None, "{text:?}");
    }
}
