//! What may be a name, and what the refusal says.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use crate::common::config;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zae_limiter_schema::{ConfigLevel, EntityId, InvalidName, LimitName, Principal, Resource, StackName};

const RESERVED_RESOURCES: [&str; 2] = ["PK", "SK"];
const RESERVED_LIMITS: [&str; 11] = [
    "PK",
    "SK",
    "GSI2PK",
    "GSI2SK",
    "entity_id",
    "resource",
    "window",
    "window_start",
    "total_events",
    "ttl",
    "wcu",
];

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &[u8] = b"0123456789";

/// The rules once more, byte by byte: first bytes, further bytes besides letters and digits, longest length, refused
/// words.
fn oracle(text: &str, first: &[&[u8]], further: &[u8], longest: usize, refused: &[&str]) -> bool {
    let bytes = text.as_bytes();
    let in_any = |sets: &[&[u8]], byte: u8| sets.iter().any(|set| set.contains(&byte));
    !bytes.is_empty()
        && bytes.len() <= longest
        && in_any(first, bytes[0])
        && bytes
            .iter()
            .all(|byte| in_any(&[LETTERS, DIGITS, further], *byte))
        && !refused.contains(&text)
}

fn is_entity(text: &str) -> bool {
    oracle(text, &[LETTERS, DIGITS], b"_.-:@", 256, &[])
}

fn is_resource(text: &str) -> bool {
    oracle(text, &[LETTERS], b"_.-/", 64, &RESERVED_RESOURCES)
}

fn is_limit(text: &str) -> bool {
    oracle(text, &[LETTERS], b"_.-", 64, &RESERVED_LIMITS)
}

fn is_stack(text: &str) -> bool {
    text.len() >= 3 && oracle(text, &[LETTERS], b"-", 55, &[])
}

/// Arbitrary text, nearly a name, around the longest lengths, and words that are refused.
fn text() -> impl Strategy<Value = String> {
    let nearly = ("[a-zA-Z0-9][a-zA-Z0-9_.:@/-]{0,12}", any::<char>(), 0..14usize).prop_map(
        |(mut text, wrong, place)| {
            text.insert(place.min(text.len()), wrong);
            text
        },
    );
    let long = (
        prop_oneof![Just(55usize), Just(64), Just(256)],
        0..3usize,
        "[a-z]",
    )
        .prop_map(|(longest, more, letter)| letter.repeat(longest - 1 + more));
    prop_oneof![
        2 => ".{0,40}",
        3 => "[a-zA-Z0-9_.:@/#-]{0,12}",
        3 => nearly,
        2 => long,
        1 => proptest::sample::select(RESERVED_LIMITS.to_vec()).prop_map(str::to_owned),
    ]
}

fn round_trips<T>(name: &T) -> Result<(), TestCaseError>
where
    T: Display + Debug + FromStr<Err = InvalidName> + PartialEq + Serialize + DeserializeOwned,
{
    let text = name.to_string();
    prop_assert_eq!(&text.parse::<T>().unwrap(), name);
    let json = serde_json::to_string(name).unwrap();
    prop_assert_eq!(&json, &format!("\"{text}\""));
    prop_assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), name);
    Ok(())
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn a_name_is_accepted_if_and_only_if_every_rule_holds(text in text()) {
        prop_assert_eq!(EntityId::parse(&text).is_ok(), is_entity(&text), "entity id {:?}", text);
        prop_assert_eq!(Resource::parse(&text).is_ok(), is_resource(&text), "resource {:?}", text);
        prop_assert_eq!(LimitName::parse(&text).is_ok(), is_limit(&text), "limit name {:?}", text);
        prop_assert_eq!(StackName::parse(&text).is_ok(), is_stack(&text), "stack name {:?}", text);
        if !text.starts_with("arn:") {
            prop_assert_eq!(Principal::parse(&text).is_ok(), is_entity(&text), "principal {:?}", text);
        }
    }

    #[test]
    fn an_accepted_name_round_trips_through_text_and_json(text in text()) {
        if let Ok(name) = EntityId::parse(&text) { round_trips(&name)?; }
        if let Ok(name) = Resource::parse(&text) { round_trips(&name)?; }
        if let Ok(name) = LimitName::parse(&text) { round_trips(&name)?; }
        if let Ok(name) = StackName::parse(&text) { round_trips(&name)?; }
        if let Ok(name) = Principal::parse(&text) {
            prop_assert_eq!(name.to_string().parse::<Principal>().unwrap(), name);
        }
    }

    #[test]
    fn what_is_no_name_is_no_name_in_json_either(text in text()) {
        let json = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(serde_json::from_str::<EntityId>(&json).is_ok(), is_entity(&text));
        prop_assert_eq!(serde_json::from_str::<LimitName>(&json).is_ok(), is_limit(&text));
    }

    #[test]
    fn every_refusal_has_a_field_a_short_value_and_a_rule(text in text()) {
        for error in [
            EntityId::parse(&text).err(),
            Resource::parse(&text).err(),
            LimitName::parse(&text).err(),
            StackName::parse(&text).err(),
            Principal::parse(&text).err(),
        ].into_iter().flatten() {
            prop_assert!(!error.field().is_empty() && !error.rule().is_empty());
            prop_assert!(error.value().chars().count() <= 53, "{}", error.value());
            let message = error.to_string();
            prop_assert!(message.starts_with(error.field()) && message.ends_with(error.rule()), "{}", message);
        }
    }

    #[test]
    fn an_arn_is_a_principal_and_whatever_stands_in_it_never_panics(rest in ".{0,60}") {
        let text = format!("arn:{rest}");
        let fine = |c: char| c.is_ascii_alphanumeric() || "_.-:@/+=,*".contains(c);
        prop_assert_eq!(Principal::parse(&text).is_ok(), rest.chars().all(fine));
    }
}

#[test]
fn the_longest_name_is_accepted_and_one_character_more_is_not() {
    assert!(EntityId::parse("e".repeat(256)).is_ok());
    assert!(Resource::parse("r".repeat(64)).is_ok());
    assert!(LimitName::parse("l".repeat(64)).is_ok());
    assert!(StackName::parse("s".repeat(55)).is_ok());
    assert!(StackName::parse("abc").is_ok());
    for short in ["a", "ab"] {
        let error = StackName::parse(short).unwrap_err();
        assert!(error.to_string().contains("at least 3 characters"), "{error}");
    }
    assert!(Principal::parse("p".repeat(256)).is_ok());
    assert!(EntityId::parse("e".repeat(257)).is_err());
    assert!(Resource::parse("r".repeat(65)).is_err());
    assert!(LimitName::parse("l".repeat(65)).is_err());
    assert!(StackName::parse("s".repeat(56)).is_err());
    assert!(Principal::parse("p".repeat(257)).is_err());
    let arn = |length: usize| format!("arn:{}", "a".repeat(length - 4));
    assert!(Principal::parse(arn(2048)).is_ok());
    assert!(Principal::parse(arn(2049)).is_err());
}

#[test]
fn nothing_ends_in_a_newline_or_is_empty_or_contains_a_number_sign() {
    for wrong in [
        "", "name\n", "\nname", "na\nme", "name\r", "na#me", "#name", "name#", "na me", "nàme",
    ] {
        assert!(EntityId::parse(wrong).is_err(), "{wrong:?}");
        assert!(Resource::parse(wrong).is_err(), "{wrong:?}");
        assert!(LimitName::parse(wrong).is_err(), "{wrong:?}");
        assert!(StackName::parse(wrong).is_err(), "{wrong:?}");
        assert!(Principal::parse(wrong).is_err(), "{wrong:?}");
    }
    for wrong in ["arn:aws:iam::123456789012:role/ops\n", "arn:aws:iam::1:role/a#b"] {
        assert!(Principal::parse(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_first_character_of_an_id_may_be_a_digit_and_of_other_names_only_a_letter() {
    assert!(EntityId::parse("9lives").is_ok());
    assert!(Principal::parse("9lives").is_ok());
    assert!(Resource::parse("9lives").is_err());
    assert!(LimitName::parse("9lives").is_err());
    assert!(StackName::parse("9lives").is_err());
    for first in ["_", ".", "-", ":", "@", "/"] {
        let text = format!("{first}name");
        assert!(EntityId::parse(&text).is_err(), "{text}");
        assert!(Resource::parse(&text).is_err(), "{text}");
        assert!(LimitName::parse(&text).is_err(), "{text}");
        assert!(StackName::parse(&text).is_err(), "{text}");
    }
}

#[test]
fn names_that_are_attributes_of_the_table_are_refused_and_say_so() {
    for reserved in RESERVED_RESOURCES {
        let error = Resource::parse(reserved).unwrap_err();
        assert!(error.rule().contains("key attribute"), "{error}");
        assert!(
            Resource::from_stored(reserved).is_ok(),
            "the peer may have stored it"
        );
    }
    for reserved in RESERVED_LIMITS {
        let error = LimitName::parse(reserved).unwrap_err();
        assert!(error.rule().contains("usage snapshots"), "{error}");
        assert!(LimitName::from_stored(reserved).unwrap().is_reserved());
    }
    assert!(!LimitName::parse("rpm").unwrap().is_reserved());
    assert!(Resource::parse("ttl").is_ok() && Resource::parse("pk").is_ok());
    assert!(LimitName::parse("TTL").is_ok() && LimitName::parse("window_end").is_ok());
}

#[test]
fn the_default_level_is_no_resource() {
    let error = Resource::parse(ConfigLevel::DEFAULT_RESOURCE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "resource \"_default_\" is invalid: it must start with a letter"
    );
    assert!(Resource::from_stored("_default_").is_err());
}

#[test]
fn names_that_people_use_are_accepted() {
    for entity in ["user-1", "user@example.com", "org:team:42", "sk_live.abc", "0"] {
        assert!(EntityId::parse(entity).is_ok(), "{entity}");
    }
    for resource in ["gpt-4", "openai/gpt-4", "claude-3.5-sonnet", "api_v2"] {
        assert!(Resource::parse(resource).is_ok(), "{resource}");
    }
    for limit in ["rpm", "tpm", "tokens_per_day", "gpt-4.input"] {
        assert!(LimitName::parse(limit).is_ok(), "{limit}");
    }
}

#[test]
fn stack_names_are_those_that_cloudformation_and_dynamodb_accept() {
    for name in ["my-app", "limiter", "prod-rate-limits", "A-1"] {
        assert!(StackName::parse(name).is_ok(), "{name}");
    }
    let rule = |name: &str| StackName::parse(name).unwrap_err().to_string();
    let only = "it may hold letters, digits and hyphens (CloudFormation's rule) only, not";
    assert_eq!(
        rule("rate_limits"),
        format!("stack name \"rate_limits\" is invalid: {only} '_'")
    );
    assert_eq!(
        rule("my.app"),
        format!("stack name \"my.app\" is invalid: {only} '.'")
    );
    assert_eq!(
        rule("my app"),
        format!("stack name \"my app\" is invalid: {only} ' '")
    );
    assert_eq!(
        rule("123app"),
        "stack name \"123app\" is invalid: it must start with a letter"
    );
}

#[test]
fn an_error_names_field_value_and_rule_and_shortens_what_is_long() {
    let error = EntityId::parse(format!("{}!", "x".repeat(99))).unwrap_err();
    assert_eq!(
        (error.field(), error.rule()),
        (
            "entity id",
            "it may hold letters, digits and _ . - : @ only, not '!'"
        )
    );
    assert_eq!(error.value(), format!("{}...", "x".repeat(50)));
    let error = LimitName::parse("é".repeat(70)).unwrap_err();
    assert_eq!(error.rule(), "it must have at most 64 characters, this has 70");
    assert_eq!(error.value(), format!("{}...", "é".repeat(50)));
    let error = Principal::parse("ops team").unwrap_err();
    assert_eq!(error.field(), "principal");
    assert_eq!(Resource::parse("").unwrap_err().rule(), "it must not be empty");
}
