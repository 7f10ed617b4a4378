//! The prices of models in the file `model_prices_and_context_window.json` that LiteLLM publishes.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use zae_limiter::money::{InvalidMoney, MicroDollars, Prices};

use crate::limit_syntax::InvalidField;

/// LiteLLM's file. Its prices are dollars per token, as decimal text that is never read as a binary fraction.
///
/// ```
/// use zae_limiter_limits::LiteLlmPrices;
///
/// let file = r#"{"gpt-4o": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "max_output_tokens": 16384}}"#;
/// let file = LiteLlmPrices::parse(file).unwrap();
/// let imported = file.prices("gpt-4o").unwrap();
/// assert_eq!(imported.prices.input.unwrap().to_string(), "$2.50");
/// assert_eq!(imported.prices.max_output, Some(16_384));
/// ```
#[derive(Debug)]
pub struct LiteLlmPrices<'a> {
    models: BTreeMap<String, &'a RawValue>,
}

/// The prices of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedPrices {
    /// What could be imported.
    pub prices: Prices,
    /// Fields of the model with costs that prices here do not have, such as those of images.
    pub left_out: Vec<String>,
}

const INPUT: &str = "input_cost_per_token";
const OUTPUT: &str = "output_cost_per_token";
const CACHED_INPUT: &str = "cache_read_input_token_cost";
const CACHE_WRITE: &str = "cache_creation_input_token_cost";
const PER_CALL: &str = "input_cost_per_request";
const MAX_OUTPUT: &str = "max_output_tokens";

impl<'a> LiteLlmPrices<'a> {
    /// Parses the file. The models are parsed when they are asked for.
    pub fn parse(text: &'a str) -> Result<Self, InvalidField> {
        let models = serde_json::from_str(text)
            .map_err(|error| InvalidField::new("file", format!("must be a JSON map from models: {error}")))?;
        Ok(Self { models })
    }

    /// The names of all models.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// The prices of a model.
    pub fn prices(&self, model: &str) -> Result<ImportedPrices, InvalidField> {
        let Some(raw) = self.models.get(model) else {
            return Err(InvalidField::new(model, self.not_found(model)));
        };
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get())
            .map_err(|_| InvalidField::new(model, "must be a map with the costs of a model"))?;
        let per_million = |field| money(model, &fields, field, MicroDollars::per_million_tokens);
        let prices = Prices {
            input: per_million(INPUT)?,
            output: per_million(OUTPUT)?,
            cached_input: per_million(CACHED_INPUT)?,
            cache_write: per_million(CACHE_WRITE)?,
            per_call: money(model, &fields, PER_CALL, MicroDollars::from_json_number)?,
            max_output: max_output(model, &fields)?,
            ..Prices::default()
        };
        prices
            .check()
            .map_err(|invalid| InvalidField::new(&format!("{model}.{}", invalid.field), invalid.rule))?;
        let imported = [INPUT, OUTPUT, CACHED_INPUT, CACHE_WRITE, PER_CALL];
        let left_out = fields.iter().filter(|(field, value)| {
            field.contains("cost") && !imported.contains(&field.as_str()) && !is_zero(value)
        });
        Ok(ImportedPrices {
            left_out: left_out.map(|(field, _)| field.clone()).collect(),
            prices,
        })
    }

    fn not_found(&self, model: &str) -> String {
        let near = self
            .models()
            .map(|known| (strsim::damerau_levenshtein(model, known), known));
        let meant = near.filter(|(distance, _)| *distance <= 3).min();
        let meant = meant.map_or_else(String::new, |(_, meant)| format!("; did you mean {meant:?}?"));
        format!("is not in the file{meant}")
    }
}

fn money(
    model: &str,
    fields: &BTreeMap<String, &RawValue>,
    field: &str,
    parse: impl FnOnce(&str) -> Result<MicroDollars, InvalidMoney>,
) -> Result<Option<MicroDollars>, InvalidField> {
    match fields.get(field).map(|value| value.get()) {
        None | Some("null") => Ok(None),
        Some(text) => parse(text)
            .map(Some)
            .map_err(|error| InvalidField::new(&format!("{model}.{field}"), error.to_string())),
    }
}

fn max_output(model: &str, fields: &BTreeMap<String, &RawValue>) -> Result<Option<u64>, InvalidField> {
    match fields.get(MAX_OUTPUT).map(|value| value.get()) {
        None | Some("null") => Ok(None),
        Some(digits) => digits.parse().map(Some).map_err(|_| {
            let shown: String = digits.chars().take(50).collect();
            InvalidField::new(
                &format!("{model}.{MAX_OUTPUT}"),
                format!("{shown} must be a number of tokens"),
            )
        }),
    }
}

/// True for a cost of nothing.
fn is_zero(value: &RawValue) -> bool {
    MicroDollars::from_json_number(value.get()) == Ok(MicroDollars::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
    "sample_spec": {"max_output_tokens": "max output tokens, if the provider specifies it", "input_cost_per_token": 0.0},
    "gpt-4o": {
        "cache_read_input_token_cost": 1.25e-06,
        "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 1e-05,
        "max_output_tokens": 16384,
        "max_tokens": 16384,
        "output_cost_per_reasoning_token": 0.0,
        "supports_vision": true
    },
    "sonar": {
        "input_cost_per_token": 1.5e-07, "input_cost_per_request": 5e-03,
        "search_context_cost_per_query": {"search_context_size_low": 0.005}, "output_cost_per_image": 0.04
    },
    "dall-e-3": {"output_cost_per_image": 0.04},
    "odd": {"input_cost_per_token": "cheap"},
    "no-map": 7
}"#;

    fn import(model: &str) -> Result<ImportedPrices, InvalidField> {
        LiteLlmPrices::parse(FILE).unwrap().prices(model)
    }

    #[test]
    fn costs_per_token_become_prices_per_million() {
        let imported = import("gpt-4o").unwrap();
        let money = |text: &str| Some(text.parse().unwrap());
        let expected = Prices {
            input: money("$2.50"),
            output: money("$10"),
            cached_input: money("$1.25"),
            max_output: Some(16_384),
            ..Prices::default()
        };
        assert_eq!((imported.prices, imported.left_out), (expected, vec![]));
    }

    #[test]
    fn costs_that_cannot_be_imported_are_named() {
        let imported = import("sonar").unwrap();
        assert_eq!(imported.prices.input.unwrap().to_string(), "$0.15");
        assert_eq!(imported.prices.per_call.unwrap().to_string(), "$0.005");
        assert_eq!(
            imported.left_out,
            ["output_cost_per_image", "search_context_cost_per_query"]
        );
    }

    #[test]
    fn mistakes_name_the_model_and_the_field() {
        for (model, expected) in [
            ("gpt-4", "gpt-4: is not in the file; did you mean \"gpt-4o\"?"),
            ("dall-e-3", "dall-e-3.input: set at least one price"),
            ("odd", "odd.input_cost_per_token: money"),
            ("no-map", "no-map: must be a map"),
            ("sample_spec", "sample_spec.max_output_tokens"),
        ] {
            let message = import(model).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        assert!(
            LiteLlmPrices::parse("[]")
                .unwrap_err()
                .to_string()
                .contains("JSON map")
        );
    }
}
