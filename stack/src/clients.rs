//! The clients of every AWS service that the reconciler calls.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;

use crate::reach::Reach;

/// Attempts of one call, including the first.
const ATTEMPTS: u32 = 8;

/// Timeout of one attempt, so that a silent connection does not block a deployment.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of one attempt for S3, where archives are uploaded over slow connections too.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// One client per service. [`Clients::new`] creates them from one configuration; set a field to use another client.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Stacks, change sets and events.
    pub cloudformation: aws_sdk_cloudformation::Client,
    /// The bucket with the functions' archives, and purges.
    pub s3: aws_sdk_s3::Client,
    /// Whether the table exists, and purges.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// The lag of the functions.
    pub cloudwatch: aws_sdk_cloudwatch::Client,
    /// Checks before a change.
    pub iam: aws_sdk_iam::Client,
    /// Checks before a change.
    pub lambda: aws_sdk_lambda::Client,
    /// Checks before a change.
    pub logs: aws_sdk_cloudwatchlogs::Client,
    /// Checks before a change.
    pub sns: aws_sdk_sns::Client,
    /// The functions' dead-letter queues.
    pub sqs: aws_sdk_sqs::Client,
    /// The account, before a stack exists.
    pub sts: aws_sdk_sts::Client,
}

impl Clients {
    /// Clients that share a configuration and make at least 8 attempts per call. An attempt times out after 1 minute (S3: 10
    /// minutes) unless the configuration sets a timeout. Before any service has responded, 3 failed connections are an
    /// error: the region or endpoint is wrong.
    pub fn new(aws: &SdkConfig) -> Self {
        let retry = aws.retry_config().cloned().unwrap_or_else(RetryConfig::standard);
        let attempts = retry.max_attempts().max(ATTEMPTS);
        let aws = aws
            .to_builder()
            .retry_config(retry.with_max_attempts(attempts))
            .build();
        let reach = Reach::default();
        macro_rules! config {
            ($service:ident, $time:expr) => {
                $service::config::Builder::from(&within(&aws, $time)).retry_classifier(reach.clone())
            };
        }
        macro_rules! client {
            ($service:ident) => {
                $service::Client::from_conf(config!($service, ATTEMPT_TIMEOUT).build())
            };
        }
        let s3 = config!(aws_sdk_s3, UPLOAD_TIMEOUT)
            .force_path_style(needs_path_style(&aws))
            .build();
        Self {
            cloudformation: client!(aws_sdk_cloudformation),
            s3: aws_sdk_s3::Client::from_conf(s3),
            dynamodb: client!(aws_sdk_dynamodb),
            cloudwatch: client!(aws_sdk_cloudwatch),
            iam: client!(aws_sdk_iam),
            lambda: client!(aws_sdk_lambda),
            logs: client!(aws_sdk_cloudwatchlogs),
            sns: client!(aws_sdk_sns),
            sqs: client!(aws_sdk_sqs),
            sts: client!(aws_sdk_sts),
        }
    }
}

/// Whether S3 has an endpoint of its own, or all services have one. Buckets are then in the path: as host names they do not resolve on a
/// local endpoint.
pub fn needs_path_style(aws: &SdkConfig) -> bool {
    let only_for_s3 = std::env::var_os("AWS_ENDPOINT_URL_S3").is_some_and(|url| !url.is_empty());
    aws.endpoint_url().is_some() || only_for_s3
}

/// The configuration with this attempt timeout, unless it has one.
fn within(aws: &SdkConfig, time: Duration) -> SdkConfig {
    let given = aws.timeout_config();
    let unlimited = given.is_none_or(|given| given.operation_attempt_timeout().is_none());
    if !unlimited {
        return aws.clone();
    }
    let timeouts = given.map_or_else(TimeoutConfig::builder, TimeoutConfig::to_builder);
    let timeouts = timeouts.operation_attempt_timeout(time).build();
    aws.to_builder().timeout_config(timeouts).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(timeouts: Option<TimeoutConfig>) -> [Option<Duration>; 2] {
        let mut aws = SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest());
        aws.set_timeout_config(timeouts);
        let clients = Clients::new(&aws.build());
        let of =
            |timeouts: Option<&TimeoutConfig>| timeouts.and_then(TimeoutConfig::operation_attempt_timeout);
        [
            of(clients.cloudformation.config().timeout_config()),
            of(clients.s3.config().timeout_config()),
        ]
    }

    #[test]
    fn an_attempt_times_out_as_configured_or_else_by_our_default() {
        assert_eq!(limits(None), [Some(ATTEMPT_TIMEOUT), Some(UPLOAD_TIMEOUT)]);
        let connecting = TimeoutConfig::builder().connect_timeout(Duration::from_secs(1));
        assert_eq!(
            limits(Some(connecting.build())),
            [Some(ATTEMPT_TIMEOUT), Some(UPLOAD_TIMEOUT)]
        );
        let own = Duration::from_secs(7);
        let given = TimeoutConfig::builder().operation_attempt_timeout(own);
        assert_eq!(limits(Some(given.build())), [Some(own), Some(own)]);
    }
}
