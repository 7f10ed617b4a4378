//! The environment variables of a deployed function, which have the settings of its stack or of its Terraform module.

use aws_config::SdkConfig;
use zae_limiter_function::{CallError, Environment, InvalidSetting};

use crate::error::{Error, Result};

/// The settings of a deployed function, as `read` gets them from its environment.
pub(super) async fn settings<T>(
    function: &str,
    aws: &SdkConfig,
    read: impl FnOnce(&Environment) -> std::result::Result<T, InvalidSetting>,
) -> Result<T> {
    let failed = |problem: String| Error::FunctionSettings {
        function: function.to_owned(),
        problem,
    };
    let configuration = aws_sdk_lambda::Client::new(aws)
        .get_function_configuration()
        .function_name(function)
        .send()
        .await
        .map_err(|error| {
            failed(match CallError::from(&error) {
                // Lambda's code for it is the same as that of DynamoDB for tables.
                CallError::TableMissing => "it does not exist".to_owned(),
                other => other.to_string(),
            })
        })?;
    let variables = configuration
        .environment
        .and_then(|environment| environment.variables);
    let environment = Environment::from_variables(variables.unwrap_or_default());
    read(&environment).map_err(|error| failed(error.to_string()))
}
