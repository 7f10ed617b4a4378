//! From settings to an SDK client. The SDK's own retries are off: the limiter's own know the time budget.

use std::time::Duration;

use aws_config::identity::IdentityCache;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::StalledStreamProtectionConfig;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
#[cfg(feature = "embedded")]
use zae_limiter_dynamo::EmbeddedStore;
use zae_limiter_dynamo::{CapacityMeter, ConnectionWatch, SharedCredentials};

use crate::{Error, Result};

/// Where the table is.
#[derive(Debug, Clone)]
pub(crate) enum Connection {
    Aws(Box<AwsSettings>),
    #[cfg(feature = "embedded")]
    Memory,
    #[cfg(feature = "embedded")]
    File(std::path::PathBuf),
    #[cfg(feature = "embedded")]
    Store(EmbeddedStore),
}

/// The settings of a connection to AWS.
#[derive(Debug, Clone, Default)]
pub(crate) struct AwsSettings {
    /// Whether to look up what is not set, in the environment, in profiles, at metadata services and at STS.
    pub(crate) look_up: bool,
    pub(crate) region: Option<String>,
    pub(crate) endpoint_url: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) credentials: Option<SharedCredentialsProvider>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) http_client: Option<SharedHttpClient>,
    /// A whole configuration of the application's; the other fields stand above it.
    pub(crate) sdk_config: Option<SdkConfig>,
}

/// A client and what belongs to it.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) client: Client,
    /// For other services; none in the process.
    pub(crate) aws: Option<SdkConfig>,
    /// What its requests are signed with; none in the process.
    pub(crate) credentials: Option<SharedCredentials>,
    /// Whether audit events may look up the caller's ARN.
    pub(crate) look_up_caller: bool,
    /// Region, endpoint or file, for messages.
    pub(crate) place: String,
    /// The table in the process.
    #[cfg(feature = "embedded")]
    pub(crate) embedded: Option<EmbeddedStore>,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Refuses a length of time with which the clock could overflow.
pub(crate) fn check_length(field: &'static str, value: Duration) -> Result<()> {
    const A_YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);
    if value <= A_YEAR {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!("{value:?}"),
        "it must be at most a year",
    ))
}

impl Connection {
    pub(crate) async fn open(self, meter: Option<CapacityMeter>) -> Result<Connected> {
        match self {
            Self::Aws(settings) => settings.connect(meter).await,
            #[cfg(feature = "embedded")]
            Self::Memory => Ok(embedded(&EmbeddedStore::memory()?, meter)),
            #[cfg(feature = "embedded")]
            Self::File(path) => Ok(embedded(&EmbeddedStore::file(path).await?, meter)),
            #[cfg(feature = "embedded")]
            Self::Store(store) => Ok(embedded(&store, meter)),
        }
    }

    /// Refuses settings that contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        #[cfg_attr(not(feature = "embedded"), allow(irrefutable_let_patterns))]
        let Self::Aws(settings) = self else {
            return Ok(());
        };
        if let (Some(profile), Some(_)) = (&settings.profile, &settings.sdk_config) {
            let rule = "the SDK configuration that is set too has its profile already; set one of both";
            return Err(Error::invalid("profile", profile, rule));
        }
        settings
            .connect_timeout
            .map_or(Ok(()), |timeout| check_length("connect_timeout", timeout))
    }

    /// True if the table is made on first use rather than deployed.
    pub(crate) fn creates_table(&self) -> bool {
        !matches!(self, Self::Aws(_))
    }
}

impl AwsSettings {
    async fn connect(self, meter: Option<CapacityMeter>) -> Result<Connected> {
        let look_up_caller = self.look_up;
        let profile = self.profile.clone().or_else(|| self.profile_of_environment());
        let aws = self.load().await;
        let Some(region) = aws.region().map(ToString::to_string) else {
            return Err(Error::invalid(
                "region",
                "",
                "none is set; pass one to the builder, or set AWS_REGION or a region in the AWS profile",
            ));
        };
        let place = aws.endpoint_url().map_or(region, str::to_owned);
        let provider = aws.credentials_provider();
        let credentials = provider.map(|provider| SharedCredentials::new(provider, profile));
        let mut config = aws_sdk_dynamodb::config::Builder::from(&aws)
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if aws.http_client().is_none() {
            config = config.interceptor(ConnectionWatch::default());
        }
        if let Some(credentials) = credentials.clone() {
            config = config
                .credentials_provider(credentials)
                .identity_cache(IdentityCache::no_cache());
        }
        Ok(Connected {
            client: client(config, meter),
            aws: Some(aws),
            credentials,
            look_up_caller,
            place,
            #[cfg(feature = "embedded")]
            embedded: None,
        })
    }

    /// The profile that the SDK would choose.
    fn profile_of_environment(&self) -> Option<String> {
        let looks_up = self.look_up && self.sdk_config.is_none() && self.credentials.is_none();
        std::env::var("AWS_PROFILE").ok().filter(|_| looks_up)
    }

    async fn load(mut self) -> SdkConfig {
        match (self.sdk_config.take(), self.look_up) {
            (Some(given), _) => self.over(given),
            (None, true) => self.load_defaults().await,
            (None, false) => {
                let nothing = SdkConfig::builder().behavior_version(BehaviorVersion::v2026_01_12());
                self.over(nothing.build())
            }
        }
    }

    /// These settings above those of a whole configuration.
    fn over(self, given: SdkConfig) -> SdkConfig {
        let chosen = given.timeout_config().and_then(TimeoutConfig::connect_timeout);
        let timeouts = connect_timeout(self.connect_timeout.or(chosen));
        let mut builder = given.into_builder().timeout_config(timeouts);
        if let Some(region) = self.region {
            builder = builder.region(Region::new(region));
        }
        if let Some(url) = self.endpoint_url {
            builder = builder.endpoint_url(url);
        }
        if let Some(credentials) = self.credentials {
            builder = builder.credentials_provider(credentials);
        }
        if let Some(client) = self.http_client {
            builder = builder.http_client(client);
        }
        builder.build()
    }

    async fn load_defaults(self) -> SdkConfig {
        let timeouts = connect_timeout(self.connect_timeout);
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12()).timeout_config(timeouts);
        if let Some(region) = self.region {
            loader = loader.region(Region::new(region));
        }
        if let Some(url) = self.endpoint_url {
            loader = loader.endpoint_url(url);
        }
        if let Some(profile) = self.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(credentials) = self.credentials {
            loader = loader.credentials_provider(credentials);
        }
        if let Some(client) = self.http_client {
            loader = loader.http_client(client);
        }
        loader.load().await
    }
}

fn client(config: aws_sdk_dynamodb::config::Builder, meter: Option<CapacityMeter>) -> Client {
    let config = match meter {
        Some(meter) => config.interceptor(meter),
        None => config,
    };
    Client::from_conf(config.build())
}

/// Attempts as a whole are timed by the limiter, which knows how much of its budget is left.
fn connect_timeout(chosen: Option<Duration>) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(chosen.unwrap_or(CONNECT_TIMEOUT))
        .build()
}

#[cfg(feature = "embedded")]
fn embedded(store: &EmbeddedStore, meter: Option<CapacityMeter>) -> Connected {
    Connected {
        client: client(store.sdk_config(), meter),
        aws: None,
        credentials: None,
        look_up_caller: false,
        place: store.place(),
        embedded: Some(store.clone()),
    }
}
