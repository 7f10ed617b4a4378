//! The forms in which limits can be written in a file: as text, or as fields.

use serde_json::{Map, Value};
use zae_limiter::{Limit, LimitName, LimitSet};

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// The place, such as `resources.gpt-4.limits.rpm`.
    pub(crate) at: String,
    pub(crate) problem: String,
}

impl Mistake {
    pub(crate) fn new(at: &str, problem: impl Into<String>) -> Self {
        Self {
            at: at.to_owned(),
            problem: problem.into(),
        }
    }
}

/// Limits as a JSON argument.
pub(crate) fn limits_from_json(text: &str) -> Result<LimitSet, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let limits =
        limits("limits", &value).map_err(|mistake| format!("{}: {}", mistake.at, mistake.problem))?;
    if limits.is_empty() {
        return Err("it names no limit".to_owned());
    }
    Ok(limits)
}

/// A list of limits, or a map from their names: `["rpm:100"]`, `{"rpm": 100}`, `{"rpm": {"capacity": 100}}`.
pub(crate) fn limits(at: &str, value: &Value) -> Result<LimitSet, Mistake> {
    let limits = match value {
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(position, entry)| listed(&format!("{at}[{position}]"), entry))
            .collect::<Result<Vec<_>, _>>()?,
        Value::Object(map) => map
            .iter()
            .map(|(name, entry)| named(&format!("{at}.{name}"), name, entry))
            .collect::<Result<Vec<_>, _>>()?,
        _ => {
            return Err(Mistake::new(
                at,
                "it must be a list of limits or a map from their names",
            ));
        }
    };
    LimitSet::new(limits).map_err(|error| Mistake::new(at, error.to_string()))
}

fn listed(at: &str, value: &Value) -> Result<Limit, Mistake> {
    match value {
        Value::String(text) => text.parse().map_err(|error| problem(at, &error)),
        Value::Object(fields) => {
            let name = fields.get("name").and_then(Value::as_str);
            fielded(
                at,
                name.ok_or_else(|| Mistake::new(at, "its name is missing"))?,
                fields,
            )
        }
        _ => Err(Mistake::new(
            at,
            "it must be text such as rpm:100, or a map with name and capacity",
        )),
    }
}

fn named(at: &str, name: &str, value: &Value) -> Result<Limit, Mistake> {
    match value {
        Value::String(text) => format!("{name}:{text}")
            .parse()
            .map_err(|error| problem(at, &error)),
        Value::Number(number) => format!("{name}:{number}")
            .parse()
            .map_err(|error| problem(at, &error)),
        Value::Object(fields) if fields.contains_key("name") => Err(Mistake::new(
            at,
            "its name stands before it; leave the field name out",
        )),
        Value::Object(fields) => fielded(at, name, fields),
        _ => Err(Mistake::new(
            at,
            "it must be a capacity, text such as 100/min:150, or a map with capacity",
        )),
    }
}

fn fielded(at: &str, name: &str, fields: &Map<String, Value>) -> Result<Limit, Mistake> {
    const FIELDS: [&str; 6] = [
        "name",
        "capacity",
        "burst",
        "refill_amount",
        "refill_period_seconds",
        "period",
    ];
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(Mistake::new(
            at,
            format!(
                "it has no field {unknown:?}; the fields are {}",
                FIELDS.join(", ")
            ),
        ));
    }
    let number = |field: &str| match fields.get(field) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| Mistake::new(&format!("{at}.{field}"), format!("{value} is not a whole number"))),
    };
    let capacity = number("capacity")?.ok_or_else(|| Mistake::new(at, "its capacity is missing"))?;
    let period = match (number("refill_period_seconds")?, fields.get("period")) {
        (Some(_), Some(_)) => return Err(Mistake::new(at, "it has both period and refill_period_seconds")),
        (Some(seconds), None) => seconds,
        (None, Some(period)) => period_seconds(&format!("{at}.period"), period)?,
        (None, None) => 60,
    };
    let name = LimitName::parse(name).map_err(|error| problem(at, &error))?;
    Limit::from_parts(
        name,
        capacity,
        number("burst")?.unwrap_or(capacity),
        number("refill_amount")?.unwrap_or(capacity),
        period,
    )
    .map_err(|error| problem(at, &error))
}

/// As in the text form: `sec`, `min`, `hour`, `day`, `90s`.
fn period_seconds(at: &str, value: &Value) -> Result<u64, Mistake> {
    let text = value.as_str().unwrap_or_default();
    let parsed: Result<Limit, _> = format!("any:1/{text}").parse();
    parsed.map(|limit| limit.refill_period_seconds()).map_err(|_| {
        Mistake::new(
            at,
            format!("{value} is not sec, min, hour, day or a number of seconds such as 90s"),
        )
    })
}

fn problem(at: &str, error: &impl std::fmt::Display) -> Mistake {
    Mistake::new(at, error.to_string())
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
    fn every_form_says_the_same() {
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
    fn what_the_command_line_prints_can_be_read_again() {
        let limit: Limit = "tpm:10000/90s:15000@500".parse().unwrap();
        let json = serde_json::to_string(&[&limit]).unwrap();
        assert_eq!(texts(&json), [limit.to_string()]);
    }

    #[test]
    fn mistakes_name_their_place() {
        for (json, place) in [
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
            (r#"["rpm:1", "rpm:2"]"#, "twice"),
            (r#"{"ttl": 5}"#, "limits.ttl"),
            ("7", "limits"),
            ("[]", "no limit"),
            ("{", "no JSON"),
        ] {
            let problem = limits_from_json(json).unwrap_err();
            assert!(problem.contains(place), "{json}: {problem}");
        }
    }
}
