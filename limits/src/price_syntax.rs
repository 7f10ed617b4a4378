//! The syntax of prices in a file.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use zae_limiter::LimitName;
use zae_limiter::money::{MicroDollars, Prices};

use crate::limit_syntax::{InvalidField, unknown_field};

const FIELDS: [&str; 9] = [
    "input",
    "output",
    "cached_input",
    "cache_write",
    "per_call",
    "default_output",
    "max_output",
    "money_limit",
    "token_limits",
];

/// Parses prices: `{input: $2.50, output: $10, max_output: 16384}`.
pub(crate) fn prices(path: &str, value: &Value) -> Result<Prices, Vec<InvalidField>> {
    let Value::Object(fields) = value else {
        let rule = format!("must be a map with {}", FIELDS.join(", "));
        return Err(vec![InvalidField::new(path, rule)]);
    };
    let mut parser = Parser {
        path,
        fields,
        invalid: vec![],
    };
    let default = Prices::default();
    let prices = Prices {
        input: parser.money("input"),
        output: parser.money("output"),
        cached_input: parser.money("cached_input"),
        cache_write: parser.money("cache_write"),
        per_call: parser.money("per_call"),
        default_output: parser.tokens("default_output"),
        max_output: parser.tokens("max_output"),
        money_limit: parser.name("money_limit").unwrap_or(default.money_limit),
        token_limits: parser.names("token_limits").unwrap_or(default.token_limits),
    };
    let unknown = fields.keys().filter(|field| !FIELDS.contains(&field.as_str()));
    parser
        .invalid
        .extend(unknown.map(|field| unknown_field(path, field, &FIELDS)));
    if parser.invalid.is_empty()
        && let Err(invalid) = prices.check()
    {
        parser.reject(invalid.field, invalid.rule);
    }
    if parser.invalid.is_empty() {
        Ok(prices)
    } else {
        Err(parser.invalid)
    }
}

/// Collects invalid fields, so that one mistake does not hide the next.
struct Parser<'a> {
    path: &'a str,
    fields: &'a Map<String, Value>,
    invalid: Vec<InvalidField>,
}

impl Parser<'_> {
    fn reject(&mut self, field: &str, problem: impl Into<String>) {
        let path = format!("{}.{field}", self.path);
        self.invalid.push(InvalidField::new(&path, problem));
    }

    fn money(&mut self, field: &str) -> Option<MicroDollars> {
        let value = self.fields.get(field)?;
        let Some(text) = value.as_str() else {
            self.reject(
                field,
                format!("{value} must be text, such as $2.50 for a million tokens"),
            );
            return None;
        };
        match text.parse() {
            Ok(money) => Some(money),
            Err(error) => {
                self.reject(field, error.to_string());
                None
            }
        }
    }

    fn tokens(&mut self, field: &str) -> Option<u64> {
        let value = self.fields.get(field)?;
        let tokens = value.as_u64();
        if tokens.is_none() {
            self.reject(field, format!("{value} must be a number of tokens"));
        }
        tokens
    }

    fn name(&mut self, field: &str) -> Option<LimitName> {
        let value = self.fields.get(field)?;
        self.parse_name(field, value)
    }

    fn names(&mut self, field: &str) -> Option<BTreeSet<LimitName>> {
        let value = self.fields.get(field)?;
        let Some(names) = value.as_array() else {
            self.reject(field, "must be a list of names of limits");
            return None;
        };
        names.iter().map(|name| self.parse_name(field, name)).collect()
    }

    fn parse_name(&mut self, field: &str, value: &Value) -> Option<LimitName> {
        let Some(text) = value.as_str() else {
            self.reject(field, format!("{value} must be the name of a limit"));
            return None;
        };
        match LimitName::parse(text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.reject(field, error.to_string());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_is_read() {
        let value = json!({
            "input": "$2.50", "output": "10 usd", "cached_input": "$1.25", "cache_write": "$3.125",
            "per_call": "$0.01", "default_output": 1000, "max_output": 16384,
            "money_limit": "spend", "token_limits": ["tpm", "tpd"],
        });
        let money = |text: &str| Some(text.parse().unwrap());
        let expected = Prices {
            input: money("$2.50"),
            output: money("$10"),
            cached_input: money("$1.25"),
            cache_write: money("$3.125"),
            per_call: money("$0.01"),
            default_output: Some(1_000),
            max_output: Some(16_384),
            money_limit: "spend".parse().unwrap(),
            token_limits: ["tpd", "tpm"].map(|name| name.parse().unwrap()).into(),
        };
        assert_eq!(prices("prices", &value).unwrap(), expected);
        let json = serde_json::to_value(&expected).unwrap();
        assert_eq!(prices("prices", &json).unwrap(), expected, "as it is printed");
    }

    #[test]
    fn all_mistakes_are_reported_with_their_path() {
        let value = json!({
            "input": 2.5, "output": "10", "max_output": -1, "money_limit": "9", "token_limits": "tpm", "per_cal": "$1",
        });
        let invalid = prices("resources.gpt-4.prices", &value).unwrap_err();
        let paths: Vec<_> = invalid.iter().map(|field| field.path.as_str()).collect();
        let expected = [
            "input",
            "output",
            "max_output",
            "money_limit",
            "token_limits",
            "per_cal",
        ];
        assert_eq!(
            paths,
            expected.map(|field| format!("resources.gpt-4.prices.{field}"))
        );
        assert!(invalid[5].problem.contains("did you mean \"per_call\"?"));
    }

    #[test]
    fn rules_that_concern_several_fields_are_checked() {
        let both = json!({"input": "$1", "token_limits": ["usd"]});
        assert_eq!(
            prices("prices", &both).unwrap_err()[0].path,
            "prices.token_limits"
        );
        assert!(
            prices("prices", &json!([])).unwrap_err()[0]
                .problem
                .contains("must be a map")
        );
    }
}
