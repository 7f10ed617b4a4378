//! Getting to the table: on AWS, on another endpoint, or in a file.

mod explain;

pub(crate) use explain::{
    explain, explain_stack, is_unavailable, is_unreachable, is_without_credentials, plain,
};

use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::meta::region::ProvideRegion;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use zae_limiter::{EmbeddedStore, Meter, Principal, RateLimiter, StackName};

use crate::error::{Error, Result};
use crate::parse;

/// What a person waits for at most. A first call may have to sign in and to shake hands.
const ACQUIRE_BUDGET: Duration = Duration::from_secs(5);
const ADMIN_BUDGET: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Local clouds take any region; this is the one that their users expect.
const USUAL_REGION: &str = "us-east-1";

/// Where the table is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) embedded: Option<PathBuf>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) profile: Option<String>,
    /// Credentials that any local cloud takes, in place of the user's own.
    pub(crate) local_credentials: bool,
}

impl Place {
    /// The configuration for AWS's services, with the region settled.
    pub(crate) async fn aws(&self) -> Result<SdkConfig> {
        if let Some(file) = &self.embedded {
            return Err(Error::usage(format!(
                "this works on a stack, and --embedded {} is only a table; leave --embedded out",
                file.display()
            )));
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

    /// The endpoint that was given or is set for all of AWS.
    fn endpoint(&self) -> Option<String> {
        let set = || {
            std::env::var("AWS_ENDPOINT_URL")
                .ok()
                .filter(|url| !url.is_empty())
        };
        self.endpoint.clone().or_else(set)
    }

    /// The region for an endpoint that is not AWS's. The instance's metadata service is not asked: there is none.
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
        Some(found.unwrap_or_else(|| Region::from_static(USUAL_REGION)))
    }
}

/// A limiter on the table.
pub(crate) async fn limiter(place: &Place, name: &StackName) -> Result<RateLimiter> {
    finish(place, builder(place, name).await?).await
}

/// A limiter whose calls and capacity are counted.
pub(crate) async fn metered_limiter(place: &Place, name: &StackName) -> Result<(RateLimiter, Meter)> {
    let meter = Meter::new();
    let builder = builder(place, name).await?.meter(meter.clone());
    Ok((finish(place, builder).await?, meter))
}

async fn builder(place: &Place, name: &StackName) -> Result<zae_limiter::Builder> {
    Ok(match &place.embedded {
        Some(file) => RateLimiter::embedded_at(in_a_directory(file)?).name(name.as_str()),
        None => RateLimiter::builder(name.as_str())
            .sdk_config(place.aws().await?)
            .connect_timeout(CONNECT_TIMEOUT),
    })
}

async fn finish(place: &Place, builder: zae_limiter::Builder) -> Result<RateLimiter> {
    let mut builder = builder
        .time_budget(ACQUIRE_BUDGET)
        .admin_time_budget(ADMIN_BUDGET);
    if place.embedded.is_some() {
        builder = builder.principal(local_user());
    }
    Ok(builder.await?)
}

/// A client for records that the limiter does not know.
pub(crate) async fn dynamo(place: &Place) -> Result<aws_sdk_dynamodb::Client> {
    let Some(file) = &place.embedded else {
        return Ok(aws_sdk_dynamodb::Client::new(&place.aws().await?));
    };
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::v2026_01_12())
        .region(Region::from_static(USUAL_REGION))
        .endpoint_url("http://embedded.invalid")
        .credentials_provider(Credentials::from_keys("embedded", "embedded", None))
        .http_client(EmbeddedStore::file(in_a_directory(file)?).await?)
        .build();
    Ok(aws_sdk_dynamodb::Client::from_conf(config))
}

/// The file, if it can be made where it is to be.
fn in_a_directory(file: &Path) -> Result<&Path> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory {
        Some(directory) if !directory.is_dir() => Err(Error::usage(format!(
            "--embedded {}: there is no directory {}; create it or name another file",
            file.display(),
            directory.display()
        ))),
        _ => Ok(file),
    }
}

/// Who changes a file of this machine.
fn local_user() -> String {
    let named = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    named
        .filter(|user| Principal::parse(user).is_ok())
        .unwrap_or_else(|| "local".to_owned())
}
