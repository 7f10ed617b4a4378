//! The syntax of limits in a file or a JSON argument: as text or as fields.

use serde_json::{Map, Value};
use zae_limiter::{Limit, LimitName, LimitSet};

/// An invalid field: its path and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct InvalidField {
    /// The path, such as `resources.gpt-4.limits.rpm`.
    pub path: String,
    /// The rule that it breaks.
    pub problem: String,
}

impl InvalidField {
    pub(crate) fn new(path: &str, problem: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

/// Every invalid field of a file, so that all can be corrected at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct InvalidFields {
    /// The fields, in the order of the file's parts.
    pub fields: Vec<InvalidField>,
}

impl From<InvalidField> for InvalidFields {
    fn from(field: InvalidField) -> Self {
        Self { fields: vec![field] }
    }
}

impl From<Vec<InvalidField>> for InvalidFields {
    fn from(fields: Vec<InvalidField>) -> Self {
        Self { fields }
    }
}

/// An unknown field, with the one that was probably meant.
pub(crate) fn unknown_field(path: &str, field: &str, known: &[&str]) -> InvalidField {
    let meant = similar(field, known).map_or_else(String::new, |meant| format!(", did you mean {meant:?}?"));
    let at = if path == "file" {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    };
    InvalidField::new(
        &at,
        format!("unknown field{meant}; the fields are {}", known.join(", ")),
    )
}

/// The known word that is most like this one, if any is.
fn similar<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(word, known), *known));
    near.filter(|(distance, known)| *distance <= known.len().div_ceil(3))
        .min()
        .map(|(_, known)| known)
}

/// Parses limits from a JSON argument.
pub fn limits_from_json(text: &str) -> Result<LimitSet, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("not valid JSON: {error}"))?;
    let limits = limits("limits", &value).map_err(|invalid| InvalidFields::from(invalid).to_string())?;
    if limits.is_empty() {
        return Err("must contain at least one limit".to_owned());
    }
    Ok(limits)
}

/// Parses a list of limits, or a map from their names: `["rpm:100"]`, `{"rpm": 100}`, `{"rpm": {"capacity": 100}}`.
pub(crate) fn limits(path: &str, value: &Value) -> Result<LimitSet, Vec<InvalidField>> {
    let parsed: Vec<Result<Limit, Vec<InvalidField>>> = match value {
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(position, entry)| limit_in_list(&format!("{path}[{position}]"), entry))
            .collect(),
        Value::Object(map) => map
            .iter()
            .map(|(name, entry)| limit_in_map(&format!("{path}.{name}"), name, entry))
            .collect(),
        _ => {
            let rule = "must be a list of limits or a map from limit names";
            return Err(vec![InvalidField::new(path, rule)]);
        }
    };
    let (mut limits, mut invalid) = (Vec::new(), Vec::new());
    for limit in parsed {
        match limit {
            Ok(limit) => limits.push(limit),
            Err(fields) => invalid.extend(fields),
        }
    }
    if !invalid.is_empty() {
        return Err(invalid);
    }
    LimitSet::new(limits).map_err(|error| vec![InvalidField::new(path, error.to_string())])
}

fn limit_in_list(path: &str, value: &Value) -> Result<Limit, Vec<InvalidField>> {
    match value {
        Value::String(text) => text.parse().map_err(|error| vec![problem(path, &error)]),
        Value::Object(fields) => limit_from_fields(path, fields.get("name").and_then(Value::as_str), fields),
        _ => Err(vec![InvalidField::new(
            path,
            "must be text such as rpm:100, or a map with name and capacity",
        )]),
    }
}

fn limit_in_map(path: &str, name: &str, value: &Value) -> Result<Limit, Vec<InvalidField>> {
    let from_text = |text: &str| text.parse().map_err(|error| vec![problem(path, &error)]);
    match value {
        Value::String(text) => from_text(&format!("{name}:{text}")),
        Value::Number(number) => from_text(&format!("{name}:{number}")),
        Value::Object(fields) if fields.contains_key("name") => Err(vec![InvalidField::new(
            path,
            "the map key is the name; remove the field name",
        )]),
        Value::Object(fields) => limit_from_fields(path, Some(name), fields),
        _ => Err(vec![InvalidField::new(
            path,
            "must be a capacity, text such as 100/min:150, or a map with capacity",
        )]),
    }
}

/// A limit with a field for each of its parts. The error has every invalid field.
fn limit_from_fields(
    path: &str,
    name: Option<&str>,
    fields: &Map<String, Value>,
) -> Result<Limit, Vec<InvalidField>> {
    const FIELDS: [&str; 11] = [
        "name",
        "capacity",
        "burst",
        "refill_amount",
        "refill_period_seconds",
        "period",
        "quota",
        "per",
        "alert_at",
        "concurrency",
        "expires_after_seconds",
    ];
    let others = ["quota", "per", "alert_at", "concurrency", "expires_after_seconds"];
    if let (Some(name), true) = (name, others.iter().any(|field| fields.contains_key(*field))) {
        let mut named = fields.clone();
        named.insert("name".to_owned(), Value::from(name));
        let limit = serde_json::from_value(Value::Object(named));
        return limit.map_err(|error| vec![problem(path, &error)]);
    }
    let unknown = fields.keys().filter(|field| !FIELDS.contains(&field.as_str()));
    let mut invalid: Vec<_> = unknown.map(|field| unknown_field(path, field, &FIELDS)).collect();
    let mut number = |field: &str| {
        let value = fields.get(field)?;
        if value.as_u64().is_none() {
            let at = format!("{path}.{field}");
            invalid.push(InvalidField::new(&at, format!("{value} is not a whole number")));
        }
        value.as_u64()
    };
    let (capacity, burst) = (number("capacity"), number("burst"));
    let (amount, seconds) = (number("refill_amount"), number("refill_period_seconds"));
    let mut reject = |rule: &str| invalid.push(InvalidField::new(path, rule));
    if name.is_none() {
        reject("name is missing");
    }
    if !fields.contains_key("capacity") {
        reject("capacity is missing");
    }
    if fields.contains_key("period") && fields.contains_key("refill_period_seconds") {
        reject("has both period and refill_period_seconds; remove one");
    }
    let period = fields
        .get("period")
        .map(|period| period_seconds(&format!("{path}.period"), period));
    let period = match period.transpose() {
        Ok(period) => period.or(seconds).unwrap_or(60),
        Err(field) => {
            invalid.push(field);
            60
        }
    };
    let name = name.map(|name| LimitName::parse(name).map_err(|error| problem(path, &error)));
    let name = name.transpose().unwrap_or_else(|field| {
        invalid.push(field);
        None
    });
    match (name, capacity) {
        (Some(name), Some(capacity)) if invalid.is_empty() => Limit::from_parts(
            name,
            capacity,
            burst.unwrap_or(capacity),
            amount.unwrap_or(capacity),
            period,
        )
        .map_err(|error| vec![problem(path, &error)]),
        _ => Err(invalid),
    }
}

/// A period as in the text form: `sec`, `min`, `hour`, `day`, `90s`.
fn period_seconds(path: &str, value: &Value) -> Result<u64, InvalidField> {
    let text = value.as_str().unwrap_or_default();
    let parsed: Result<Limit, _> = format!("any:1/{text}").parse();
    let seconds = parsed
        .ok()
        .and_then(|limit| Some(limit.rate()?.refill_period_seconds()));
    seconds.ok_or_else(|| {
        InvalidField::new(
            path,
            format!("{value} is not sec, min, hour, day, or a number of seconds such as 90s"),
        )
    })
}

fn problem(path: &str, error: &impl std::fmt::Display) -> InvalidField {
    InvalidField::new(path, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(json: &str) -> Vec<String> {
        limits_from_json(json)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn every_form_gives_the_same_limits() {
        let wanted = ["rpm:100/min", "tpm:10000/hour:15000"];
        for form in [
            r#"["rpm:100", "tpm:10000/hour:15000"]"#,
            r#"{"rpm": 100, "tpm": "10000/hour:15000"}"#,
            r#"{"rpm": {"capacity": 100}, "tpm": {"capacity": 10000, "burst": 15000, "period": "hour"}}"#,
            r#"[{"name": "rpm", "capacity": 100}, {"name": "tpm", "capacity": 10000, "burst": 15000, "refill_period_seconds": 3600}]"#,
        ] {
            assert_eq!(texts(form), wanted, "{form}");
        }
    }

    #[test]
    fn other_kinds_are_text_or_fields() {
        let wanted = [
            "parallel:8 at once for 10min",
            "spend:500 per month in Europe/Berlin alert at 80% 100%",
        ];
        for form in [
            r#"["parallel:8 at once for 10min", "spend:500 per month in Europe/Berlin alert at 80% 100%"]"#,
            r#"{"parallel": "8 at once for 600s", "spend": "500 per month in Europe/Berlin alert at 100% 80%"}"#,
            r#"{"parallel": {"concurrency": 8, "expires_after_seconds": 600},
                "spend": {"quota": 500, "per": "month in europe/berlin", "alert_at": [80, 100]}}"#,
        ] {
            assert_eq!(texts(form), wanted, "{form}");
        }
        for (form, problem) in [
            (r#"{"spend": {"quota": 5}}"#, "missing field `per`"),
            (r#"{"spend": {"quota": 5, "per": "fortnight"}}"#, "fortnight"),
            (
                r#"{"spend": {"quota": 5, "per": "day", "burst": 6}}"#,
                "mixes the fields",
            ),
            (r#"{"spend": {"quota": 0, "per": "day"}}"#, "it must be above 0"),
            (
                r#"{"spend": {"quota": 5, "per": "day", "alert_at": [120]}}"#,
                "it must be 1 to 100 percent",
            ),
            (
                r#"{"parallel": {"concurrency": 8, "alert_at": [80]}}"#,
                "mixes the fields",
            ),
        ] {
            let error = limits_from_json(form).unwrap_err();
            assert!(error.contains(problem), "{form}: {error}");
        }
    }

    #[test]
    fn printed_limits_can_be_parsed() {
        let limit: Limit = "tpm:10000/90s:15000@500".parse().unwrap();
        let json = serde_json::to_string(&[&limit]).unwrap();
        assert_eq!(texts(&json), [limit.to_string()]);
    }

    #[test]
    fn every_invalid_field_of_a_limit_is_reported() {
        let fields = r#"[{"capacitiy": 5, "burst": "x", "period": "week", "name": "a b"}]"#;
        let problem = limits_from_json(fields).unwrap_err();
        for expected in [
            "limits[0].capacitiy: unknown field, did you mean \"capacity\"?",
            "limits[0].burst: \"x\" is not a whole number",
            "limits[0]: capacity is missing",
            "limits[0].period: \"week\" is not",
            "limits[0]: limit name \"a b\"",
        ] {
            assert!(problem.contains(expected), "{expected}: {problem}");
        }
    }

    #[test]
    fn errors_name_the_path() {
        for (json, expected) in [
            (r#"["rpm"]"#, "limits[0]"),
            (r#"{"rpm": 0}"#, "limits.rpm"),
            (r#"{"rpm": {"capacity": 1, "bursts": 2}}"#, "bursts"),
            (r#"{"rpm": {"capacity": -1}}"#, "limits.rpm.capacity"),
            (r#"{"rpm": {"burst": 1}}"#, "capacity is missing"),
            (
                r#"{"rpm": {"capacity": 1, "period": "week"}}"#,
                "limits.rpm.period",
            ),
            (
                r#"{"rpm": {"capacity": 1, "period": "day", "refill_period_seconds": 60}}"#,
                "both",
            ),
            ("[7]", "limits[0]: must be text"),
            (r#"[{"capacity": 1}]"#, "limits[0]: name is missing"),
            (r#"{"rpm": true}"#, "limits.rpm: must be a capacity"),
            (
                r#"{"rpm": {"name": "tpm", "capacity": 1}}"#,
                "limits.rpm: the map key is the name",
            ),
            (r#"["rpm:1", "rpm:2"]"#, "limits: duplicate limit name rpm"),
            (r#"{"ttl": 5}"#, "limits.ttl"),
            ("7", "limits"),
            ("[]", "at least one limit"),
            ("{", "not valid JSON"),
        ] {
            let problem = limits_from_json(json).unwrap_err();
            assert!(problem.contains(expected), "{json}: {problem}");
        }
    }
}
