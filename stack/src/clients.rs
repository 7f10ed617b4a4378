//! The clients of every AWS service that the reconciler calls.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;

use crate::reach::Reach;

/// Attempts of one call, the first included: CloudFormation throttles early and for long.
const ATTEMPTS: u32 = 8;

/// Time for one attempt of a call. A connection that has gone silent must not hold a deployment up for ever.
const ANSWER: Duration = Duration::from_secs(60);

/// The same for S3, to which archives are uploaded over whatever line there is.
const UPLOAD: Duration = Duration::from_secs(10 * 60);

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
    /// Clients that share a configuration, retry throttled calls at least eight times, and give up on an attempt that is not
    /// answered within a minute (S3: ten) unless the configuration says otherwise. As long as nobody has answered at all, three
    /// connections that fail are enough: the region or the endpoint is wrong.
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
                $service::Client::from_conf(config!($service, ANSWER).build())
            };
        }
        // Bucket names as host names do not resolve on a machine that stands in for AWS.
        let path_style = aws.endpoint_url().is_some();
        let s3 = config!(aws_sdk_s3, UPLOAD).force_path_style(path_style).build();
        Self {
            cloudformation: client!(aws_sdk_cloudformation),
            s3: aws_sdk_s3::Client::from_conf(s3),
            dynamodb: client!(aws_sdk_dynamodb),
            iam: client!(aws_sdk_iam),
            lambda: client!(aws_sdk_lambda),
            logs: client!(aws_sdk_cloudwatchlogs),
            sns: client!(aws_sdk_sns),
            sts: client!(aws_sdk_sts),
        }
    }
}

/// A configuration whose attempts end, after this time where it does not say when.
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
    fn an_attempt_that_is_not_answered_ends_when_the_configuration_says_or_else_when_we_do() {
        assert_eq!(limits(None), [Some(ANSWER), Some(UPLOAD)]);
        let connecting = TimeoutConfig::builder().connect_timeout(Duration::from_secs(1));
        assert_eq!(limits(Some(connecting.build())), [Some(ANSWER), Some(UPLOAD)]);
        let own = Duration::from_secs(7);
        let given = TimeoutConfig::builder().operation_attempt_timeout(own);
        assert_eq!(limits(Some(given.build())), [Some(own), Some(own)]);
    }
}
