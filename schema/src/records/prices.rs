//! The attributes of a configuration that hold the prices of a resource.

use std::collections::BTreeSet;

use crate::item::{AttributeValue, Builder, Malformed, Reader, n, s};
use crate::keys::attribute;
use crate::money::{MicroDollars, Prices};
use crate::{LimitName, Tokens};

pub(super) const KNOWN: [&str; 9] = [
    attribute::MONEY_LIMIT,
    attribute::TOKEN_LIMITS,
    attribute::PRICE_INPUT,
    attribute::PRICE_OUTPUT,
    attribute::PRICE_CACHED_INPUT,
    attribute::PRICE_CACHE_WRITE,
    attribute::PRICE_PER_CALL,
    attribute::DEFAULT_OUTPUT,
    attribute::MAX_OUTPUT,
];

pub(super) fn write(item: Builder, prices: Option<&Prices>) -> Builder {
    let Some(prices) = prices else { return item };
    let money = |price: Option<MicroDollars>| price.map(|price| n(price.get()));
    let token_limits: Vec<_> = prices.token_limits.iter().map(ToString::to_string).collect();
    // DynamoDB has no empty sets.
    let token_limits = (!token_limits.is_empty()).then_some(AttributeValue::Ss(token_limits));
    item.with(attribute::MONEY_LIMIT, s(&prices.money_limit))
        .with_some(attribute::TOKEN_LIMITS, token_limits)
        .with_some(attribute::PRICE_INPUT, money(prices.input))
        .with_some(attribute::PRICE_OUTPUT, money(prices.output))
        .with_some(attribute::PRICE_CACHED_INPUT, money(prices.cached_input))
        .with_some(attribute::PRICE_CACHE_WRITE, money(prices.cache_write))
        .with_some(attribute::PRICE_PER_CALL, money(prices.per_call))
        .with_some(attribute::DEFAULT_OUTPUT, prices.default_output.map(n))
        .with_some(attribute::MAX_OUTPUT, prices.max_output.map(n))
}

pub(super) fn read(reader: &Reader<'_>) -> Result<Option<Prices>, Malformed> {
    let Some(money_limit) = reader.optional_parsed(attribute::MONEY_LIMIT, LimitName::from_stored)? else {
        return Ok(None);
    };
    let money = |attribute: &str| {
        let stored: Option<u64> = reader.optional_number(attribute)?;
        let unusable = |error| reader.malformed(attribute, format!("is not usable: {error}"));
        stored.map(MicroDollars::new).transpose().map_err(unusable)
    };
    let tokens = |attribute: &str| {
        let stored: Option<u64> = reader.optional_number(attribute)?;
        let unusable = |error| reader.malformed(attribute, format!("is not usable: {error}"));
        let checked = stored.map(Tokens::new).transpose().map_err(unusable)?;
        Ok::<_, Malformed>(checked.map(Tokens::get))
    };
    let token_limits = reader.optional_string_set(attribute::TOKEN_LIMITS)?.iter();
    let token_limits: BTreeSet<LimitName> = token_limits
        .map(|name| LimitName::from_stored(name))
        .collect::<Result<_, _>>()
        .map_err(|error| reader.malformed(attribute::TOKEN_LIMITS, format!("is not usable: {error}")))?;
    Ok(Some(Prices {
        input: money(attribute::PRICE_INPUT)?,
        output: money(attribute::PRICE_OUTPUT)?,
        cached_input: money(attribute::PRICE_CACHED_INPUT)?,
        cache_write: money(attribute::PRICE_CACHE_WRITE)?,
        per_call: money(attribute::PRICE_PER_CALL)?,
        default_output: tokens(attribute::DEFAULT_OUTPUT)?,
        max_output: tokens(attribute::MAX_OUTPUT)?,
        money_limit,
        token_limits,
    }))
}
