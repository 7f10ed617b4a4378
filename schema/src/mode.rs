//! Whether limits are enforced.

use std::fmt;
use std::str::FromStr;

/// Whether the limits of an entity on a resource are enforced.
///
/// ```
/// use zae_limiter_schema::Mode;
///
/// assert_eq!("observe".parse(), Ok(Mode::Observe));
/// assert_eq!(Mode::default(), Mode::Enforce);
/// assert!("off".parse::<Mode>().is_err());
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A call that the limits do not allow is refused.
    #[default]
    Enforce,
    /// Calls are counted. One that the limits do not allow passes, takes nothing, and is reported as observed.
    Observe,
    /// Every call passes. Nothing is taken or counted.
    Bypass,
    /// Every call is refused.
    Disabled,
}

/// Text that is not a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mode {value:?} is invalid: it must be enforce, observe, bypass or disabled")]
pub struct InvalidMode {
    value: String,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Enforce, Self::Observe, Self::Bypass, Self::Disabled];

    /// `enforce`, `observe`, `bypass` or `disabled`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
            Self::Bypass => "bypass",
            Self::Disabled => "disabled",
        }
    }

    /// True if calls are counted on the bucket.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Enforce | Self::Observe)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = InvalidMode;

    fn from_str(value: &str) -> Result<Self, InvalidMode> {
        let mode = Self::ALL.into_iter().find(|mode| mode.as_str() == value);
        mode.ok_or_else(|| InvalidMode {
            value: value.chars().take(50).collect(),
        })
    }
}
