//! Where the table is.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::{HttpClient, SharedHttpClient};

use super::RateLimiterBuilder;
use crate::store::connect::{AwsSettings, Connection};

impl RateLimiterBuilder {
    /// Sets something about AWS. An embedded store has nothing of that, and building one with it is an error.
    #[cfg_attr(not(feature = "embedded"), allow(irrefutable_let_patterns))]
    fn aws(mut self, field: &'static str, set: impl FnOnce(&mut AwsSettings)) -> Self {
        if let Connection::Aws(settings) = &mut self.connection {
            set(settings);
        } else {
            self.misplaced.get_or_insert(field);
        }
        self
    }

    /// The AWS region. Otherwise from `AWS_REGION`, the profile or the instance.
    pub fn region(self, region: impl AsRef<str>) -> Self {
        self.aws("region", |aws| aws.region = Some(region.as_ref().to_owned()))
    }

    /// Another endpoint than AWS's, such as a local DynamoDB. Otherwise from `AWS_ENDPOINT_URL` and the profile.
    ///
    /// ```no_run
    /// # async fn example() -> zae_limiter::Result<()> {
    /// let limiter = zae_limiter::RateLimiter::builder("my-app")
    ///     .endpoint_url("http://localhost:8000")
    ///     .region("local")
    ///     .create_table(true)
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn endpoint_url(self, url: impl AsRef<str>) -> Self {
        self.aws("endpoint_url", |aws| {
            aws.endpoint_url = Some(url.as_ref().to_owned());
        })
    }

    /// Credentials, or where to get them. Otherwise from the environment, the profile or the instance.
    pub fn credentials(self, provider: impl ProvideCredentials + 'static) -> Self {
        self.aws("credentials", |aws| {
            aws.credentials = Some(SharedCredentialsProvider::new(provider));
        })
    }

    /// A profile of the shared AWS configuration files. Not beside [`sdk_config`](Self::sdk_config), which has one.
    pub fn profile(self, name: impl AsRef<str>) -> Self {
        self.aws("profile", |aws| aws.profile = Some(name.as_ref().to_owned()))
    }

    /// The SDK configuration of the application. Region, endpoint and credentials that are set on this builder override
    /// it.
    pub fn sdk_config(self, config: SdkConfig) -> Self {
        self.aws("sdk_config", |aws| aws.sdk_config = Some(config))
    }

    /// How long opening a connection may take. The default is one second.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        self.aws("connect_timeout", |aws| aws.connect_timeout = Some(timeout))
    }

    /// An HTTP client of the application's, for proxies, own certificates, or tests with faults.
    pub fn http_client(self, client: impl HttpClient + 'static) -> Self {
        self.aws("http_client", |aws| {
            aws.http_client = Some(SharedHttpClient::new(client));
        })
    }

    /// Whether to create the table if it is missing. For local endpoints: on AWS, a stack creates the table. Embedded
    /// stores create it unless this is set to false.
    pub fn create_table(mut self, create: bool) -> Self {
        self.create_table = create;
        self
    }

    /// Another name for the table of an embedded store, which is `limiter` otherwise.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        name.as_ref().clone_into(&mut self.name);
        self
    }
}
