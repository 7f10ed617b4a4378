//! Options as people write them, before they are checked.

use serde::{Deserialize, Serialize};

use zae_limiter_schema::WindowKind;

/// Several words: a list, or text with commas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// `hourly,daily`
    Text(String),
    /// `[hourly, daily]`
    List(Vec<String>),
}

impl Words {
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let words: Vec<&str> = match self {
            Self::Text(text) => text
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .collect(),
            Self::List(list) => list.iter().map(String::as_str).collect(),
        };
        words.into_iter()
    }
}

impl Default for Words {
    fn default() -> Self {
        Self::List(vec![])
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for Words {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}

impl<const N: usize> From<[&str; N]> for Words {
    fn from(list: [&str; N]) -> Self {
        Self::List(list.map(str::to_owned).into())
    }
}

impl<const N: usize> From<[WindowKind; N]> for Words {
    fn from(windows: [WindowKind; N]) -> Self {
        Self::List(windows.map(|window| window.to_string()).into())
    }
}

/// The value as it was given, for an error message.
pub(super) trait Given {
    fn given(&self) -> String;
}

impl<T: Serialize> Given for T {
    fn given(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "unreadable".to_owned())
    }
}
