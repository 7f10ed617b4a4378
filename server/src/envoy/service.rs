//! `ShouldRateLimit`: takes the hits of all descriptors, or none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;
use tokio::sync::Semaphore;
use tonic::Status;
use zae_limiter::{Error, Lease, LimitName, LimitStatus, RateLimitHeaders, Refusal};

use super::mapping::EnvoyMapping;
use super::messages::{Code, DescriptorStatus, RateLimitRequest, RateLimitResponse};
use super::plan::{Amounts, Bucket, Charge, Counting, Plan};
use super::refunds::{self, Refunds};
use super::reply;
use crate::app::App;
use crate::leases::{Adjustments, LeaseId, Reservation};
use crate::problem::{Problem, ProblemKind};

/// The most descriptors of a request. Each may be a write.
const MAX_DESCRIPTORS: usize = 100;

#[derive(Debug)]
pub(super) struct RateLimits {
    app: Arc<App>,
    mapping: EnvoyMapping,
    refunds: Mutex<Refunds>,
    /// Half of the leases, so that those of HTTP clients find room.
    places: Arc<Semaphore>,
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
    /// Nobody knows, and the charge is a shadow.
    Unknown,
}

impl RateLimits {
    pub(super) fn new(app: Arc<App>, mapping: EnvoyMapping) -> Self {
        let most = (app.settings.max_leases / 2).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            app,
            mapping,
            refunds: Mutex::default(),
            places: Arc::new(Semaphore::new(most)),
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
        tracing::debug!(domain = %request.domain, descriptors = request.descriptors.len(), code, "rate limit service");
        result
    }

    async fn decide(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, Status> {
        let Ok(_permit) = self.app.requests.try_acquire() else {
            return Err(Status::unavailable("too many requests are being served"));
        };
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
        if plan.is_refused() {
            return Ok(refuse(&plan));
        }
        let outcomes = join_all(plan.charges.iter().map(|charge| self.take(charge))).await;
        // What was taken is given back if this returns: a lease that is dropped gives its tokens back.
        let outcomes: Vec<Outcome<'_>> = outcomes.into_iter().collect::<Result<_, _>>()?;
        let answer = |(charge, outcome): (&Charge, &Outcome<'_>)| Answer {
            statuses: outcome.statuses(),
            shadow: charge.shadow,
        };
        let answers: Vec<Answer> = plan.charges.iter().zip(&outcomes).map(answer).collect();
        let refused = answers.iter().any(Answer::refuses);
        let refusal = plan.charges.iter().zip(&outcomes).find_map(|pair| match pair {
            (Charge { shadow: false, .. }, Outcome::Refused(refusal)) => Some(&**refusal),
            _ => None,
        });
        let code = if refused { Code::OverLimit } else { Code::Ok };
        let status = |counting: &Counting| match counting {
            Counting::On(place) => answers.get(place.charge).map_or_else(
                || reply::unlimited(Code::Ok),
                |answer| answer.descriptor(&place.limit),
            ),
            Counting::Nothing => reply::unlimited(Code::Ok),
            Counting::Refused => reply::unlimited(Code::OverLimit),
        };
        let response = RateLimitResponse {
            overall_code: code.into(),
            statuses: plan.descriptors.iter().map(status).collect(),
            response_headers_to_add: reply::headers(header_fields(&answers, refusal)),
            raw_body: refusal.map_or_else(Vec::new, |refusal| Problem::from(refusal).body().into_bytes()),
        };
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
            Err(error) if charge.shadow => {
                tracing::warn!(mappings = ?charge.mappings, %error, "a shadow failed");
                Ok(Outcome::Unknown)
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
            return Ok(Outcome::Seen(acquire.peek().await?.statuses().to_vec()));
        }
        // Without a slot the hits are counted and cannot be given back.
        let slot = charge.refundable.and_then(|_| self.reserve());
        let start = self.app.clock.elapsed();
        let result = acquire.await;
        let time = self.app.clock.elapsed() - start;
        self.app.metrics.acquired(resource.as_str(), &result, time);
        let lease = Box::new(result?);
        Ok(Outcome::Taken { lease, slot })
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
        let (Some((slot, place)), Some(time)) = (slot, charge.refundable) else {
            return lease.commit().await.map_err(status);
        };
        let id = LeaseId::random().map_err(|error| Status::internal(error.to_string()))?;
        let now = self.app.clock.elapsed();
        slot.hold(id, *lease, time);
        let (bucket, amounts) = (charge.bucket, charge.amounts);
        self.refunds().add(bucket, id, amounts, place, now + time, now);
        Ok(())
    }

    /// Gives back at most what leases of the bucket took.
    async fn give_back(&self, bucket: &Bucket, amounts: Amounts) {
        let wanted = total(&amounts);
        let now = self.app.clock.elapsed();
        let portions = self.refunds().take(bucket, amounts, now);
        let mut given = 0_u64;
        for portion in portions {
            let adjustments: Adjustments = portion
                .amounts
                .iter()
                .map(|(limit, tokens)| (limit.to_string(), -i64::try_from(*tokens).unwrap_or(i64::MAX)))
                .collect();
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
            Self::Unknown => vec![],
        }
    }
}

fn total(amounts: &Amounts) -> u64 {
    amounts
        .values()
        .fold(0, |sum, tokens| sum.saturating_add(*tokens))
}

/// The response to a request that takes nothing because a descriptor names no bucket.
fn refuse(plan: &Plan) -> RateLimitResponse {
    let status = |counting: &Counting| match counting {
        Counting::Refused => reply::unlimited(Code::OverLimit),
        Counting::On(_) | Counting::Nothing => reply::unlimited(Code::Ok),
    };
    RateLimitResponse {
        overall_code: Code::OverLimit.into(),
        statuses: plan.descriptors.iter().map(status).collect(),
        ..RateLimitResponse::default()
    }
}

/// How the limits of a charge stand.
struct Answer {
    statuses: Vec<LimitStatus>,
    shadow: bool,
}

impl Answer {
    fn refuses(&self) -> bool {
        !self.shadow && self.statuses.iter().any(|status| status.refused)
    }

    fn descriptor(&self, limit: &LimitName) -> DescriptorStatus {
        let exceeded = |status: &LimitStatus| status.limit.name() == limit && status.refused;
        let code = if !self.shadow && self.statuses.iter().any(exceeded) {
            Code::OverLimit
        } else {
            Code::Ok
        };
        reply::descriptor_status(&self.statuses, limit, code)
    }
}

/// The fields of the bucket that refuses, otherwise of the one where the least is left.
fn header_fields(answers: &[Answer], refusal: Option<&Refusal>) -> RateLimitHeaders {
    if let Some(refusal) = refusal {
        return RateLimitHeaders::refused(refusal);
    }
    let known = answers.iter().filter(|answer| !answer.shadow);
    let tightest = known
        .filter_map(|answer| Some((reply::least_left(&answer.statuses)?, answer)))
        .min_by(|(one, _), (other, _)| one.total_cmp(other));
    RateLimitHeaders::admitted(tightest.map_or(&[], |(_, answer)| &answer.statuses))
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
