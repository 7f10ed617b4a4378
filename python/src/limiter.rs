//! The limiter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zae_limiter::money::Estimate;
use zae_limiter::{Acquire, Limit, OnUnavailable};

use crate::abandoned::Abandoned;
use crate::call::{Call, Reply};
use crate::error::Failure;
use crate::process::Owned;
use crate::records;
use crate::settings;

/// A limiter on a repository.
#[pyclass(frozen, module = "zae_limiter_rs._core")]
pub(crate) struct RateLimiter {
    limiter: Owned<zae_limiter::RateLimiter>,
    abandoned: Arc<Abandoned>,
}

impl RateLimiter {
    pub(crate) fn new(py: Python<'_>, limiter: zae_limiter::RateLimiter) -> PyResult<Self> {
        let limiter = Owned::new(py, limiter)?;
        Ok(Self {
            limiter,
            abandoned: Arc::default(),
        })
    }
}

#[pymethods]
impl RateLimiter {
    /// Takes tokens. `options` is JSON: see [`Options`].
    #[pyo3(signature = (entity_id, resource, consume, options=None))]
    fn acquire(
        &self,
        entity_id: &str,
        resource: &str,
        consume: BTreeMap<String, u64>,
        options: Option<String>,
    ) -> PyResult<Call> {
        let acquire = self.limiter.get()?.acquire(entity_id, resource);
        Ok(Call::acquire(self.abandoned.clone(), async move {
            let options = options
                .map(|options| settings::read("options", &options))
                .transpose()?;
            let Options {
                own,
                also,
                on_unavailable,
                wait,
            } = options.unwrap_or_default();
            let mut acquire = own.of(consume, acquire);
            for Also {
                resource,
                consume,
                part,
            } in also
            {
                acquire = part.of(consume, acquire.and(resource));
            }
            if let Some(policy) = on_unavailable {
                acquire = acquire.on_unavailable(policy);
            }
            if let Some(wait) = wait {
                acquire = acquire.wait_up_to(settings::seconds("wait", wait)?);
            }
            Ok(acquire.await?)
        }))
    }

    /// What is left of every limit of the entity itself, and how long until `needed` fits.
    #[pyo3(signature = (entity_id, resource, needed, limits=None))]
    fn peek(
        &self,
        entity_id: &str,
        resource: &str,
        needed: BTreeMap<String, u64>,
        limits: Option<String>,
    ) -> PyResult<Call> {
        let acquire = self.limiter.get()?.acquire(entity_id, resource);
        let entity = entity_id.to_owned();
        Ok(Call::new(async move {
            let mut acquire = with_limits(acquire, limits.as_deref())?;
            for (limit, tokens) in needed {
                acquire = acquire.consume(limit, tokens);
            }
            let availability = acquire.peek().await?;
            let statuses = availability.statuses();
            let own = statuses.iter().filter(|status| status.entity.as_str() == entity);
            let available: Map<_, _> = own
                .map(|status| (status.limit.name().to_string(), json!(status.available)))
                .collect();
            Ok::<_, Failure>(Reply::Data(json!({
                "available": available,
                "retry_after_seconds": availability.retry_after().seconds(),
                "statuses": statuses.iter().map(records::status).collect::<Vec<_>>(),
            })))
        }))
    }

    /// Whether the table responds in time.
    fn is_available(&self, timeout: f64) -> PyResult<Call> {
        let limiter = self.limiter.get()?.clone();
        Ok(Call::new(async move {
            let within = settings::seconds("timeout", timeout)?.min(Duration::from_secs(3600));
            let available = tokio::time::timeout(within, limiter.is_available()).await;
            Ok::<_, Failure>(Reply::Data(Value::Bool(available.unwrap_or(false))))
        }))
    }

    fn ensure_infrastructure(&self) -> PyResult<Call> {
        let limiter = self.limiter.get()?.clone();
        Ok(Call::new(async move {
            let outcome = limiter.ensure_infrastructure().await;
            let outcome =
                outcome.map_err(|error| Failure::of(error, limiter.repository().name().as_str()))?;
            let outcome = outcome.map(|outcome| {
                json!({
                    "changed": outcome.changed(),
                    "stack_id": outcome.stack_id,
                    "outputs": outcome.outputs,
                    "warnings": outcome.warnings,
                })
            });
            Ok::<_, Failure>(Reply::Data(json!(outcome)))
        }))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = json!(self.limiter.get()?.stats());
        records::to_python(py, &stats)
    }

    /// Waits until every adjustment and refund is written or was given up, those of cancelled acquires too.
    fn settled(&self) -> PyResult<Call> {
        let (limiter, abandoned) = (self.limiter.get()?.clone(), self.abandoned.clone());
        Ok(Call::new(async move {
            abandoned.none().await;
            limiter.settled().await;
            Ok::<_, Failure>(Reply::Data(Value::Null))
        }))
    }

    /// Shuts the limiter down and replies with the number of changes that could not be written.
    fn shutdown(&self) -> PyResult<Call> {
        let (limiter, abandoned) = (self.limiter.get()?.clone(), self.abandoned.clone());
        Ok(Call::new(async move {
            abandoned.none().await;
            let report = limiter.shutdown().await;
            Ok::<_, Failure>(Reply::Data(json!(report.unwritten_total)))
        }))
    }
}

/// What a call states besides the amounts of its first resource.
#[derive(Debug, Default, Deserialize)]
struct Options {
    #[serde(flatten)]
    own: Part,
    /// What it takes of other resources.
    #[serde(default)]
    also: Vec<Also>,
    on_unavailable: Option<OnUnavailable>,
    /// In seconds.
    wait: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Also {
    resource: String,
    consume: BTreeMap<String, u64>,
    #[serde(flatten)]
    part: Part,
}

/// What a call states about one of its resources.
#[derive(Debug, Default, Deserialize)]
struct Part {
    limits: Option<Vec<Limit>>,
    estimate: Option<Estimate>,
    cascade: Option<bool>,
}

impl Part {
    fn of(self, consume: BTreeMap<String, u64>, mut acquire: Acquire) -> Acquire {
        for (limit, tokens) in consume {
            acquire = acquire.consume(limit, tokens);
        }
        if let Some(limits) = self.limits {
            acquire = acquire.limits(limits);
        }
        if let Some(estimate) = &self.estimate {
            acquire = acquire.consume_estimate(estimate);
        }
        if let Some(cascade) = self.cascade {
            acquire = acquire.cascade(cascade);
        }
        acquire
    }
}

fn with_limits(acquire: Acquire, limits: Option<&str>) -> Result<Acquire, Failure> {
    match limits {
        None => Ok(acquire),
        Some(limits) => Ok(acquire.limits(settings::read::<Vec<Limit>>("limits", limits)?)),
    }
}
