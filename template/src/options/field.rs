//! The description of an option, for documentation and other formats.

use serde_json::Value;

/// One option: what it is called, what it means and what it accepts.
///
/// ```
/// use zae_limiter_template::{Accepts, StackOptions};
///
/// let fields = StackOptions::fields();
/// let memory = fields.iter().find(|field| field.name == "lambda_memory");
/// assert_eq!(memory.map(|field| field.accepts), Some(Accepts::Range { least: 128, most: 3008 }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name in an options file.
    pub name: &'static str,
    /// What the option does.
    pub description: &'static str,
    /// What kind of value it takes.
    pub kind: FieldKind,
    /// The default as an options file has it; null for an option that is unset by default.
    pub default: Value,
    /// Which values it accepts.
    pub accepts: Accepts,
}

/// What kind of value an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// True or false.
    Flag,
    /// A whole number.
    Number,
    /// Text.
    Text,
    /// A list of usage windows.
    Windows,
    /// A list of words.
    List,
    /// Tags by key.
    Tags,
}

impl From<&str> for FieldKind {
    fn from(declared: &str) -> Self {
        match declared {
            "flag" => Self::Flag,
            "number" | "maybe_number" => Self::Number,
            "windows" => Self::Windows,
            "list" => Self::List,
            "tags" => Self::Tags,
            _ => Self::Text,
        }
    }
}

/// Which values an option accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Every value of its kind.
    Anything,
    /// Numbers in a range, both ends included.
    Range {
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
    },
    /// One of these numbers.
    Numbers(&'static [i64]),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Text of a form.
    Text {
        /// A regular expression that matches the whole text.
        pattern: &'static str,
        /// A regular expression that matches nowhere in it.
        never: Option<&'static str>,
        /// The most bytes, where there is a limit.
        longest: Option<usize>,
    },
    /// At least one of `hourly`, `daily` and `monthly`.
    Windows,
    /// At most 16 words.
    List {
        /// A regular expression that matches each word.
        pattern: &'static str,
    },
    /// At most 43 tags that AWS accepts and the stack does not set itself.
    Tags,
}
