//! The SDK's configuration.

use std::time::Duration;

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::Environment;

/// For functions on the stream: what [`lambda_config`] has, without the SDK's own retries. A function retries for as long
/// as its invocation has time, which the SDK does not know.
pub fn sdk_config(environment: &Environment) -> SdkConfig {
    lambda_config(environment)
        .into_builder()
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(Duration::from_secs(2))
                .build(),
        )
        .build()
}

/// Region, credentials and endpoints from the environment, where Lambda puts them.
///
/// The SDK's default chain is not used. It also looks in files and asks metadata services, none of which exist in Lambda,
/// and it is a large part of an archive.
pub fn lambda_config(environment: &Environment) -> SdkConfig {
    let region = environment
        .optional("AWS_REGION")
        .or_else(|| environment.optional("AWS_DEFAULT_REGION"));
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(region.map(Region::new))
        .credentials_provider(SharedCredentialsProvider::new(
            EnvironmentVariableCredentialsProvider::new(),
        ))
        .use_fips(is_set(environment, "AWS_USE_FIPS_ENDPOINT"))
        .use_dual_stack(is_set(environment, "AWS_USE_DUALSTACK_ENDPOINT"))
        .service_config(Endpoints(environment.clone()));
    config.set_endpoint_url(environment.optional("AWS_ENDPOINT_URL"));
    config.build()
}

fn is_set(environment: &Environment, name: &str) -> bool {
    environment
        .optional(name)
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// The endpoint of one service: `AWS_ENDPOINT_URL_SQS` before `AWS_ENDPOINT_URL`.
#[derive(Debug)]
struct Endpoints(Environment);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().replace(' ', "_").to_ascii_uppercase();
        self.0.optional(&format!("{}_{service}", key.env()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn endpoint(config: &SdkConfig, service: &str) -> Option<String> {
        let key = ServiceConfigKey::builder()
            .service_id(service)
            .env("AWS_ENDPOINT_URL")
            .profile("endpoint_url");
        config.service_config().unwrap().load_config(key.build().unwrap())
    }

    #[test]
    fn region_and_endpoints_are_those_of_the_environment() {
        let config = sdk_config(&Environment::of([
            ("AWS_REGION", "eu-west-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:4566"),
            ("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "http://127.0.0.1:4567"),
            ("AWS_USE_FIPS_ENDPOINT", "true"),
        ]));
        assert_eq!(config.region().map(Region::as_ref), Some("eu-west-1"));
        assert_eq!(config.endpoint_url(), Some("http://127.0.0.1:4566"));
        assert_eq!(
            endpoint(&config, "CloudWatch Logs").as_deref(),
            Some("http://127.0.0.1:4567")
        );
        assert_eq!(endpoint(&config, "DynamoDB"), None);
        assert_eq!(
            (config.use_fips(), config.use_dual_stack()),
            (Some(true), Some(false))
        );
    }
}
