//! Connections to the table: on AWS, at another endpoint, or in a file.

mod explain;
mod place;
mod profile;

pub(crate) use explain::{
    cannot_be_asked, explain, explain_stack, is_unavailable, is_unreachable, is_without_credentials,
    without_debug_output,
};

pub(crate) use place::Place;

use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::meta::region::ProvideRegion;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use zae_limiter::audit::Principal;
use zae_limiter::{CapacityMeter, EmbeddedStore, RateLimiter, Repository, StackName};

use crate::error::{Error, Result};
use crate::parse;

/// Time budgets for interactive use. The first call may have to load credentials and set up TLS.
const ACQUIRE_BUDGET: Duration = Duration::from_secs(5);
const ADMIN_BUDGET: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Local clouds accept any region; this is their usual default.
const LOCAL_REGION: &str = "us-east-1";

/// Where the table is: an embedded file, or an AWS account and region.
#[derive(Debug, Clone)]
pub(crate) struct TableLocation {
    pub(crate) embedded: Option<PathBuf>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) profile: Option<String>,
    /// Use the dummy credentials of a local cloud instead of the user's.
    pub(crate) local_credentials: bool,
}

impl TableLocation {
    /// The SDK configuration. Fails if there is no region.
    pub(crate) async fn aws(&self) -> Result<SdkConfig> {
        if let Some(file) = &self.embedded {
            return Err(Error::usage(format!(
                "this command needs a stack, and --embedded {} is only a table; remove --embedded",
                file.display()
            )));
        }
        if !self.local_credentials {
            profile::check(self.profile.as_deref())?;
        }
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12());
        if let Some(profile) = &self.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(url) = self.endpoint() {
            let url =
                parse::endpoint(&url).map_err(|rule| Error::usage(format!("endpoint {url:?}: {rule}")))?;
            loader = loader.endpoint_url(url);
            if let Some(region) = self.local_region().await {
                loader = loader.region(region);
            }
        }
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if self.local_credentials {
            loader = loader.credentials_provider(Credentials::from_keys("test", "test", None));
        }
        let config = loader.load().await;
        if config.region().is_none() {
            return Err(Error::NoRegion);
        }
        Ok(config)
    }

    /// `--endpoint-url`, or `AWS_ENDPOINT_URL`.
    pub(crate) fn endpoint(&self) -> Option<String> {
        let set = || {
            std::env::var("AWS_ENDPOINT_URL")
                .ok()
                .filter(|url| !url.is_empty())
        };
        self.endpoint.clone().or_else(set)
    }

    /// The region for a custom endpoint. Does not query the instance metadata service, which would time out.
    async fn local_region(&self) -> Option<Region> {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if set("AWS_REGION") || set("AWS_DEFAULT_REGION") {
            return None;
        }
        let mut profile = ProfileFileRegionProvider::builder();
        if let Some(name) = &self.profile {
            profile = profile.profile_name(name);
        }
        let found = profile.build().region().await;
        Some(found.unwrap_or_else(|| Region::from_static(LOCAL_REGION)))
    }
}

/// What the table stores.
pub(crate) async fn repository(location: &TableLocation, name: &StackName) -> Result<Repository> {
    finish(location, builder(location, name).await?).await
}

/// A limiter that counts its calls and consumed capacity.
pub(crate) async fn metered_limiter(
    location: &TableLocation,
    name: &StackName,
) -> Result<(RateLimiter, CapacityMeter)> {
    let meter = CapacityMeter::new();
    let builder = builder(location, name).await?.meter(meter.clone());
    Ok((
        RateLimiter::from_repository(finish(location, builder).await?),
        meter,
    ))
}

/// A limiter for a server: with the time budgets of applications, and counting its calls and consumed capacity.
pub(crate) async fn serving_limiter(
    location: &TableLocation,
    name: &StackName,
) -> Result<(RateLimiter, CapacityMeter)> {
    let meter = CapacityMeter::new();
    let mut builder = builder(location, name).await?.meter(meter.clone());
    if location.embedded.is_some() {
        builder = builder.principal(local_user());
    }
    Ok((builder.await?, meter))
}

async fn builder(location: &TableLocation, name: &StackName) -> Result<zae_limiter::RateLimiterBuilder> {
    Ok(match &location.embedded {
        Some(file) => {
            let builder = RateLimiter::embedded_at(with_existing_directory(file)?);
            builder.name(name.as_str()).count_usage(true)
        }
        None => on_aws(name, location.aws().await?),
    })
}

fn on_aws(name: &StackName, aws: SdkConfig) -> zae_limiter::RateLimiterBuilder {
    RateLimiter::builder(name.as_str())
        .sdk_config(aws)
        .connect_timeout(CONNECT_TIMEOUT)
}

async fn finish(location: &TableLocation, builder: zae_limiter::RateLimiterBuilder) -> Result<Repository> {
    let mut builder = builder
        .time_budget(ACQUIRE_BUDGET)
        .admin_time_budget(ADMIN_BUDGET);
    if location.embedded.is_some() {
        builder = builder.principal(local_user());
    }
    Ok(builder.build_repository().await?)
}

/// The store in the file of `--embedded`.
pub(crate) async fn embedded_store(location: &TableLocation) -> Result<EmbeddedStore> {
    let Some(file) = &location.embedded else {
        return Err(Error::usage("name the file of the table with --embedded"));
    };
    let store = EmbeddedStore::file(with_existing_directory(file)?).await;
    Ok(store.map_err(zae_limiter::Error::from)?)
}

/// A DynamoDB client for items that the limiter does not manage.
pub(crate) async fn dynamo(location: &TableLocation) -> Result<aws_sdk_dynamodb::Client> {
    if location.embedded.is_none() {
        return Ok(aws_sdk_dynamodb::Client::new(&location.aws().await?));
    }
    let config = embedded_store(location).await?.sdk_config().build();
    Ok(aws_sdk_dynamodb::Client::from_conf(config))
}

/// The file, if its directory exists.
fn with_existing_directory(file: &Path) -> Result<&Path> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory {
        Some(directory) if !directory.is_dir() => Err(Error::usage(format!(
            "--embedded {}: directory {} does not exist; create it or choose another file",
            file.display(),
            directory.display()
        ))),
        _ => Ok(file),
    }
}

/// The principal of changes to an embedded table, for the audit trail.
fn local_user() -> String {
    let named = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    named
        .filter(|user| Principal::parse(user).is_ok())
        .unwrap_or_else(|| "local".to_owned())
}
