//! What a name may look like, and the error that says which part of it was broken.

use crate::shortened::shortened;

/// A name that breaks a rule: which field, which value (shortened), which rule.
///
/// ```
/// use zae_limiter_schema::EntityId;
///
/// let error = EntityId::parse("user#1").unwrap_err();
/// assert_eq!(error.field(), "entity id");
/// assert_eq!(
///     error.to_string(),
///     "entity id \"user#1\" is invalid: it must not contain '#', which separates the parts of a key"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value:?} is invalid: {rule}")]
pub struct InvalidName {
    field: &'static str,
    value: String,
    rule: String,
}

impl InvalidName {
    pub(crate) fn new(field: &'static str, value: &str, rule: impl Into<String>) -> Self {
        Self {
            field,
            value: shortened(value),
            rule: rule.into(),
        }
    }

    /// What kind of name was expected, such as `entity id`.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The refused value, cut to what shows as 50 characters.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The rule that the value breaks.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

/// The character set and length of one kind of name.
pub(super) struct Rule {
    pub(super) field: &'static str,
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) first: fn(char) -> bool,
    pub(super) first_text: &'static str,
    pub(super) rest: fn(char) -> bool,
    pub(super) rest_text: &'static str,
    pub(super) reserved: &'static [&'static str],
    pub(super) reserved_text: &'static str,
}

impl Rule {
    /// Checks character set and length, in the order that gives the most helpful message.
    pub(super) fn check_shape(&self, value: &str) -> Result<(), InvalidName> {
        let broken = |rule: String| Err(InvalidName::new(self.field, value, rule));
        let Some(first) = value.chars().next() else {
            return broken("it must not be empty".to_owned());
        };
        if value.len() < self.min {
            return broken(format!(
                "it must have at least {} characters, this has {}",
                self.min,
                value.chars().count()
            ));
        }
        // Every allowed character is ASCII, so bytes and characters agree for every accepted value.
        if value.len() > self.max {
            return broken(format!(
                "it must have at most {} characters, this has {}",
                self.max,
                value.chars().count()
            ));
        }
        if value.contains('#') {
            return broken("it must not contain '#', which separates the parts of a key".to_owned());
        }
        if !(self.first)(first) {
            return broken(format!("it must start with {}", self.first_text));
        }
        if let Some(bad) = value.chars().find(|c| !(self.rest)(*c)) {
            return broken(format!("it may hold {} only, not {bad:?}", self.rest_text));
        }
        Ok(())
    }

    pub(super) fn check(&self, value: &str) -> Result<(), InvalidName> {
        self.check_shape(value)?;
        if self.reserved.contains(&value) {
            return Err(InvalidName::new(self.field, value, self.reserved_text));
        }
        Ok(())
    }
}
