//! What calls use, and what they are expected to use.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zae_limiter::money::{Estimate, Usage};

/// What a call really used. The prices of the resource turn it into tokens and money. No token is in two of the numbers.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "input": 200, "cached_input": 1_800, "output": 350 }))]
pub(crate) struct UsageBody {
    /// Input tokens that neither came from a cache nor went into one.
    #[serde(default)]
    input: u64,
    /// Output tokens.
    #[serde(default)]
    output: u64,
    /// Input tokens that were read from a cache.
    #[serde(default)]
    cached_input: u64,
    /// Input tokens that were written to a cache.
    #[serde(default)]
    cache_write: u64,
    /// How many calls were made: one unless set.
    calls: Option<u64>,
}

impl From<UsageBody> for Usage {
    fn from(body: UsageBody) -> Self {
        Self {
            input: body.input,
            output: body.output,
            cached_input: body.cached_input,
            cache_write: body.cache_write,
            calls: body.calls.unwrap_or(1),
        }
    }
}

/// What is known of a call before it is made. The prices of the resource turn it into tokens and money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "input": 2_000, "max_output": 500 }))]
pub(crate) struct EstimateBody {
    /// Input tokens.
    input: u64,
    /// The most output tokens that the request asks for: the default of the prices unless set.
    max_output: Option<u64>,
}

impl From<EstimateBody> for Estimate {
    fn from(body: EstimateBody) -> Self {
        Self {
            input: body.input,
            max_output: body.max_output,
        }
    }
}
