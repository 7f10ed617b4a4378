//! The function's settings, which the stack's template sets.

use zae_limiter_function::{Environment, InvalidSetting};

/// The function's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The archive: `ARCHIVE_BUCKET_NAME`.
    pub bucket: String,
    /// The queue for dead letters: `DLQ_URL`.
    pub dead_letters: String,
}

impl Settings {
    /// Reads and checks the environment.
    ///
    /// ```
    /// use zae_limiter_archiver::Settings;
    /// use zae_limiter_function::Environment;
    ///
    /// assert_eq!(
    ///     Settings::read(&Environment::of([("DLQ_URL", "http://127.0.0.1/dlq")])).unwrap_err().to_string(),
    ///     "environment variable ARCHIVE_BUCKET_NAME is not set; the stack's template sets it"
    /// );
    /// ```
    pub fn read(environment: &Environment) -> Result<Self, InvalidSetting> {
        Ok(Self {
            bucket: environment.required("ARCHIVE_BUCKET_NAME")?,
            dead_letters: environment.required("DLQ_URL")?,
        })
    }
}
