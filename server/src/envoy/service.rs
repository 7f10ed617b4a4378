//! `ShouldRateLimit`: takes the hits of all descriptors, or none.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;
use tokio::sync::Semaphore;
use tonic::Status;
use zae_limiter::error::NotFound;
use zae_limiter::{Error, Lease, LimitName, LimitStatus, RateLimitHeaders, Refusal};

use super::mapping::EnvoyMapping;
use super::messages::{Code, DescriptorStatus, RateLimitRequest, RateLimitResponse};
use super::plan::{Amounts, Bucket, Charge, Counting, Invalid, Plan};
use super::refunds::{self, Refunds};
use super::reply;
use crate::app::App;
use crate::leases::{Adjustments, LeaseId, Reservation};
use crate::log_limit::LogLimit;
use crate::problem::{Problem, ProblemKind, kind_of};

/// The most descriptors of a request. Each may be a write.
const MAX_DESCRIPTORS: usize = 100;

#[derive(Debug)]
pub(super) struct RateLimits {
    app: Arc<App>,
    mapping: EnvoyMapping,
    refunds: Mutex<Refunds>,
    /// Half of the leases, so that those of HTTP clients find room.
    places: Arc<Semaphore>,
    /// Mappings whose invalid descriptors have been logged. There are as many as the mapping file has.
    logged: Mutex<BTreeSet<String>>,
}

/// Where a lease is held for refunds.
type Slot<'a> = (Reservation<'a>, refunds::Place);

/// What came of a charge.
enum Outcome<'a> {
    Taken {
        lease: Box<Lease>,
        slot: Option<Slot<'a>>,
    },
    /// The request only asked.
    Seen(Vec<LimitStatus>),
    Refused(Arc<Refusal>),
    /// The charge is a shadow and failed, or the bucket has no limits and the mapping allows that.
    Unlimited,
    /// The bucket or the amounts cannot be counted.
    Invalid,
    /// The entity may not use the resource.
    Disabled(Error),
}

impl RateLimits {
    pub(super) fn new(app: Arc<App>, mapping: EnvoyMapping) -> Self {
        let most = (app.settings.max_leases / 2).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            app,
            mapping,
            refunds: Mutex::default(),
            places: Arc::new(Semaphore::new(most)),
            logged: Mutex::default(),
        }
    }

    pub(super) async fn should_rate_limit(
        &self,
        request: RateLimitRequest,
    ) -> Result<RateLimitResponse, Status> {
        let result = self.decide(&request).await;
        let code = match &result {
            Ok(response) if response.overall_code() == Code::OverLimit => "over_limit",
            Ok(_) => "ok",
            Err(_) => "error",
        };
        self.app.metrics.rls_responded(code);
        // A client chooses the domain: as a literal it cannot break the line.
        tracing::debug!(domain = ?request.domain, descriptors = request.descriptors.len(), code, "rate limit service");
        result
    }

    async fn decide(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, Status> {
        if request.domain.is_empty() || request.descriptors.is_empty() {
            return Err(Status::invalid_argument(
                "a domain and at least one descriptor are required",
            ));
        }
        if request.descriptors.len() > MAX_DESCRIPTORS {
            return Err(Status::invalid_argument(format!(
                "{} descriptors are too many: at most {MAX_DESCRIPTORS} are allowed",
                request.descriptors.len()
            )));
        }
        let mut plan = Plan::new(&self.mapping, request);
        for (bucket, amounts) in std::mem::take(&mut plan.refunds) {
            self.give_back(&bucket, amounts).await;
        }
        for invalid in &plan.invalid {
            self.note_invalid(invalid);
        }
        let Ok(_slot) = self.app.pools.acquires.wait().await else {
            return Err(Status::unavailable("the table cannot keep up with the calls"));
        };
        let outcomes = join_all(plan.charges.iter().map(|charge| self.take(charge))).await;
        // What was taken is given back if this returns: a lease that is dropped gives its tokens back.
        let outcomes: Vec<Outcome<'_>> = outcomes.into_iter().collect::<Result<_, _>>()?;
        let result = |(charge, outcome): (&Charge, &Outcome<'_>)| ChargeResult {
            statuses: outcome.statuses(),
            shadow: charge.shadow,
            invalid: matches!(outcome, Outcome::Invalid),
            disabled: matches!(outcome, Outcome::Disabled(_)),
        };
        let results: Vec<ChargeResult> = plan.charges.iter().zip(&outcomes).map(result).collect();
        let refused = results.iter().any(ChargeResult::refuses);
        let refusal = plan.charges.iter().zip(&outcomes).find_map(|pair| match pair {
            (Charge { shadow: false, .. }, Outcome::Refused(refusal)) => Some(&**refusal),
            _ => None,
        });
        let disabled = plan.charges.iter().zip(&outcomes).find_map(|pair| match pair {
            (Charge { shadow: false, .. }, Outcome::Disabled(error)) => Some(error),
            _ => None,
        });
        let invalid = plan.is_refused() || results.iter().any(|result| result.invalid && !result.shadow);
        let code = if refused || invalid {
            Code::OverLimit
        } else {
            Code::Ok
        };
        let status = |counting: &Counting| match counting {
            Counting::On(place) => results.get(place.charge).map_or_else(
                || reply::unlimited(Code::Ok),
                |result| result.descriptor(&place.limit),
            ),
            Counting::Nothing => reply::unlimited(Code::Ok),
            Counting::Refused => reply::unlimited(Code::OverLimit),
        };
        let response = RateLimitResponse {
            overall_code: code.into(),
            statuses: plan.descriptors.iter().map(status).collect(),
            // Where nothing is to be waited for, no field says how long.
            response_headers_to_add: reply::headers(header_fields(
                &results,
                refusal.filter(|_| disabled.is_none()),
            )),
            raw_body: match (disabled, refusal) {
                (Some(error), _) => Problem::from(error.clone()).body().into_bytes(),
                (None, Some(refusal)) => Problem::from(refusal).body().into_bytes(),
                (None, None) => Vec::new(),
            },
        };
        // A request with values that cannot be counted is refused, and all else that it asks for is charged.
        if !refused {
            for (charge, outcome) in plan.charges.into_iter().zip(outcomes) {
                self.keep(charge, outcome).await?;
            }
        }
        Ok(response)
    }

    async fn take<'a>(&'a self, charge: &Charge) -> Result<Outcome<'a>, Status> {
        match self.try_to_take(charge).await {
            Err(Error::Refused(refusal)) => {
                if charge.shadow {
                    self.app.metrics.rls_shadow_refused(&charge.mappings);
                    tracing::info!(mappings = ?charge.mappings, %refusal, "a shadow would refuse");
                }
                Ok(Outcome::Refused(refusal))
            }
            Err(error @ Error::Disabled { .. }) => {
                if charge.shadow {
                    self.app.metrics.rls_shadow_refused(&charge.mappings);
                    tracing::info!(mappings = ?charge.mappings, %error, "a shadow would refuse");
                }
                Ok(Outcome::Disabled(error))
            }
            Err(Error::NotFound(NotFound::Limits { .. })) if charge.allow_without_limits => {
                Ok(Outcome::Unlimited)
            }
            Err(error)
                if matches!(
                    kind_of(&error),
                    ProblemKind::InvalidRequest | ProblemKind::NoLimits
                ) =>
            {
                for mapping in &charge.mappings {
                    let (mapping, reason) = (mapping.clone(), error.to_string());
                    self.note_invalid(&Invalid { mapping, reason });
                }
                Ok(Outcome::Invalid)
            }
            Err(error) if charge.shadow => {
                static LOG: LogLimit = LogLimit::new();
                if let Some(suppressed) = LOG.permit() {
                    tracing::warn!(mappings = ?charge.mappings, %error, suppressed, "a shadow failed");
                }
                Ok(Outcome::Unlimited)
            }
            result => result.map_err(status),
        }
    }

    async fn try_to_take<'a>(&'a self, charge: &Charge) -> Result<Outcome<'a>, Error> {
        let (entity, resource) = &charge.bucket;
        let mut acquire = self.app.limiter.acquire(entity, resource);
        for (limit, tokens) in &charge.amounts {
            acquire = acquire.consume(limit, *tokens);
        }
        if charge.asks {
            let left = acquire.peek().await?;
            if let Some((entity, mode_from)) = left.disabled_by() {
                return Err(Error::Disabled {
                    entity: entity.clone(),
                    resource: resource.clone(),
                    mode_from,
                });
            }
            return Ok(Outcome::Seen(left.statuses().to_vec()));
        }
        // Without a slot the hits are counted and cannot be given back.
        let slot = charge.refundable.and_then(|_| self.reserve());
        let result = acquire.await;
        self.app.note_acquire(&result);
        let lease = Box::new(result?);
        // Permits last until the lease ends, so it needs a slot.
        let slot = match slot {
            None if permits(&lease).next().is_some() => self.reserve(),
            slot => slot,
        };
        Ok(Outcome::Taken { lease, slot })
    }

    /// A message that is too large to decode. Callers of the gateway make it so with the values that they send.
    pub(super) fn note_too_large(&self) {
        self.note_invalid(&Invalid {
            mapping: "_any".to_owned(),
            reason: "the message is too large".to_owned(),
        });
        self.app.metrics.rls_responded("over_limit");
    }

    /// Counts a descriptor that cannot be counted, and logs the first one of each mapping.
    fn note_invalid(&self, Invalid { mapping, reason }: &Invalid) {
        self.app.metrics.rls_invalid(mapping);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.insert(mapping.clone()) {
            tracing::warn!(
                mapping,
                ?reason,
                "a descriptor has values that cannot be counted and is over the limit; \
                 further ones of this mapping are only counted"
            );
        }
    }

    /// Keeps a place for a lease that can be given back; nothing if there is none.
    fn reserve(&self) -> Option<Slot<'_>> {
        let now = self.app.clock.elapsed();
        self.refunds().forget(now);
        let place = self.places.clone().try_acquire_owned().ok()?;
        Some((self.app.leases.reserve().ok()?, place))
    }

    fn refunds(&self) -> MutexGuard<'_, Refunds> {
        self.refunds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds what can be given back, and commits the rest.
    async fn keep(&self, charge: Charge, outcome: Outcome<'_>) -> Result<(), Status> {
        let Outcome::Taken { lease, slot } = outcome else {
            return Ok(());
        };
        // Envoy does not say when a request ends: without a time of the mapping its permits are held until they would expire.
        let expiry = permits(&lease)
            .filter_map(|status| status.limit.kind().expires_after())
            .max();
        let Some(time) = charge.refundable.or(expiry) else {
            return lease.commit().await.map_err(status);
        };
        let Some((slot, place)) = slot else {
            if expiry.is_some() {
                // Dropped, the lease gives everything back.
                return Err(Status::unavailable(
                    "too many requests hold permits; try again later",
                ));
            }
            return lease.commit().await.map_err(status);
        };
        let released = permits(&lease)
            .map(|status| status.limit.name().clone())
            .collect();
        let id = LeaseId::random().map_err(|error| Status::internal(error.to_string()))?;
        let now = self.app.clock.elapsed();
        slot.hold(id, *lease, time);
        let (bucket, amounts) = (charge.bucket, charge.amounts);
        self.refunds()
            .add(bucket, id, (amounts, released), place, now + time, now);
        Ok(())
    }

    /// Gives back at most what leases of the bucket took.
    async fn give_back(&self, bucket: &Bucket, amounts: Amounts) {
        let wanted = total(&amounts);
        let now = self.app.clock.elapsed();
        let portions = self.refunds().take(bucket, amounts, now);
        let mut given = 0_u64;
        for portion in portions {
            let adjusted = portion
                .amounts
                .iter()
                .filter(|(limit, _)| !portion.permits.contains(*limit));
            let back = adjusted
                .map(|(limit, tokens)| (limit.to_string(), -i64::try_from(*tokens).unwrap_or(i64::MAX)));
            let adjustments = Adjustments {
                tokens: back.collect(),
                ..Adjustments::default()
            };
            // A lease that has expired meanwhile gives nothing back.
            let Ok(lease) = self.app.leases.end_committed(portion.id, &adjustments) else {
                continue;
            };
            given = given.saturating_add(total(&portion.amounts));
            // The write goes on in the background if Envoy does not wait for it, or if the table is unavailable.
            let written = tokio::spawn(lease.commit()).await;
            if let Ok(Err(error)) = written {
                tracing::warn!(%error, "a refund is not written yet");
            }
        }
        if given < wanted {
            let (entity, resource) = bucket;
            tracing::debug!(%entity, %resource, wanted, given, "negative hits exceed what can be given back");
        }
    }
}

impl Outcome<'_> {
    fn statuses(&self) -> Vec<LimitStatus> {
        match self {
            Self::Taken { lease, .. } => lease.statuses(),
            Self::Seen(statuses) => statuses.clone(),
            Self::Refused(refusal) => refusal.statuses().to_vec(),
            Self::Unlimited | Self::Invalid | Self::Disabled(_) => vec![],
        }
    }
}

/// The limits of which a lease holds permits.
fn permits(lease: &Lease) -> impl Iterator<Item = LimitStatus> {
    let statuses = lease.statuses().into_iter();
    statuses.filter(|status| status.requested > 0 && status.limit.kind().expires_after().is_some())
}

fn total(amounts: &Amounts) -> u64 {
    amounts
        .values()
        .fold(0, |sum, tokens| sum.saturating_add(*tokens))
}

/// How the limits of a charge stand.
struct ChargeResult {
    statuses: Vec<LimitStatus>,
    shadow: bool,
    invalid: bool,
    disabled: bool,
}

impl ChargeResult {
    fn refuses(&self) -> bool {
        !self.shadow && (self.disabled || self.statuses.iter().any(|status| status.refused))
    }

    fn descriptor(&self, limit: &LimitName) -> DescriptorStatus {
        let exceeded = |status: &LimitStatus| status.limit.name() == limit && status.refused;
        let over = self.invalid || self.disabled || self.statuses.iter().any(exceeded);
        let code = if over && !self.shadow {
            Code::OverLimit
        } else {
            Code::Ok
        };
        reply::descriptor_status(&self.statuses, limit, code)
    }
}

/// The fields of the bucket that refuses, otherwise of the one where the least is left.
fn header_fields(results: &[ChargeResult], refusal: Option<&Refusal>) -> RateLimitHeaders {
    if let Some(refusal) = refusal {
        return RateLimitHeaders::refused(refusal);
    }
    let known = results.iter().filter(|result| !result.shadow);
    let tightest = known
        .filter_map(|result| Some((reply::least_left(&result.statuses)?, result)))
        .min_by(|(one, _), (other, _)| one.total_cmp(other));
    RateLimitHeaders::admitted(tightest.map_or(&[], |(_, result)| &result.statuses))
}

/// Envoy lets a request pass or not when it gets one of these, as its `failure_mode_deny` says.
fn status(error: Error) -> Status {
    let problem = Problem::from(error);
    let detail = problem.detail().to_owned();
    match problem.kind() {
        ProblemKind::InvalidRequest => Status::invalid_argument(detail),
        ProblemKind::NoLimits => Status::failed_precondition(detail),
        ProblemKind::Unavailable | ProblemKind::Overloaded | ProblemKind::ShuttingDown => {
            Status::unavailable(detail)
        }
        _ => Status::internal(detail),
    }
}
