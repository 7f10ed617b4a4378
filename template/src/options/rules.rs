//! What each kind of option must be.
//!
//! A rule turns what was given into what is used, or says in words what it must be.

use std::collections::BTreeMap;

use zae_limiter_schema::WindowKind;

use super::raw::Windows;
use crate::resources::tags;

/// Days that CloudWatch Logs knows.
const LOG_RETENTION: [i64; 22] = [
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

#[allow(clippy::unnecessary_wraps, reason = "it is a rule like the others")]
pub(super) fn any<T: Clone>(value: &T) -> Result<T, String> {
    Ok(value.clone())
}

pub(super) fn between(least: u32, most: u32) -> impl Fn(&i64) -> Result<u32, String> {
    move |value| {
        let fits = u32::try_from(*value)
            .ok()
            .filter(|value| (least..=most).contains(value));
        fits.ok_or_else(|| format!("must be between {least} and {most}"))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "it is a rule like the others")]
pub(super) fn log_retention(value: &i64) -> Result<u32, String> {
    let known = LOG_RETENTION
        .contains(value)
        .then(|| u32::try_from(*value).ok())
        .flatten();
    known.ok_or_else(|| {
        let days: Vec<_> = LOG_RETENTION.iter().map(ToString::to_string).collect();
        format!("must be one of {}", days.join(", "))
    })
}

pub(super) fn optional<R, T>(
    rule: impl Fn(&R) -> Result<T, String>,
) -> impl Fn(&Option<R>) -> Result<Option<T>, String> {
    move |value| value.as_ref().map(&rule).transpose()
}

pub(super) fn parsed<T>(parse: impl Fn(&str) -> Result<T, String>) -> impl Fn(&String) -> Result<T, String> {
    move |value| parse(value)
}

pub(super) fn directory(value: &str) -> Result<String, String> {
    if value.is_empty() {
        Err("must be the path of a directory".to_owned())
    } else {
        Ok(value.to_owned())
    }
}

pub(super) fn windows(value: &Windows) -> Result<Vec<WindowKind>, String> {
    let rule = || "must be one or more of hourly, daily, monthly".to_owned();
    let mut windows = value
        .words()
        .map(|word| word.parse().map_err(|_| rule()))
        .collect::<Result<Vec<_>, _>>()?;
    windows.sort();
    windows.dedup();
    if windows.is_empty() {
        Err(rule())
    } else {
        Ok(windows)
    }
}

pub(super) fn user_tags(tags: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    let character = |c: char| c.is_alphanumeric() || c == ' ' || "_.:/=+-@".contains(c);
    if tags.len() > tags::MOST_USER_TAGS {
        return Err(format!(
            "must be at most {}: AWS allows 50 on a resource and the rest are set by the stack",
            tags::MOST_USER_TAGS
        ));
    }
    for (key, value) in tags {
        let length = key.chars().count();
        if !(1..=128).contains(&length) {
            return Err(format!("the key {key:?} must have 1 to 128 characters"));
        }
        if key.to_ascii_lowercase().starts_with("aws:") {
            return Err(format!(
                "the key {key:?} must not start with aws:, which is reserved"
            ));
        }
        if tags::is_ours(key) {
            return Err(format!("the key {key:?} is set by the stack itself"));
        }
        if value.chars().count() > 256 {
            return Err(format!("the value of {key:?} must have at most 256 characters"));
        }
        if !key.chars().all(character) || !value.chars().all(character) {
            return Err(format!(
                "the tag {key:?} must have only letters, digits, spaces and _ . : / = + - @"
            ));
        }
    }
    Ok(tags.clone())
}
