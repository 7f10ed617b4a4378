//! The locations of the functions' archives.

use serde_json::Value;

use super::{LambdaFunction, ids};
use crate::Error;
use crate::model::lambda::Code;
use crate::model::{Model, Parameter, Pseudo, Text};
use crate::options::{BucketName, StackOptions};

/// The bucket with the functions' archives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeBucket {
    /// `zae-limiter-artifacts-{account}-{region}`.
    Artifacts,
    /// A bucket given by name.
    Named(BucketName),
}

impl CodeBucket {
    /// The bucket of the options.
    pub fn of(options: &StackOptions) -> Self {
        options
            .code_bucket()
            .cloned()
            .map_or(Self::Artifacts, Self::Named)
    }

    /// The bucket's name in an account and region.
    ///
    /// ```
    /// use zae_limiter_template::CodeBucket;
    ///
    /// let name = CodeBucket::Artifacts.name("123456789012", "eu-west-1");
    /// assert_eq!(name, "zae-limiter-artifacts-123456789012-eu-west-1");
    /// ```
    pub fn name(&self, account: &str, region: &str) -> String {
        match self {
            Self::Artifacts => format!("{ARTIFACTS}{account}-{region}"),
            Self::Named(name) => name.to_string(),
        }
    }

    fn text(&self) -> Text {
        match self {
            Self::Artifacts => Text::from(ARTIFACTS)
                .then(Pseudo::AccountId)
                .then("-")
                .then(Pseudo::Region),
            Self::Named(name) => name.as_str().into(),
        }
    }
}

const ARTIFACTS: &str = "zae-limiter-artifacts-";

/// The location of a function's archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeLocation {
    /// An object in a bucket.
    Object {
        /// The bucket.
        bucket: CodeBucket,
        /// The object's key, such as `{sha256}.zip`.
        key: String,
    },
    /// The `Code` property of the deployed template, so that the code does not change.
    Deployed(Value),
    /// The parameters `CodeBucket`, `AggregatorCodeKey` and `ArchiverCodeKey`.
    Parameters,
}

/// The locations of the functions' archives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunctionCode {
    /// The aggregator's.
    pub aggregator: Option<CodeLocation>,
    /// The archiver's.
    pub archiver: Option<CodeLocation>,
}

impl FunctionCode {
    /// No archives, for stacks without functions.
    pub fn none() -> Self {
        Self::default()
    }

    /// Parameters, for templates that other tools deploy.
    pub fn parameters() -> Self {
        Self {
            aggregator: Some(CodeLocation::Parameters),
            archiver: Some(CodeLocation::Parameters),
        }
    }

    /// The objects that the options name.
    pub fn of(options: &StackOptions) -> Self {
        let bucket = CodeBucket::of(options);
        let object = |key: &crate::options::ObjectKey| CodeLocation::Object {
            bucket: bucket.clone(),
            key: key.to_string(),
        };
        Self {
            aggregator: options.aggregator_code_key().map(object),
            archiver: options.archiver_code_key().map(object),
        }
    }

    /// Adds the location of a function's archive.
    ///
    /// ```
    /// use zae_limiter_template::{CodeBucket, CodeLocation, FunctionCode, LambdaFunction};
    ///
    /// let object = CodeLocation::Object { bucket: CodeBucket::Artifacts, key: "aggregator.zip".to_owned() };
    /// let code = FunctionCode::none().with(LambdaFunction::Aggregator, object.clone());
    /// assert_eq!(code.get(LambdaFunction::Aggregator), Some(&object));
    /// ```
    #[must_use]
    pub fn with(mut self, function: LambdaFunction, location: CodeLocation) -> Self {
        match function {
            LambdaFunction::Aggregator => self.aggregator = Some(location),
            LambdaFunction::Archiver => self.archiver = Some(location),
        }
        self
    }

    /// The location of a function's archive.
    pub fn get(&self, function: LambdaFunction) -> Option<&CodeLocation> {
        match function {
            LambdaFunction::Aggregator => self.aggregator.as_ref(),
            LambdaFunction::Archiver => self.archiver.as_ref(),
        }
    }
}

/// The functions' `Code` properties, with the parameters that they need in the model.
pub(super) fn resolve(
    model: &mut Model,
    code: &FunctionCode,
    functions: &[LambdaFunction],
) -> Result<Vec<(LambdaFunction, Code)>, Error> {
    let located = functions.iter().map(|function| {
        let location = code
            .get(*function)
            .ok_or(Error::CodeMissing { function: *function })?;
        Ok((*function, location.clone()))
    });
    let located = located.collect::<Result<Vec<_>, Error>>()?;
    let bucket = if located
        .iter()
        .any(|(_, location)| *location == CodeLocation::Parameters)
    {
        model.add_parameter(ids::CODE_BUCKET, bucket_parameter())?
    } else {
        Text::default()
    };
    let mut resolved = Vec::new();
    for (function, location) in located {
        let code = match location {
            CodeLocation::Object { bucket, key } => Code::Object {
                bucket: bucket.text(),
                key: key.into(),
            },
            CodeLocation::Deployed(value) => Code::Deployed(value),
            CodeLocation::Parameters => {
                let key = model.add_parameter(function.ids().code_key, key_parameter(function))?;
                Code::Object {
                    bucket: bucket.clone(),
                    key,
                }
            }
        };
        resolved.push((function, code));
    }
    Ok(resolved)
}

pub(super) fn bucket_parameter() -> Parameter {
    Parameter {
        r#type: "String",
        description: "Bucket with the functions' archives, in the region of the stack".to_owned(),
        default: None,
        allowed_values: None,
        allowed_pattern: Some("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"),
        constraint_description: Some("must be the name of a bucket"),
    }
}

fn key_parameter(function: LambdaFunction) -> Parameter {
    Parameter {
        r#type: "String",
        description: format!("Key of the {function}'s archive in the bucket; a new key for new code"),
        default: None,
        allowed_values: None,
        allowed_pattern: Some("^.{1,1024}$"),
        constraint_description: Some("must be the key of an object"),
    }
}
