//! The clients of every AWS service that the reconciler calls.

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;

/// Attempts of one call, the first included: CloudFormation throttles early and for long.
const ATTEMPTS: u32 = 8;

/// One client per service. [`Clients::new`] makes them from one configuration; set a field to use another for a service.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Stacks, change sets and events.
    pub cloudformation: aws_sdk_cloudformation::Client,
    /// The bucket with the functions' archives.
    pub s3: aws_sdk_s3::Client,
    /// Only whether the table exists, and its deletion by a purge.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// Checks before a change.
    pub iam: aws_sdk_iam::Client,
    /// Checks before a change.
    pub lambda: aws_sdk_lambda::Client,
    /// Checks before a change.
    pub logs: aws_sdk_cloudwatchlogs::Client,
    /// Checks before a change.
    pub sns: aws_sdk_sns::Client,
    /// Whose account this is, when there is no stack yet that tells.
    pub sts: aws_sdk_sts::Client,
}

impl Clients {
    /// Clients that share a configuration and retry throttled calls at least eight times.
    pub fn new(aws: &SdkConfig) -> Self {
        let retry = aws.retry_config().cloned().unwrap_or_else(RetryConfig::standard);
        let attempts = retry.max_attempts().max(ATTEMPTS);
        let aws = aws
            .to_builder()
            .retry_config(retry.with_max_attempts(attempts))
            .build();
        // Bucket names as host names do not resolve on a machine that stands in for AWS.
        let path_style = aws.endpoint_url().is_some();
        let s3 = aws_sdk_s3::config::Builder::from(&aws)
            .force_path_style(path_style)
            .build();
        Self {
            cloudformation: aws_sdk_cloudformation::Client::new(&aws),
            s3: aws_sdk_s3::Client::from_conf(s3),
            dynamodb: aws_sdk_dynamodb::Client::new(&aws),
            iam: aws_sdk_iam::Client::new(&aws),
            lambda: aws_sdk_lambda::Client::new(&aws),
            logs: aws_sdk_cloudwatchlogs::Client::new(&aws),
            sns: aws_sdk_sns::Client::new(&aws),
            sts: aws_sdk_sts::Client::new(&aws),
        }
    }
}
