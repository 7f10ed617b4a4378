//! The function's settings, which the stack's template sets.

use zae_limiter_function::{Environment, InvalidSetting};
use zae_limiter_schema::WindowKind;

/// The function's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The table: `TABLE_NAME`.
    pub table: String,
    /// The queue for dead letters: `DLQ_URL`.
    pub dead_letters: String,
    /// The windows that are counted: `SNAPSHOT_WINDOWS`, such as `hourly,daily`.
    pub windows: Vec<WindowKind>,
    /// How long a snapshot is kept after its window: `SNAPSHOT_TTL_DAYS`.
    pub retention_days: u32,
    /// The bus for events about thresholds of quotas: `EVENT_BUS`, a name or an ARN. Without it none are sent.
    pub event_bus: Option<String>,
}

impl Settings {
    /// Reads and checks the environment.
    ///
    /// ```
    /// use zae_limiter_aggregator::Settings;
    /// use zae_limiter_function::Environment;
    ///
    /// let error = Settings::read(&Environment::of([
    ///     ("TABLE_NAME", "limiter"),
    ///     ("DLQ_URL", "https://sqs.eu-west-1.amazonaws.com/123456789012/dlq"),
    ///     ("SNAPSHOT_WINDOWS", "hourly,weekly"),
    /// ]));
    /// assert_eq!(
    ///     error.unwrap_err().to_string(),
    ///     r#"environment variable SNAPSHOT_WINDOWS is "hourly,weekly": window "weekly" is invalid: it must be hourly, daily or monthly"#
    /// );
    /// ```
    pub fn read(environment: &Environment) -> Result<Self, InvalidSetting> {
        Ok(Self {
            table: environment.required("TABLE_NAME")?,
            dead_letters: environment.required("DLQ_URL")?,
            windows: environment.parsed("SNAPSHOT_WINDOWS", windows)?,
            retention_days: environment.parsed("SNAPSHOT_TTL_DAYS", retention)?,
            event_bus: environment.optional("EVENT_BUS"),
        })
    }
}

fn windows(text: &str) -> Result<Vec<WindowKind>, String> {
    let names = text.split(',').map(str::trim);
    let mut windows = names
        .map(|name| name.parse::<WindowKind>().map_err(|error| error.to_string()))
        .collect::<Result<Vec<_>, _>>()?;
    windows.sort();
    // A window named twice would be counted twice by every group.
    windows.dedup();
    Ok(windows)
}

/// At least one day: the stream delivers a record for that long, and the snapshot must exist to recognize it.
fn retention(text: &str) -> Result<u32, &'static str> {
    let days = text.parse().ok().filter(|days| (1..=36_500).contains(days));
    days.ok_or("it must be a whole number of days from 1 to 36500")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_a_list_without_repetition() {
        assert_eq!(
            windows("daily, hourly,daily"),
            Ok(vec![WindowKind::Hourly, WindowKind::Daily])
        );
        assert!(windows("").is_err());
    }

    #[test]
    fn snapshots_are_kept_at_least_as_long_as_the_stream_delivers() {
        assert!(retention("0").is_err());
        assert_eq!(retention("1"), Ok(1));
    }
}
