//! Rules: what each option accepts.
//!
//! A rule turns what was given into what is used, or says in words what it must be.

use std::collections::BTreeMap;

use zae_limiter_schema::WindowKind;

use super::choices::Choice;
use super::field::Accepts;
use super::formats::Format;
use super::raw::Words;
use crate::resources::tags;

/// The retention periods that CloudWatch Logs accepts, in days.
const LOG_RETENTION: [i64; 22] = [
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

type Check<Raw, Settled> = Box<dyn Fn(&Raw) -> Result<Settled, String>>;

/// How one option is checked.
pub(super) struct Rule<Raw, Settled> {
    check: Check<Raw, Settled>,
    accepts: Accepts,
}

impl<Raw, Settled> Rule<Raw, Settled> {
    fn new(accepts: Accepts, check: impl Fn(&Raw) -> Result<Settled, String> + 'static) -> Self {
        Self {
            check: Box::new(check),
            accepts,
        }
    }

    pub(super) fn check(&self, raw: &Raw) -> Result<Settled, String> {
        (self.check)(raw)
    }
}

/// What a rule accepts. The turbofish says which rule a generic one is.
pub(super) fn accepts<Raw, Settled>(rule: &Rule<Raw, Settled>) -> Accepts {
    rule.accepts
}

pub(super) fn any() -> Rule<bool, bool> {
    Rule::new(Accepts::Anything, |value| Ok(*value))
}

pub(super) fn between(least: u32, most: u32) -> Rule<i64, u32> {
    Rule::new(Accepts::Range { least, most }, move |value| {
        let fits = u32::try_from(*value)
            .ok()
            .filter(|value| (least..=most).contains(value));
        fits.ok_or_else(|| format!("must be between {least} and {most}"))
    })
}

pub(super) fn log_retention() -> Rule<i64, u32> {
    Rule::new(Accepts::Numbers(&LOG_RETENTION), |value| {
        let known = LOG_RETENTION
            .contains(value)
            .then(|| u32::try_from(*value).ok())
            .flatten();
        known.ok_or_else(|| {
            let days: Vec<_> = LOG_RETENTION.iter().map(ToString::to_string).collect();
            format!("must be one of {}", days.join(", "))
        })
    })
}

pub(super) fn optional<R: 'static, T: 'static>(rule: Rule<R, T>) -> Rule<Option<R>, Option<T>> {
    let Rule { check, accepts } = rule;
    Rule::new(accepts, move |value: &Option<R>| {
        value.as_ref().map(&check).transpose()
    })
}

pub(super) fn choice<T: Choice>() -> Rule<String, T> {
    Rule::new(Accepts::OneOf(T::WORDS), |value: &String| T::parse(value))
}

pub(super) fn text<T: Format>(longest: Option<usize>) -> Rule<String, T> {
    let accepts = Accepts::Text {
        pattern: T::PATTERN,
        never: T::NEVER,
        longest,
    };
    Rule::new(accepts, move |value: &String| T::parse(value, longest))
}

pub(super) fn directory() -> Rule<String, String> {
    let accepts = Accepts::Text {
        pattern: "^.+$",
        never: None,
        longest: None,
    };
    Rule::new(accepts, |value: &String| {
        if value.is_empty() || value.contains('\n') {
            Err("must be the path of a directory, in one line".to_owned())
        } else {
            Ok(value.clone())
        }
    })
}

pub(super) fn windows() -> Rule<Words, Vec<WindowKind>> {
    Rule::new(Accepts::Windows, |value: &Words| {
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
    })
}

/// The most words of a list. Lambda takes 16 subnets and 5 security groups.
const LONGEST_LIST: usize = 16;

/// Several words of one form.
pub(super) fn list<T: Format>() -> Rule<Words, Vec<T>> {
    Rule::new(Accepts::List { pattern: T::PATTERN }, |value: &Words| {
        if value.words().count() > LONGEST_LIST {
            return Err(format!("must be at most {LONGEST_LIST}"));
        }
        value.words().map(|word| T::parse(word, None)).collect()
    })
}

pub(super) fn user_tags() -> Rule<BTreeMap<String, String>, BTreeMap<String, String>> {
    Rule::new(Accepts::Tags, check_tags)
}

fn check_tags(tags: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    let character = |c: char| c.is_alphanumeric() || c == ' ' || "_.:/=+-@".contains(c);
    if tags.len() > tags::MAX_USER_TAGS {
        return Err(format!(
            "must be at most {}: AWS allows 50 on a resource and the stack sets the rest",
            tags::MAX_USER_TAGS
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
