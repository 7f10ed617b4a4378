//! Levels with limits of every kind, and levels that this version must not read.

use zae_limiter_schema::{
    AttributeValue, ConfigLevel, ConfigRecord, Item, Limit, LimitSet, OnUnavailable, Resource,
};

use crate::records::examples::{number, text};

fn level() -> ConfigLevel {
    ConfigLevel::Resource(Resource::parse("gpt-4").unwrap())
}

fn record(limits: &[&str]) -> ConfigRecord {
    let limits = limits.iter().map(|text| text.parse::<Limit>().unwrap());
    ConfigRecord::new(level(), LimitSet::new(limits).unwrap())
}

fn all_kinds() -> ConfigRecord {
    record(&[
        "rpm:100:150",
        "spend:500 per month in Europe/Berlin",
        "parallel:8 at once for 10min",
    ])
}

fn names(item: &Item) -> Vec<&str> {
    let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// The attribute and the reason of the error after an attribute was set.
fn error_with(attribute: &str, value: AttributeValue) -> (String, String) {
    let mut item = all_kinds().to_item();
    item.inner_mut().insert(attribute.to_owned(), value);
    let error = ConfigRecord::from_item(&item).unwrap_err();
    (error.attribute, error.reason)
}

#[test]
fn a_level_with_every_kind_of_limit_as_it_stands_in_the_table() {
    let item = all_kinds().to_item();
    assert_eq!(
        item.get("lq_spend"),
        Some(&text("500 per month in Europe/Berlin"))
    );
    assert_eq!(item.get("lc_parallel"), Some(&text("8 at once for 10min")));
    assert_eq!(item.get("l_rpm_bx"), Some(&number(150)));
    assert_eq!(item.get("limits_format"), Some(&number(2)));
    assert_eq!(item.get("limits_version"), Some(&text("0.1.0")));
    assert_eq!(ConfigRecord::from_item(&item).unwrap(), all_kinds());
}

#[test]
fn a_level_with_rates_alone_has_the_attributes_that_it_always_had() {
    let item = record(&["rpm:100", "tpm:5:9"]).to_item();
    let rates = [
        "PK",
        "SK",
        "config_version",
        "l_rpm_bx",
        "l_rpm_cp",
        "l_rpm_ra",
        "l_rpm_rp",
        "l_tpm_bx",
        "l_tpm_cp",
        "l_tpm_ra",
        "l_tpm_rp",
        "resource",
    ];
    assert_eq!(names(&item), rates);
    assert_eq!(
        names(&record(&[]).to_item()),
        ["PK", "SK", "config_version", "resource"]
    );
}

#[test]
fn the_attributes_of_limits_are_known_as_such() {
    for (name, _) in ConfigRecord::limit_attributes(&all_kinds().limits) {
        assert!(ConfigRecord::is_limit_attribute(&name), "{name}");
    }
    for other in [
        "config_version",
        "resource",
        "on_unavailable",
        "mode",
        "limits_format",
        "l_rpm",
        "l_rpm_xx",
        "qspend",
        "SK",
    ] {
        assert!(!ConfigRecord::is_limit_attribute(other), "{other}");
    }
}

#[test]
fn a_damaged_limit_is_an_error_that_names_its_attribute() {
    for (attribute, value, reason) in [
        ("lq_spend", text(""), "is not usable: limit \"\" is invalid"),
        ("lq_spend", text("500"), "it holds a rate"),
        ("lq_spend", text("8 at once for 10min"), "it holds a concurrency"),
        ("lc_parallel", text("500 per month"), "it holds a quota"),
        ("lc_parallel", text("100/min"), "it holds a rate"),
        (
            "lq_spend",
            text("0 per month"),
            "amount 0 of limit spend is invalid",
        ),
        (
            "lq_spend",
            text("500 per month in Europe/Atlantis"),
            "no time zone has this name",
        ),
        ("lq_spend", number(500), "must be a string"),
        ("lq_spend", AttributeValue::Null(true), "is missing"),
        (
            "lc_parallel",
            text("8 at once for 7s"),
            "expiry 7 of limit parallel is invalid",
        ),
        ("lc_parallel", AttributeValue::Bool(true), "must be a string"),
        ("lq_9", text("500 per month"), "limit name \"9\" is invalid"),
        ("limits_format", text("2"), "must be"),
        ("limits_format", number(-1), "is out of range"),
        ("limits_format", AttributeValue::N("1.5".to_owned()), "must be"),
    ] {
        let (blamed, found) = error_with(attribute, value);
        assert_eq!(blamed, attribute, "{found}");
        assert!(found.contains(reason), "{attribute}: {found}");
    }
}

#[test]
fn one_name_for_limits_of_two_kinds_is_an_error() {
    let (_, reason) = error_with("lq_rpm", text("500 per month"));
    assert!(reason.contains("duplicate limit name rpm"), "{reason}");
    let (_, reason) = error_with("lc_spend", text("8 at once for 10min"));
    assert!(reason.contains("duplicate limit name spend"), "{reason}");
}

#[test]
fn a_level_in_a_later_format_is_refused_and_says_what_to_do() {
    let (blamed, reason) = error_with("limits_format", number(4));
    assert_eq!(blamed, "limits_format");
    assert!(
        reason.starts_with("is 4: this level has limits of a kind, or a mode,"),
        "{reason}"
    );
    assert!(reason.ends_with("use zae-limiter 0.1.0 or later"), "{reason}");
    let mut item = all_kinds().to_item();
    item.inner_mut().insert("limits_format".to_owned(), number(4));
    item.inner_mut()
        .insert("limits_version".to_owned(), text("0.9.0"));
    let error = ConfigRecord::from_item(&item).unwrap_err().to_string();
    assert!(error.contains("use zae-limiter 0.9.0 or later"), "{error}");
    item.inner_mut().remove("limits_version");
    let error = ConfigRecord::from_item(&item).unwrap_err().to_string();
    assert!(
        error.contains("use the version that wrote them, or a later one"),
        "{error}"
    );
    for known in [1, 2, 3] {
        let mut item = all_kinds().to_item();
        item.inner_mut().insert("limits_format".to_owned(), number(known));
        assert_eq!(ConfigRecord::from_item(&item).unwrap(), all_kinds());
    }
}

/// So that it can be repaired: nothing of its limits, and the rest as far as it can be read.
#[test]
fn what_is_readable_of_a_level_in_a_later_format() {
    let mut item = ConfigRecord {
        on_unavailable: Some(OnUnavailable::Block),
        ..all_kinds()
    }
    .to_item();
    item.inner_mut().insert("limits_format".to_owned(), number(4));
    let readable = ConfigRecord::readable(level(), &item);
    assert!(readable.limits.is_empty());
    assert_eq!(readable.on_unavailable, Some(OnUnavailable::Block));
}
