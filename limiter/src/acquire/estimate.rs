//! What a call takes for its estimated usage, and what a lease has to count for the real one.

use std::borrow::Cow;

use zae_limiter_schema::money::{Estimate, Prices, Usage};
use zae_limiter_schema::{LimitName, Resource, Tokens};

use crate::bucket::{Amounts, add};
use crate::error::NotFound;
use crate::{Error, Result};

/// What a call takes: the amounts that it names, and what its estimate takes of the limits that count tokens and money. An
/// entity may lack those, or have them at a parent only.
pub(super) fn with_estimate<'a>(
    amounts: &'a Amounts,
    estimate: Option<&Estimate>,
    prices: Option<&Prices>,
    resource: &Resource,
) -> Result<Cow<'a, Amounts>> {
    let Some(estimate) = estimate else {
        return Ok(Cow::Borrowed(amounts));
    };
    let prices = prices.ok_or_else(|| no_prices(resource))?;
    let usage = prices.estimate(estimate);
    let mut all = amounts.clone();
    for (limit, tokens) in usage_amounts(prices, &usage, "estimate")? {
        if !tokens.is_zero() {
            add(&mut all, limit, tokens.millis());
        }
    }
    Ok(Cow::Owned(all))
}

/// What a usage takes of each limit that counts tokens or money.
pub(super) fn usage_amounts<'a>(
    prices: &'a Prices,
    usage: &Usage,
    field: &'static str,
) -> Result<Vec<(&'a LimitName, Tokens)>> {
    let amounts = prices
        .amounts(usage)
        .map_err(|error| Error::invalid(field, format!("{usage:?}"), error.to_string()))?;
    let tokens = amounts.into_iter().map(|(limit, amount)| {
        let invalid = |error| Error::invalid(field, amount.to_string(), format!("{error}"));
        Ok((limit, Tokens::new(amount).map_err(invalid)?))
    });
    tokens.collect()
}

pub(super) fn no_prices(resource: &Resource) -> Error {
    Error::NotFound(NotFound::Prices {
        resource: resource.clone(),
    })
}
