//! Configuration from environment variables, checked at startup.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::Arc;

/// The environment variables of a function.
#[derive(Clone)]
pub struct Environment(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Without the variables, which hold credentials.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

/// A missing or invalid variable. The function does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {name} {problem}")]
pub struct InvalidSetting {
    name: &'static str,
    problem: String,
}

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        Self(Arc::new(|name| std::env::var(name).ok()))
    }

    /// Variables that were read elsewhere.
    pub fn from_variables(variables: HashMap<String, String>) -> Self {
        Self(Arc::new(move |name| variables.get(name).cloned()))
    }

    /// Variables from a list.
    pub fn of<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self::from_variables(variables.into())
    }

    /// A variable's value; an empty one counts as absent.
    pub fn optional(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// A required variable.
    pub fn required(&self, name: &'static str) -> Result<String, InvalidSetting> {
        self.optional(name).ok_or_else(|| InvalidSetting {
            name,
            problem: "is not set; the stack's template sets it".to_owned(),
        })
    }

    /// A required variable, parsed.
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
