//! The form that changes the limits of a level, parsed.

use zae_limiter::error::InvalidLimit;
use zae_limiter::money::{InvalidMoney, MicroDollars, Prices, dollars};
use zae_limiter::records::ConfigRecord;
use zae_limiter::{Error, Limit, OnUnavailable, Timestamp};

use super::failure::Failure;
use super::form::Form;

const DEFAULT_PERIOD: u64 = 60;

/// A row as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) capacity: String,
    pub(crate) period: String,
    pub(crate) burst: String,
    pub(crate) refill: String,
}

/// The form as it was typed. Rows without a name are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LimitForm {
    pub(crate) rows: Vec<Row>,
    pub(crate) policy: Option<OnUnavailable>,
    /// When the limits end, as it was typed; empty if they last.
    pub(crate) until: String,
    /// What the level stored when the form was filled; empty if it stored nothing.
    pub(crate) seen: String,
}

impl LimitForm {
    /// The form for what is stored.
    pub(crate) fn of(record: Option<&ConfigRecord>) -> Self {
        let limits = record.into_iter().flat_map(|record| record.limits.iter());
        Self {
            rows: limits.map(Row::of).collect(),
            policy: record.and_then(|record| record.on_unavailable),
            until: String::new(),
            seen: fingerprint(record),
        }
    }

    pub(crate) fn sent(form: &Form) -> Self {
        let mut columns = ["capacity", "period", "burst", "refill"].map(|name| form.all(name));
        let mut rows = vec![];
        for name in form.all("name") {
            let mut next = columns.each_mut().map(|column| {
                let value = column.next().unwrap_or_default();
                value.trim().to_owned()
            });
            let [capacity, period, burst, refill] = next.each_mut().map(std::mem::take);
            rows.push(Row {
                name: name.trim().to_owned(),
                capacity,
                period,
                burst,
                refill,
            });
        }
        rows.retain(|row| !row.name.is_empty());
        Self {
            rows,
            policy: match form.first("policy") {
                Some("allow") => Some(OnUnavailable::Allow),
                Some("block") => Some(OnUnavailable::Block),
                _ => None,
            },
            until: form.first("until").unwrap_or_default().trim().to_owned(),
            seen: form.first("seen").unwrap_or_default().to_owned(),
        }
    }

    /// The limits, or what is wrong with the first row that is invalid.
    pub(crate) fn limits(&self) -> Result<Vec<Limit>, Failure> {
        self.rows.iter().map(Row::limit).collect()
    }

    /// When the limits end, if they do.
    pub(crate) fn until(&self) -> Result<Option<Timestamp>, Failure> {
        if self.until.is_empty() {
            return Ok(None);
        }
        // A date alone is its midnight.
        let candidates = [
            self.until.clone(),
            format!("{}Z", self.until),
            format!("{}T00:00:00Z", self.until),
        ];
        let end = candidates.iter().find_map(|text| Timestamp::parse(text).ok());
        let rule = "it must be a date such as 2026-12-01, or a time such as 2026-12-01T12:00:00Z";
        end.map(Some)
            .ok_or_else(|| Failure::invalid("until", &self.until, rule))
    }

    /// What the form asks for, in a line; empty if it is nothing.
    pub(crate) fn summary(&self) -> String {
        let policy = self.policy.map(|policy| policy.as_str().to_owned());
        policy
            .into_iter()
            .chain(self.rows.iter().map(Row::summary))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// True if the level has not changed since the form was filled.
    pub(crate) fn is_current(&self, record: Option<&ConfigRecord>) -> bool {
        self.seen == fingerprint(record)
    }
}

/// As limits are written as text.
fn counts_money(limit: &Limit) -> bool {
    limit.name().as_str() == Prices::DEFAULT_MONEY_LIMIT
}

/// What a level stores, in a line. Its version alone is not enough: it starts again when a level is deleted and set again.
fn fingerprint(record: Option<&ConfigRecord>) -> String {
    let Some(record) = record else {
        return String::new();
    };
    let policy = record.on_unavailable.map(OnUnavailable::as_str);
    let mut parts = vec![
        format!("version {}", record.config_version),
        policy.unwrap_or("no policy").to_owned(),
    ];
    parts.extend(record.limits.iter().map(ToString::to_string));
    if let Some(temporary) = &record.temporary {
        parts.push(format!("until {}", temporary.until));
        parts.extend(temporary.limits.iter().map(ToString::to_string));
    }
    parts.join(", ")
}

impl Row {
    fn of(limit: &Limit) -> Self {
        let Some(rate) = limit.rate() else {
            // Other kinds are written as text.
            return Self {
                name: limit.name().to_string(),
                capacity: limit.kind().text(counts_money(limit)),
                ..Self::default()
            };
        };
        let capacity = limit.capacity().get();
        let shown = |amount: u64| {
            if counts_money(limit) {
                dollars(amount.into())
            } else {
                amount.to_string()
            }
        };
        let unless_capacity = |amount: u64| {
            if amount == capacity {
                String::new()
            } else {
                shown(amount)
            }
        };
        Self {
            name: limit.name().to_string(),
            capacity: shown(capacity),
            period: rate.refill_period_seconds().to_string(),
            burst: unless_capacity(limit.burst().get()),
            refill: unless_capacity(rate.refill_amount().get()),
        }
    }

    /// The limit as the command writes it, or name and capacity as they were typed if it is invalid.
    fn summary(&self) -> String {
        self.limit().map_or_else(
            |_| format!("{}:{}", self.name, self.capacity),
            |limit| limit.to_string(),
        )
    }

    fn limit(&self) -> Result<Limit, Failure> {
        if self.capacity.contains(' ') {
            let text = format!("{}:{}", self.name, self.capacity);
            return text
                .parse()
                .map_err(|error: InvalidLimit| Error::from(error).into());
        }
        let number = |field: &str, text: &str, otherwise: Option<u64>| match (text, otherwise) {
            ("", Some(number)) => Ok(number),
            _ if text.starts_with('$') => {
                text.parse()
                    .map(MicroDollars::get)
                    .map_err(|error: InvalidMoney| {
                        let field = format!("{field} of {}", self.name);
                        Failure::invalid(&field, text, error.rule())
                    })
            }
            _ => text.parse().map_err(|_| {
                let field = format!("{field} of {}", self.name);
                Failure::invalid(&field, text, "it must be a whole number")
            }),
        };
        let capacity = number("capacity", &self.capacity, None)?;
        let burst = number("burst", &self.burst, Some(capacity))?;
        let refill = number("refill", &self.refill, Some(capacity))?;
        let period = number("period", &self.period, Some(DEFAULT_PERIOD))?;
        let limit = Limit::custom(&self.name, capacity, burst, refill, period);
        limit.map_err(|error| Error::from(error).into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn row(name: &str, capacity: &str) -> Row {
        Row {
            name: name.to_owned(),
            capacity: capacity.to_owned(),
            ..Row::default()
        }
    }

    #[test]
    fn what_is_left_empty_is_the_capacity_every_minute() {
        let form = LimitForm {
            rows: vec![row("rpm", "100")],
            ..LimitForm::default()
        };
        assert_eq!(form.limits().unwrap(), [Limit::per_minute("rpm", 100).unwrap()]);
    }

    #[test]
    fn a_limit_survives_the_form() {
        for limit in [
            Limit::per_minute("rpm", 100).unwrap(),
            Limit::custom("tpm", 100, 300, 20, 90).unwrap(),
            "spend:500 per month in Europe/Berlin".parse().unwrap(),
            "parallel:8 at once for 10min".parse().unwrap(),
            "usd:$10 per month".parse().unwrap(),
            "usd:$10.50/day:$20".parse().unwrap(),
        ] {
            assert_eq!(Row::of(&limit).limit().unwrap(), limit);
        }
    }

    #[test]
    fn what_is_wrong_names_field_value_and_rule() {
        let failure = row("rpm", "many").limit().unwrap_err();
        assert_eq!(
            failure.cause,
            "capacity of rpm \"many\" is invalid: it must be a whole number"
        );
        assert!(row("r#m", "1").limit().unwrap_err().invalid);
        let failure = row("usd", "$1.0000001").limit().unwrap_err();
        assert_eq!(
            failure.cause,
            "capacity of usd \"$1.0000001\" is invalid: it must have at most 6 decimal places"
        );
    }
}
