//! Making limits of a bucket as if nothing were used.

use std::future::IntoFuture;

use zae_limiter_schema::bucket::{BucketKey, ResetLimits};
use zae_limiter_schema::{AttributeValue, AuditAction, EntityId, LimitName, Resource};

use super::{BucketChange, ChangeOptions, Details, Found, Made, Plan, audit};
use crate::error::unknown_limit;
use crate::store::BoxFuture;
use crate::{Repository, Result};

impl Repository {
    /// Makes all limits of an entity on a resource as if nothing were used, or [some](LimitReset::limit) of them, once.
    ///
    /// A rate becomes full and loses its debt, and a quota has its whole amount for the rest of its period, without what it was
    /// topped up with. What calls took of a quota before does not come back into it. All permits of limits on calls in flight
    /// are revoked: leases that hold one [are lost](crate::Lease::is_lost), and what calls in flight give back to this bucket later
    /// only changes the usage. If one such limit is reset, all of the bucket are. Usage does not change.
    ///
    /// The change has an audit event, with a [reason](LimitReset::reason). Sent again with the same
    /// [idempotency key](LimitReset::idempotency_key), it is not made again.
    ///
    /// ```
    /// use zae_limiter::{Limit, QuotaPeriod, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().await?;
    /// let repository = limiter.repository();
    /// let limits = [Limit::per_minute("rpm", 10)?, Limit::quota("spend", 500, QuotaPeriod::month())?];
    /// repository.set_limits("team-1", "gpt-4", limits).await?;
    /// limiter.acquire("team-1", "gpt-4").consume("rpm", 10).consume("spend", 300).commit().await?;
    ///
    /// repository.reset("team-1", "gpt-4").limit("spend").reason("a loop in the batch job").await?;
    /// let left = limiter.acquire("team-1", "gpt-4").peek().await?;
    /// assert_eq!((left.tokens("rpm"), left.tokens("spend")), (Some(0), Some(500)));
    /// # Ok(()) }
    /// ```
    pub fn reset(&self, entity: impl AsRef<str>, resource: impl AsRef<str>) -> LimitReset {
        let parse = || {
            let bucket = BucketKey {
                entity: EntityId::parse(entity)?,
                resource: Resource::parse(resource)?,
            };
            Ok((bucket, ResetRequest::default()))
        };
        LimitReset {
            request: parse(),
            repository: self.clone(),
            options: ChangeOptions::default(),
        }
    }
}

/// A reset that is about to be made: see [`Repository::reset`]. Nothing happens until it is awaited.
#[derive(Debug)]
#[must_use = "a reset does nothing until it is awaited"]
pub struct LimitReset {
    repository: Repository,
    request: Result<(BucketKey, ResetRequest)>,
    options: ChangeOptions,
}

impl LimitReset {
    /// Resets this limit, and others only if they are named too.
    pub fn limit(mut self, limit: impl AsRef<str>) -> Self {
        self.request = self.request.and_then(|(bucket, mut request)| {
            request.limits.push(LimitName::parse(limit)?);
            request.limits.sort_unstable();
            request.limits.dedup();
            Ok((bucket, request))
        });
        self
    }

    /// Why, for the audit event: at most 1,000 bytes.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.options.reason = Some(reason.into());
        self
    }

    /// Names the change, with at most 255 bytes: see [`TopUp::idempotency_key`](crate::TopUp::idempotency_key).
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.options.idempotency_key = Some(key.into());
        self
    }
}

impl IntoFuture for LimitReset {
    type Output = Result<ResetReport>;
    type IntoFuture = BoxFuture<'static, Result<ResetReport>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (bucket, request) = self.request?;
            let made = self
                .repository
                .change_bucket(&bucket, &self.options, &request)
                .await?;
            Ok(ResetReport::new(bucket, &made))
        })
    }
}

/// A reset that was made.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct ResetReport {
    /// Whose limits.
    pub entity_id: EntityId,
    /// On what.
    pub resource: Resource,
    /// The limits that were reset: none if the entity has no bucket, so that nothing is used.
    pub limits: Vec<LimitName>,
    /// The permits of calls in flight were revoked.
    pub permits_revoked: bool,
    /// The id of the audit event.
    pub event_id: String,
    /// It was made before, under the same idempotency key: this call reset nothing.
    pub repeated: bool,
}

impl ResetReport {
    fn new(bucket: BucketKey, made: &Made) -> Self {
        let details = &made.record.details;
        let limits = match details.get(LIMITS) {
            Some(AttributeValue::L(names)) => names.as_slice(),
            _ => &[],
        };
        let name = |name: &AttributeValue| match name {
            AttributeValue::S(name) => LimitName::from_stored(name).ok(),
            _ => None,
        };
        Self {
            entity_id: bucket.entity,
            resource: bucket.resource,
            limits: limits.iter().filter_map(name).collect(),
            permits_revoked: details.get(PERMITS_REVOKED) == Some(&AttributeValue::Bool(true)),
            event_id: made.record.event.to_string(),
            repeated: made.repeated,
        }
    }
}

const LIMITS: &str = "limits";
const PERMITS_REVOKED: &str = "permits_revoked";

/// What is asked of a bucket. Without names, all its limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResetRequest {
    pub(crate) limits: Vec<LimitName>,
}

impl BucketChange for ResetRequest {
    const ACTION: AuditAction = AuditAction::LimitsReset;

    fn request(&self) -> String {
        let names: Vec<_> = self.limits.iter().map(LimitName::as_str).collect();
        if names.is_empty() {
            "reset all limits".to_owned()
        } else {
            format!("reset {}", names.join(", "))
        }
    }

    fn plan(&self, key: &BucketKey, found: &Found) -> Result<Plan> {
        let config = &found.config;
        let is_known = |limit: &&LimitName| {
            let on_item = found.image.as_ref().is_some_and(|image| image.has_limit(limit));
            on_item || config.limits().get(limit).is_some()
        };
        if let Some(limit) = self.limits.iter().find(|limit| !is_known(limit)) {
            return Err(unknown_limit(limit, config, key));
        }
        let chosen = |limit: &LimitName| self.limits.is_empty() || self.limits.contains(limit);
        let reset = found
            .image
            .as_ref()
            .map(|image| ResetLimits::of(image, chosen, found.now, found.incarnation));
        let names = reset.iter().flat_map(|reset| &reset.limits);
        let names = names.map(|name| audit::text(name.as_str())).collect();
        let revoked = reset.as_ref().is_some_and(|reset| reset.revokes);
        Ok(Plan {
            details: Details::from([
                (LIMITS.to_owned(), AttributeValue::L(names)),
                (PERMITS_REVOKED.to_owned(), AttributeValue::Bool(revoked)),
            ]),
            statement: reset
                .filter(|reset| !reset.limits.is_empty())
                .map(|reset| reset.statement),
        })
    }
}
