//! What a call used, and what one is expected to use.

/// What one call, or several, used of a resource with [prices](super::Prices). No token is in two of the numbers: a token
/// that was read from the provider's cache is in `cached_input` and not in `input`.
///
/// ```
/// use zae_limiter_schema::money::Usage;
///
/// let usage = Usage { cached_input: 800, ..Usage::new(200, 50) };
/// assert_eq!((usage.tokens(), usage.calls), (1_050, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Input tokens that neither came from a cache nor went into one.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that were read from a cache.
    pub cached_input: u64,
    /// Input tokens that were written to a cache.
    pub cache_write: u64,
    /// How many calls were made. One unless it is set.
    pub calls: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl Usage {
    /// One call.
    pub const fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            cached_input: 0,
            cache_write: 0,
            calls: 1,
        }
    }

    /// All tokens, whatever they cost.
    pub const fn tokens(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cached_input)
            .saturating_add(self.cache_write)
    }
}

/// What is known of a call before it is made.
///
/// ```
/// use zae_limiter_schema::money::Estimate;
///
/// let estimate = Estimate::new(1_000).max_output(500);
/// assert_eq!(estimate, Estimate { input: 1_000, max_output: Some(500) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Input tokens.
    pub input: u64,
    /// The most output tokens that the request asks for, if it says so (`max_tokens`, `max_output_tokens`).
    #[serde(default)]
    pub max_output: Option<u64>,
}

impl Estimate {
    /// A request that does not limit its output.
    pub const fn new(input: u64) -> Self {
        Self {
            input,
            max_output: None,
        }
    }

    /// A request that asks for no more output tokens than this.
    #[must_use]
    pub const fn max_output(self, tokens: u64) -> Self {
        Self {
            max_output: Some(tokens),
            ..self
        }
    }
}
