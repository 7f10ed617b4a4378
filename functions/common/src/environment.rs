//! Configuration from environment variables, checked at start-up.

use std::fmt::Display;

/// The variables a function is started with.
pub struct Environment(Box<Lookup>);

type Lookup = dyn Fn(&str) -> Option<String>;

/// A variable that keeps the function from starting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {name} {problem}")]
pub struct InvalidSetting {
    name: &'static str,
    problem: String,
}

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        Self(Box::new(|name| std::env::var(name).ok()))
    }

    /// Variables from a list.
    pub fn of<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(Box::new(move |name| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        }))
    }

    /// A variable's value; an empty one counts as absent.
    pub fn optional(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// A variable that must be there.
    pub fn required(&self, name: &'static str) -> Result<String, InvalidSetting> {
        self.optional(name).ok_or_else(|| InvalidSetting {
            name,
            problem: "is not set; the stack's template sets it".to_owned(),
        })
    }

    /// A variable that must be there and be readable as something.
    pub fn parsed<T, E: Display>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, InvalidSetting> {
        let value = self.required(name)?;
        parse(&value).map_err(|error| InvalidSetting {
            name,
            problem: format!("is {value:?}: {error}"),
        })
    }
}
