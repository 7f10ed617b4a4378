//! The desired state of a stack.

#[macro_use]
mod declare;

mod choices;
mod field;
mod fields;
mod formats;
mod mistake;
mod names;
mod raw;
mod rules;
mod stored;

pub use choices::{AcquirePolicy, Architecture, IndexProjection, ObjectLockMode, StreamStart, TableClass};
pub use field::{Accepts, Field, FieldKind};
use fields::Settings;
pub use fields::StackOptionsBuilder;
pub use formats::{
    AccountId, BucketName, EventBusName, IamPath, KeyArn, NameFormat, ObjectKey, PermissionBoundary, RoleArn,
    SecurityGroupId, SubnetId, TopicArn,
};
pub use mistake::{InvalidOptions, Mistake};
pub use raw::Words;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::resources::LambdaFunction;

/// The desired state of a stack, checked.
///
/// Build them with [`StackOptions::builder`] or read them from a file; each option has a method of its name.
///
/// ```
/// use zae_limiter_template::StackOptions;
///
/// let options = StackOptions::builder().lambda_memory(512).alarm_sns_topic("arn:aws:sns:eu-west-1:123456789012:ops");
/// assert_eq!(options.build()?.lambda_memory(), 512);
///
/// let wrong = StackOptions::builder().lambda_memory(64).log_retention_days(2).build();
/// assert_eq!(wrong.unwrap_err().mistakes().len(), 2);
/// # Ok::<(), zae_limiter_template::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "StackOptionsBuilder", into = "StackOptionsBuilder")]
pub struct StackOptions {
    given: StackOptionsBuilder,
    settings: Settings,
}

impl StackOptions {
    fn settled(given: StackOptionsBuilder, settings: Settings) -> Self {
        Self { given, settings }
    }

    /// A builder with every option at its default.
    pub fn builder() -> StackOptionsBuilder {
        StackOptionsBuilder::default()
    }

    /// Reads an options file, YAML or JSON. An empty file means the defaults.
    ///
    /// ```
    /// use zae_limiter_template::StackOptions;
    ///
    /// let options = StackOptions::from_file("lambda_memory: 512\nsnapshot_windows: [hourly, monthly]\n")?;
    /// assert_eq!(options.lambda_memory(), 512);
    /// assert!(StackOptions::from_file("lambda_memroy: 512").is_err());
    /// # Ok::<(), zae_limiter_template::Error>(())
    /// ```
    pub fn from_file(text: &str) -> Result<Self, Error> {
        Ok(StackOptionsBuilder::from_file(text)?.build()?)
    }

    /// Options from a JSON object with their names, such as an options file merged with command-line flags.
    ///
    /// ```
    /// use zae_limiter_template::StackOptions;
    ///
    /// let options = StackOptions::from_value(serde_json::json!({ "lambda_memory": 512 }))?;
    /// assert_eq!(options, StackOptions::builder().lambda_memory(512).build()?);
    /// # Ok::<(), zae_limiter_template::Error>(())
    /// ```
    pub fn from_value(value: serde_json::Value) -> Result<Self, Error> {
        let given: StackOptionsBuilder =
            serde_json::from_value(value).map_err(|source| Error::OptionsValue { source })?;
        Ok(given.build()?)
    }

    /// A builder with these options, to change some of them.
    pub fn to_builder(&self) -> StackOptionsBuilder {
        self.given.clone()
    }

    /// Whether the stack has a function: it is enabled and there is a role for it.
    pub fn has(&self, function: LambdaFunction) -> bool {
        let (wanted, role) = match function {
            LambdaFunction::Aggregator => (self.enable_aggregator(), self.aggregator_role_arn()),
            LambdaFunction::Archiver => (self.enable_audit_archival(), self.archiver_role_arn()),
        };
        wanted && (self.create_iam() || role.is_some())
    }

    /// The functions of the stack.
    pub fn functions(&self) -> Vec<LambdaFunction> {
        LambdaFunction::ALL
            .into_iter()
            .filter(|function| self.has(*function))
            .collect()
    }

    /// The functions that are enabled but left out, because without `create_iam` they have no role.
    pub fn functions_without_role(&self) -> Vec<LambdaFunction> {
        let wanted = |function| match function {
            LambdaFunction::Aggregator => self.enable_aggregator(),
            LambdaFunction::Archiver => self.enable_audit_archival(),
        };
        LambdaFunction::ALL
            .into_iter()
            .filter(|function| wanted(*function) && !self.has(*function))
            .collect()
    }
}

impl StackOptionsBuilder {
    /// Reads an options file without checking the values, so that more can be set.
    pub fn from_file(text: &str) -> Result<Self, Error> {
        let parsed: Option<Self> =
            serde_yaml::from_str(text).map_err(|source| Error::OptionsFile { source })?;
        Ok(parsed.unwrap_or_default())
    }
}

impl Default for StackOptions {
    fn default() -> Self {
        let given = StackOptionsBuilder::default();
        match given.settle() {
            Ok(settings) => Self { given, settings },
            Err(mistakes) => unreachable!("the defaults break their own rules: {mistakes:?}"),
        }
    }
}

/// Options are equal if they mean the same, however they were written.
impl PartialEq for StackOptions {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

impl Eq for StackOptions {}

impl TryFrom<StackOptionsBuilder> for StackOptions {
    type Error = InvalidOptions;

    fn try_from(given: StackOptionsBuilder) -> Result<Self, InvalidOptions> {
        given.build()
    }
}

impl From<StackOptions> for StackOptionsBuilder {
    fn from(options: StackOptions) -> Self {
        options.given
    }
}

impl FromStr for StackOptions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::from_file(text)
    }
}
