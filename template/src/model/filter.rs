//! Event filters of stream records.

use serde_json::{Map, Value, json};

/// The filter of an event source mapping: which stream records a function receives.
///
/// [`matches`](Self::matches) evaluates it by Lambda's rules, so that tests can use real records.
///
/// ```
/// use serde_json::json;
/// use zae_limiter_template::filters;
///
/// let record = json!({
///     "eventName": "INSERT",
///     "dynamodb": { "Keys": { "PK": { "S": "ENTITY#user-1" }, "SK": { "S": "#BUCKET#gpt-4" } } },
/// });
/// assert!(filters::aggregator().matches(&record));
/// assert!(!filters::archiver().matches(&record));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterPattern(Value);

impl FilterPattern {
    /// Matches records of these event names whose key attribute starts with a prefix.
    ///
    /// It uses keys because every record has them.
    pub fn on_key(event_names: &[&str], attribute: &str, prefix: &str) -> Self {
        let mut keys = Map::new();
        keys.insert(attribute.to_owned(), json!({ "S": [{ "prefix": prefix }] }));
        Self(json!({ "eventName": event_names, "dynamodb": { "Keys": keys } }))
    }

    /// Parses a pattern as a template has it.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }

    /// The pattern as JSON.
    pub fn to_value(&self) -> Value {
        self.0.clone()
    }

    /// Whether Lambda would invoke the function with this record.
    ///
    /// It supports equality and `prefix`, which our patterns use; any other operator matches nothing.
    pub fn matches(&self, record: &Value) -> bool {
        matches(&self.0, record)
    }
}

fn matches(pattern: &Value, value: &Value) -> bool {
    match pattern {
        Value::Object(fields) => fields
            .iter()
            .all(|(name, inner)| value.get(name).is_some_and(|value| matches(inner, value))),
        Value::Array(choices) => choices.iter().any(|choice| chosen(choice, value)),
        _ => false,
    }
}

fn chosen(choice: &Value, value: &Value) -> bool {
    match choice {
        Value::Object(operator) => match (operator.get("prefix"), value) {
            (Some(Value::String(prefix)), Value::String(text)) if operator.len() == 1 => {
                text.starts_with(prefix)
            }
            _ => false,
        },
        plain => plain == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, pk: &str) -> Value {
        json!({ "eventName": name, "dynamodb": { "Keys": { "PK": { "S": pk } } } })
    }

    #[test]
    fn event_name_and_prefix_must_both_match() {
        let pattern = FilterPattern::on_key(&["INSERT", "MODIFY"], "PK", "A#");
        assert!(pattern.matches(&record("MODIFY", "A#1")));
        assert!(!pattern.matches(&record("REMOVE", "A#1")));
        assert!(!pattern.matches(&record("INSERT", "B#1")));
        assert!(!pattern.matches(&json!({ "eventName": "INSERT" })));
    }

    #[test]
    fn an_operator_that_is_not_known_matches_nothing() {
        let pattern = FilterPattern(json!({ "eventName": [{ "anything-but": "REMOVE" }] }));
        assert!(!pattern.matches(&record("INSERT", "A#1")));
    }

    #[test]
    fn a_pattern_reads_back_from_its_text() {
        let pattern = FilterPattern::on_key(&["INSERT"], "PK", "A#");
        let text = pattern.to_value().to_string();
        assert_eq!(FilterPattern::parse(&text).ok(), Some(pattern));
    }
}
