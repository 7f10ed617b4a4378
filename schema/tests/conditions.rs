//! Names of attributes, and what conditions and actions do to them.

use crate::common::name;
use zae_limiter_schema::bucket::{
    Action, Attr, Attributes, Condition, Field, LegacyClient, Refused, Scalar, SlotIndex, Statement,
};
use zae_limiter_schema::{AttributeValue, Item};

fn item(numbers: &[(Attr, i128)]) -> Attributes {
    let mut item = Attributes::default();
    for (attr, number) in numbers {
        item.insert(attr.clone(), Scalar::Number(*number));
    }
    item
}

fn holds(item: &Attributes, condition: Condition) -> bool {
    let statement = Statement {
        conditions: vec![condition],
        actions: vec![],
    };
    item.apply(&statement) != Err(Refused::Condition)
}

#[test]
fn every_name_is_read_as_it_is_written() {
    let mut attrs = vec![
        ("o_0", Attr::Slot(SlotIndex::FIRST)),
        ("o_f", Attr::Slot(SlotIndex::new(15))),
        ("o_a1Z9", Attr::LegacySlot(LegacyClient::parse("a1Z9").unwrap())),
        ("o_g", Attr::Other("o_g".into())),
        ("b_rpm", Attr::Other("b_rpm".into())),
        ("b_rpm_xx", Attr::Other("b_rpm_xx".into())),
        ("b_per_day_tk", Attr::Limit(name("per_day"), Field::Tokens)),
        ("novelty", Attr::Other("novelty".into())),
    ];
    attrs.extend(Attr::FIXED);
    let fields = ["tk", "cp", "bx", "ra", "rp", "tc", "rr"].map(|suffix| format!("b_rpm_{suffix}"));
    for (text, field) in fields.iter().zip(Field::ALL) {
        attrs.push((text, Attr::Limit(name("rpm"), field)));
    }
    for (text, attr) in attrs {
        assert_eq!(Attr::parse(text), attr);
        assert_eq!(attr.to_string(), text);
    }
}

#[test]
fn the_key_is_no_attribute() {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let item = Item::from(std::collections::HashMap::from([
        ("PK".to_owned(), text("ENTITY#user-1")),
        ("SK".to_owned(), text("#BUCKET#gpt-4")),
        ("resource".to_owned(), text("gpt-4")),
    ]));
    let attributes = Attributes::from_item(&item);
    let found: Vec<_> = attributes.iter().map(|(attr, _)| attr.clone()).collect();
    assert_eq!(found, [Attr::Resource]);
}

#[test]
fn comparisons_hold_up_to_their_bound() {
    let item = item(&[(Attr::Events, 5)]);
    for (bound, at_least, at_most, above) in [
        (4, true, false, true),
        (5, true, true, false),
        (6, false, true, false),
    ] {
        assert_eq!(holds(&item, Condition::AtLeast(Attr::Events, bound)), at_least);
        assert_eq!(holds(&item, Condition::AtMost(Attr::Events, bound)), at_most);
        assert_eq!(holds(&item, Condition::Above(Attr::Events, bound)), above);
    }
    // What is missing is neither more nor less.
    for condition in [Condition::AtLeast, Condition::AtMost, Condition::Above] {
        assert!(!holds(&item, condition(Attr::ExpiresAt, 0)));
    }
}

#[test]
fn equality_and_absence() {
    let item = item(&[(Attr::Events, 5)]);
    let (five, six) = (Scalar::Number(5), Scalar::Number(6));
    assert!(holds(&item, Condition::Is(Attr::Events, five.clone())));
    assert!(!holds(&item, Condition::Is(Attr::Events, six.clone())));
    assert!(!holds(&item, Condition::IsNot(Attr::Events, five.clone())));
    assert!(holds(&item, Condition::IsNot(Attr::Events, six)));
    assert!(!holds(&item, Condition::Missing(Attr::Events)));
    assert!(holds(&item, Condition::Missing(Attr::ExpiresAt)));
    let either = |first, second| Condition::AnyOf(vec![vec![first], vec![second]]);
    let (yes, no) = (
        Condition::Is(Attr::Events, five),
        Condition::Missing(Attr::Events),
    );
    assert!(holds(&item, either(yes.clone(), no.clone())));
    assert!(holds(&item, either(no.clone(), yes.clone())));
    assert!(!holds(&item, either(no.clone(), no.clone())));
    assert!(!holds(&item, Condition::AnyOf(vec![vec![yes, no]])));
}

#[test]
fn actions_set_remove_and_add_to_what_was_there_before() {
    let before = item(&[(Attr::Events, 5), (Attr::ExpiresAt, 9)]);
    let statement = Statement {
        conditions: vec![],
        actions: vec![
            Action::Add(Attr::Events, 2),
            Action::Add(Attr::Refusals, -3),
            Action::Remove(Attr::ExpiresAt),
            Action::Set(Attr::RefilledAt, Scalar::Number(1)),
        ],
    };
    let after = item(&[(Attr::Events, 7), (Attr::Refusals, -3), (Attr::RefilledAt, 1)]);
    assert_eq!(before.apply(&statement), Ok(after));
    let mut text = before;
    text.insert(Attr::Events, Scalar::Text("5".into()));
    assert_eq!(text.apply(&statement), Err(Refused::NotANumber));
}
