//! Invalid options.

use std::fmt;

/// One option that breaks its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The option.
    pub field: &'static str,
    /// The value that was given, shortened.
    pub value: String,
    /// What it must be.
    pub rule: String,
}

impl Mistake {
    const LONGEST_VALUE: usize = 80;

    pub(crate) fn new(field: &'static str, value: impl fmt::Display, rule: impl Into<String>) -> Self {
        let mut value = value.to_string();
        if let Some((cut, _)) = value.char_indices().nth(Self::LONGEST_VALUE) {
            value.truncate(cut);
            value.push('…');
        }
        Self {
            field,
            value,
            rule: rule.into(),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}: {}", self.field, self.value, self.rule)
    }
}

/// Every mistake in a set of options, so that all can be fixed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidOptions {
    mistakes: Vec<Mistake>,
}

impl InvalidOptions {
    pub(crate) fn of(mistakes: Vec<Mistake>) -> Self {
        Self { mistakes }
    }

    /// An error if there are mistakes.
    pub(crate) fn unless_empty(mistakes: Vec<Mistake>) -> Result<(), Self> {
        if mistakes.is_empty() {
            Ok(())
        } else {
            Err(Self { mistakes })
        }
    }

    /// The mistakes, in the order of the options.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

impl fmt::Display for InvalidOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mistakes.as_slice() {
            [mistake] => write!(f, "the stack options have a mistake: {mistake}"),
            mistakes => {
                write!(f, "the stack options have {} mistakes:", mistakes.len())?;
                mistakes
                    .iter()
                    .try_for_each(|mistake| write!(f, "\n  - {mistake}"))
            }
        }
    }
}

impl std::error::Error for InvalidOptions {}
