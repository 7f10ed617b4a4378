//! Prices, costs and amounts of money: the client's exact arithmetic for Python.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use zae_limiter::money::{Estimate, MicroDollars, Prices, Usage};

use crate::error::Failure;
use crate::settings;

/// Text such as `$12.50` as micro-dollars. `field` is named by the error.
#[pyfunction]
pub(crate) fn micro_dollars(py: Python<'_>, field: &str, text: &str) -> PyResult<u64> {
    let parsed = text
        .parse::<MicroDollars>()
        .map_err(|invalid| Failure::invalid(field, invalid.value(), invalid.rule()).into_exception(py));
    parsed.map(MicroDollars::get)
}

/// Micro-dollars as text such as `$12.50`.
#[pyfunction]
pub(crate) fn dollars(micro_dollars: i64) -> String {
    zae_limiter::money::dollars(micro_dollars.into())
}

/// Checks prices. `prices` is JSON.
#[pyfunction]
pub(crate) fn check_prices(py: Python<'_>, prices: &str) -> PyResult<()> {
    read_prices(prices)
        .map(drop)
        .map_err(|failure| failure.into_exception(py))
}

/// What a usage costs, in micro-dollars. Both arguments are JSON.
#[pyfunction]
pub(crate) fn cost(py: Python<'_>, prices: &str, usage: &str) -> PyResult<u64> {
    let cost = || -> Result<u64, Failure> {
        let (prices, usage) = (read_prices(prices)?, read_usage(usage)?);
        let cost = prices.cost(&usage).map_err(|error| too_expensive(&error))?;
        Ok(cost.get())
    };
    cost().map_err(|failure| failure.into_exception(py))
}

/// What a usage takes of the limits that count tokens and money. Both arguments are JSON.
#[pyfunction]
pub(crate) fn amounts(py: Python<'_>, prices: &str, usage: &str) -> PyResult<BTreeMap<String, u64>> {
    let amounts = || -> Result<_, Failure> {
        let (prices, usage) = (read_prices(prices)?, read_usage(usage)?);
        let amounts = prices.amounts(&usage).map_err(|error| too_expensive(&error))?;
        Ok(amounts
            .into_iter()
            .map(|(limit, amount)| (limit.to_string(), amount))
            .collect())
    };
    amounts().map_err(|failure| failure.into_exception(py))
}

/// The output tokens that a call is expected to use. Both arguments are JSON.
#[pyfunction]
pub(crate) fn expected_output(py: Python<'_>, prices: &str, estimate: &str) -> PyResult<u64> {
    let expected = || -> Result<u64, Failure> {
        let (prices, estimate) = (read_prices(prices)?, read_estimate(estimate)?);
        Ok(prices.estimate(&estimate).output)
    };
    expected().map_err(|failure| failure.into_exception(py))
}

pub(crate) fn read_prices(json: &str) -> Result<Prices, Failure> {
    let prices: Prices = settings::read("prices", json)?;
    let invalid = prices.check();
    invalid.map_err(|invalid| Failure::invalid(invalid.field, &invalid.value, &invalid.rule))?;
    Ok(prices)
}

pub(crate) fn read_usage(json: &str) -> Result<Usage, Failure> {
    settings::read("usage", json)
}

pub(crate) fn read_estimate(json: &str) -> Result<Estimate, Failure> {
    settings::read("estimate", json)
}

fn too_expensive(error: &zae_limiter::money::TooExpensive) -> Failure {
    Failure::invalid("usage", "", &error.to_string())
}
