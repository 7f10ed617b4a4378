//! Settings that Python passes as JSON.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use zae_limiter::stack::StackOptions;
use zae_limiter::{EmbeddedStore, Limit, OnUnavailable, RateLimiter, RateLimiterBuilder, StackSetup};

use crate::error::Failure;

/// Reads an argument. Python's own checks come first, so this says only what they do not know.
pub(crate) fn read<T: DeserializeOwned>(field: &str, json: &str) -> Result<T, Failure> {
    serde_json::from_str(json).map_err(|error| Failure::invalid(field, json, &error.to_string()))
}

/// Where the table is.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) region: Option<String>,
    pub(crate) endpoint_url: Option<String>,
    pub(crate) profile: Option<String>,
}

impl Place {
    pub(crate) async fn sdk_config(&self) -> SdkConfig {
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(url) = &self.endpoint_url {
            loader = loader.endpoint_url(url);
        }
        if let Some(profile) = &self.profile {
            loader = loader.profile_name(profile);
        }
        loader.load().await
    }
}

/// Everything that a limiter can be set up with. What is absent has the client's default.
#[derive(Debug, Deserialize)]
pub(crate) struct Settings {
    #[serde(flatten)]
    place: Place,
    /// A file instead of a table on AWS.
    file: Option<PathBuf>,
    #[serde(default)]
    count_usage: bool,
    #[serde(default)]
    create_table: bool,
    default_limits: Option<Vec<Limit>>,
    on_unavailable: Option<OnUnavailable>,
    principal: Option<String>,
    strict_version: Option<bool>,
    auto_update: Option<bool>,
    bucket_ttl_refill_multiplier: Option<u32>,
    config_cache_ttl: Option<f64>,
    time_budget: Option<f64>,
    settle_budget: Option<f64>,
    admin_time_budget: Option<f64>,
    refusal_cache_ttl: Option<f64>,
    outage_fraction: Option<NonZeroU32>,
    token_chunks: Option<TokenChunks>,
    stack_options: Option<BTreeMap<String, serde_json::Value>>,
}

/// Where tokens are taken in chunks: everywhere or nowhere, or on some resources.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TokenChunks {
    Everywhere(bool),
    On(Vec<String>),
}

/// Seconds as a time. More than a time can hold is as long as it can be.
pub(crate) fn seconds(field: &str, seconds: f64) -> Result<Duration, Failure> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(Failure::invalid(
            field,
            &seconds.to_string(),
            "it must not be negative",
        ));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Options of a stack: those that Python leaves at `None` have the default.
pub(crate) fn stack_options(options: BTreeMap<String, serde_json::Value>) -> Result<StackOptions, Failure> {
    let given = options
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    StackOptions::from_value(serde_json::Value::Object(given))
        .map_err(|error| Failure::invalid("stack_options", "", &error.to_string()))
}

impl Settings {
    /// The name of the stack.
    pub(crate) fn name(&self) -> &str {
        &self.place.name
    }

    /// Whether the table is in a file.
    pub(crate) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// A builder with these settings. `memory` is the store to use instead of a table.
    pub(crate) fn builder(self, memory: Option<&EmbeddedStore>) -> Result<RateLimiterBuilder, Failure> {
        let mut builder = match (memory, &self.file) {
            (Some(store), _) => RateLimiter::embedded_in(store).name(&self.place.name),
            (None, Some(path)) => RateLimiter::embedded_at(path).name(&self.place.name),
            (None, None) => RateLimiter::builder(&self.place.name).create_table(self.create_table),
        };
        builder = builder.count_usage(self.count_usage);
        if let Some(region) = self.place.region {
            builder = builder.region(region);
        }
        if let Some(url) = self.place.endpoint_url {
            builder = builder.endpoint_url(url);
        }
        if let Some(profile) = self.place.profile {
            builder = builder.profile(profile);
        }
        if let Some(limits) = self.default_limits {
            builder = builder.default_limits(limits);
        }
        if let Some(policy) = self.on_unavailable {
            builder = builder.on_unavailable(policy);
        }
        if let Some(principal) = self.principal {
            builder = builder.principal(principal);
        }
        if let Some(strict) = self.strict_version {
            builder = builder.strict_version(strict);
        }
        if let Some(update) = self.auto_update {
            builder = builder.auto_update(update);
        }
        if let Some(multiplier) = self.bucket_ttl_refill_multiplier {
            builder = builder.bucket_ttl_refill_multiplier(multiplier);
        }
        if let Some(ttl) = self.config_cache_ttl {
            builder = builder.config_cache_ttl(seconds("config_cache_ttl", ttl)?);
        }
        if let Some(budget) = self.time_budget {
            builder = builder.time_budget(seconds("time_budget", budget)?);
        }
        if let Some(budget) = self.settle_budget {
            builder = builder.settle_budget(seconds("settle_budget", budget)?);
        }
        if let Some(budget) = self.admin_time_budget {
            builder = builder.admin_time_budget(seconds("admin_time_budget", budget)?);
        }
        if let Some(ttl) = self.refusal_cache_ttl {
            builder = builder.refusal_cache_ttl(seconds("refusal_cache_ttl", ttl)?);
        }
        if let Some(processes) = self.outage_fraction {
            builder = builder.outage_fraction(processes);
        }
        match self.token_chunks {
            Some(TokenChunks::Everywhere(true)) => builder = builder.token_chunks(),
            Some(TokenChunks::On(resources)) => {
                for resource in resources {
                    builder = builder.token_chunks_on(resource);
                }
            }
            Some(TokenChunks::Everywhere(false)) | None => {}
        }
        if let Some(options) = self.stack_options {
            builder = builder.stack(StackSetup::new(stack_options(options)?));
        }
        Ok(builder)
    }
}
