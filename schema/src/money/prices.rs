//! What a resource costs.

use std::collections::BTreeSet;

use super::{Estimate, MicroDollars, Usage};
use crate::{LimitName, Tokens};

const MILLION: u128 = 1_000_000;

/// The prices of a resource, the limits that count its money and tokens, and what a call is expected to use.
///
/// Prices are per million tokens. A price that is not set is zero, except that cached input and cache writes without a
/// price of their own cost as much as other input.
///
/// ```
/// use zae_limiter_schema::money::{Prices, Usage};
///
/// let prices = Prices {
///     cached_input: Some("$1.25".parse()?),
///     ..Prices::new("$2.50".parse()?, "$10".parse()?)
/// };
/// let usage = Usage { cached_input: 1, ..Usage::new(0, 0) };
/// assert_eq!(prices.cost(&usage)?.get(), 2, "1.25 micro-dollars, rounded up");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// A million input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<MicroDollars>,
    /// A million output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<MicroDollars>,
    /// A million input tokens that are read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<MicroDollars>,
    /// A million input tokens that are written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<MicroDollars>,
    /// One call, besides its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_call: Option<MicroDollars>,
    /// The output tokens that are expected of a request that does not limit them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_output: Option<u64>,
    /// The most output tokens that the model makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The limit that counts micro-dollars.
    pub money_limit: LimitName,
    /// The limits that count tokens.
    pub token_limits: BTreeSet<LimitName>,
}

/// Prices that break a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value:?} of prices is invalid: {rule}")]
pub struct InvalidPrices {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The rule that it breaks.
    pub rule: String,
}

/// A usage that costs more than a limit can count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{usage:?} costs more than ${}", MicroDollars::MAX / 1_000_000)]
pub struct TooExpensive {
    /// The usage.
    pub usage: Usage,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            input: None,
            output: None,
            cached_input: None,
            cache_write: None,
            per_call: None,
            default_output: None,
            max_output: None,
            money_limit: LimitName::literal(Self::DEFAULT_MONEY_LIMIT),
            token_limits: BTreeSet::from([LimitName::literal(Self::DEFAULT_TOKEN_LIMIT)]),
        }
    }
}

impl Prices {
    /// The limit that counts money unless the prices name another.
    pub const DEFAULT_MONEY_LIMIT: &str = "usd";

    /// The limit that counts tokens unless the prices name others.
    pub const DEFAULT_TOKEN_LIMIT: &str = "tpm";

    /// At most this many limits count tokens.
    pub const MAX_TOKEN_LIMITS: usize = 8;

    /// Prices of a million input and output tokens.
    pub fn new(input: MicroDollars, output: MicroDollars) -> Self {
        Self {
            input: Some(input),
            output: Some(output),
            ..Self::default()
        }
    }

    /// The limit that counts money on a resource with these prices, or on one without any.
    pub fn money_limit_of(prices: Option<&Self>) -> LimitName {
        prices.map_or_else(
            || LimitName::literal(Self::DEFAULT_MONEY_LIMIT),
            |prices| prices.money_limit.clone(),
        )
    }

    /// What a usage costs, rounded up to a whole micro-dollar.
    pub fn cost(&self, usage: &Usage) -> Result<MicroDollars, TooExpensive> {
        let tokens = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cached_input, self.cached_input.or(self.input)),
            (usage.cache_write, self.cache_write.or(self.input)),
        ];
        let product = |count: u64, price: Option<MicroDollars>| {
            u128::from(count) * u128::from(price.unwrap_or_default().get())
        };
        // Counts are below 2^64 and prices at most 10^12, so that the sum is below 2^127.
        let tokens: u128 = tokens.iter().map(|(count, price)| product(*count, *price)).sum();
        let sum = tokens + product(usage.calls, self.per_call) * MILLION;
        u64::try_from(sum.div_ceil(MILLION))
            .ok()
            .and_then(|cost| MicroDollars::new(cost).ok())
            .ok_or(TooExpensive { usage: *usage })
    }

    /// What a call is expected to use: its input, and the output that the request asks for, else the configured default,
    /// else the model's maximum; never more than that.
    pub fn estimate(&self, call: &Estimate) -> Usage {
        let expected = call.max_output.or(self.default_output).or(self.max_output);
        let output = expected.unwrap_or(0).min(self.max_output.unwrap_or(u64::MAX));
        Usage::new(call.input, output)
    }

    /// What a usage takes of the limits that count tokens and money.
    pub fn amounts(&self, usage: &Usage) -> Result<Vec<(&LimitName, u64)>, TooExpensive> {
        let tokens = self.token_limits.iter().map(|limit| (limit, usage.tokens()));
        let money = (&self.money_limit, self.cost(usage)?.get());
        Ok(tokens.chain([money]).collect())
    }

    /// Every field that is set, by name, as text for people.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let money = |price: Option<MicroDollars>| price.map(|price| price.to_string());
        let tokens = |tokens: Option<u64>| tokens.map(|tokens| tokens.to_string());
        let token_limits: Vec<_> = self.token_limits.iter().map(LimitName::as_str).collect();
        let fields = [
            ("input", money(self.input)),
            ("output", money(self.output)),
            ("cached_input", money(self.cached_input)),
            ("cache_write", money(self.cache_write)),
            ("per_call", money(self.per_call)),
            ("default_output", tokens(self.default_output)),
            ("max_output", tokens(self.max_output)),
            ("money_limit", Some(self.money_limit.to_string())),
            ("token_limits", Some(token_limits.join(", "))),
        ];
        let set = fields.into_iter();
        set.filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Checks every rule that the types leave open.
    pub fn check(&self) -> Result<(), InvalidPrices> {
        let invalid = |field, value: String, rule: String| Err(InvalidPrices { field, value, rule });
        let prices = [
            self.input,
            self.output,
            self.cached_input,
            self.cache_write,
            self.per_call,
        ];
        if prices.iter().all(Option::is_none) {
            return invalid(
                "input",
                String::new(),
                "set at least one price; that of a free model is $0".to_owned(),
            );
        }
        for (field, tokens) in [
            ("default_output", self.default_output),
            ("max_output", self.max_output),
        ] {
            if let Some(tokens) = tokens.filter(|tokens| *tokens > Tokens::MAX) {
                let rule = format!("it must be at most {} tokens", Tokens::MAX);
                return invalid(field, tokens.to_string(), rule);
            }
        }
        if self.token_limits.len() > Self::MAX_TOKEN_LIMITS {
            let rule = format!("at most {} limits count tokens", Self::MAX_TOKEN_LIMITS);
            return invalid("token_limits", self.token_limits.len().to_string(), rule);
        }
        if self.token_limits.contains(&self.money_limit) {
            let rule = "this limit counts money and cannot count tokens too".to_owned();
            return invalid("token_limits", self.money_limit.to_string(), rule);
        }
        Ok(())
    }
}
