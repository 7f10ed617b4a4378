//! Adding to what is left of a limit now.

use std::future::IntoFuture;

use zae_limiter_schema::bucket::{Batch, BucketKey, Evaluation, Outlook, Slot, SlotBefore, SlotIndex};
use zae_limiter_schema::{
    AttributeValue, AuditAction, EntityId, LimitName, Resource, Timestamp, Tokens, whole_tokens,
};

use super::{BucketChange, ChangeOptions, Details, Found, Made, Plan, Reading, audit};
use crate::admin::buckets::clamped;
use crate::error::{NotFound, unknown_limit};
use crate::store::BoxFuture;
use crate::{Error, Repository, Result};

/// Nothing is written of it.
const NO_SLOT: Slot = Slot {
    index: SlotIndex::FIRST,
    before: SlotBefore::Any,
    number: 0,
};

impl Repository {
    /// Adds to what is left of one limit now, once.
    ///
    /// A quota gets more for the period that runs; the next period has its amount again. A rate gets tokens up to its burst, which
    /// also pays off debt. To a limit on calls in flight nothing can be added: raise it, [until](crate::SetLimits::until) a time if
    /// need be. Usage does not change.
    ///
    /// Every process admits by it at its next request to the table, so that calls refused before may be refused for one more
    /// second. The change has an audit event, with a [reason](TopUp::reason). Sent again with the same
    /// [idempotency key](TopUp::idempotency_key), it is not made again.
    ///
    /// ```
    /// use zae_limiter::{Limit, QuotaPeriod, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().await?;
    /// let repository = limiter.repository();
    /// repository.set_limits("team-1", "gpt-4", [Limit::quota("spend", 500, QuotaPeriod::month())?]).await?;
    /// limiter.acquire("team-1", "gpt-4").consume("spend", 500).commit().await?;
    ///
    /// let made = repository
    ///     .top_up("team-1", "gpt-4", "spend", 200)
    ///     .reason("approved by finance")
    ///     .idempotency_key("ticket-4711")
    ///     .await?;
    /// assert_eq!((made.added, made.left), (200, 200));
    /// let again = repository.top_up("team-1", "gpt-4", "spend", 200).idempotency_key("ticket-4711").await?;
    /// assert!(again.repeated, "it was made once");
    /// assert_eq!(limiter.acquire("team-1", "gpt-4").peek().await?.tokens("spend"), Some(200));
    /// # Ok(()) }
    /// ```
    pub fn top_up(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
        limit: impl AsRef<str>,
        amount: u64,
    ) -> TopUp {
        let parse = || {
            let bucket = BucketKey {
                entity: EntityId::parse(entity)?,
                resource: Resource::parse(resource)?,
            };
            let limit = LimitName::parse(limit)?;
            Ok((bucket, TopUpRequest::new(limit, amount)?))
        };
        TopUp {
            request: parse(),
            repository: self.clone(),
            options: ChangeOptions::default(),
        }
    }
}

/// A top-up that is about to be made: see [`Repository::top_up`]. Nothing happens until it is awaited.
#[derive(Debug)]
#[must_use = "a top-up does nothing until it is awaited"]
pub struct TopUp {
    repository: Repository,
    request: Result<(BucketKey, TopUpRequest)>,
    options: ChangeOptions,
}

impl TopUp {
    /// Why, for the audit event: at most 1,000 bytes.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.options.reason = Some(reason.into());
        self
    }

    /// Names the change, with at most 255 bytes. The same change under the same key is made once, for as long as its audit event is
    /// kept. Without a key a call that failed with [`Error::Unavailable`] may have happened, and sent again would happen twice.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.options.idempotency_key = Some(key.into());
        self
    }
}

impl IntoFuture for TopUp {
    type Output = Result<TopUpReport>;
    type IntoFuture = BoxFuture<'static, Result<TopUpReport>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (bucket, request) = self.request?;
            let made = self
                .repository
                .change_bucket(&bucket, &self.options, &request)
                .await?;
            Ok(TopUpReport::new(bucket, request, &made))
        })
    }
}

/// A top-up that was made.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct TopUpReport {
    /// Whose limit.
    pub entity_id: EntityId,
    /// On what.
    pub resource: Resource,
    /// The limit.
    pub limit_name: LimitName,
    /// Whole tokens that were asked for.
    pub amount: u64,
    /// Whole tokens that were added, by the bucket as it was read: less than asked for where a rate was nearly full.
    pub added: u64,
    /// Whole tokens that were left afterwards, by the bucket as it was read. Negative is debt.
    pub left: i64,
    /// The end of the quota's period, until which it counts. Other kinds have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_end: Option<Timestamp>,
    /// The id of the audit event.
    pub event_id: String,
    /// It was made before, under the same idempotency key: nothing was added by this call.
    pub repeated: bool,
}

impl TopUpReport {
    fn new(bucket: BucketKey, request: TopUpRequest, made: &Made) -> Self {
        let details = Reading(&made.record.details);
        let end = details.text(PERIOD_END);
        Self {
            entity_id: bucket.entity,
            resource: bucket.resource,
            limit_name: request.limit,
            amount: request.amount.get(),
            added: details.number(ADDED).unwrap_or(0),
            left: details.number(LEFT).unwrap_or(0),
            period_end: end.and_then(|end| Timestamp::parse(end).ok()),
            event_id: made.record.event.to_string(),
            repeated: made.repeated,
        }
    }
}

const ADDED: &str = "added";
const LEFT: &str = "left";
const PERIOD_END: &str = "period_end";

/// What is asked of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct TopUpRequest {
    limit: LimitName,
    amount: Tokens,
}

impl TopUpRequest {
    pub(crate) fn new(limit: LimitName, amount: u64) -> Result<Self> {
        let rule = format!("it must be 1 to {}", Tokens::MAX);
        match Tokens::new(amount) {
            Ok(amount) if !amount.is_zero() => Ok(Self { limit, amount }),
            _ => Err(Error::invalid("amount", amount.to_string(), rule)),
        }
    }
}

impl BucketChange for TopUpRequest {
    const ACTION: AuditAction = AuditAction::ToppedUp;

    fn request(&self) -> String {
        format!("top up {} by {}", self.limit, self.amount)
    }

    fn plan(&self, key: &BucketKey, found: &Found) -> Result<Plan> {
        let (limit, config) = (&self.limit, &found.config);
        let evaluation = match &found.image {
            // A bucket keeps its parameters, which may be those of a call.
            Some(image) if image.etag.is_some() && image.has_limit(limit) => {
                Evaluation::as_it_is(image, config, found.now)
            }
            _ if config.limits().is_empty() => {
                return Err(Error::NotFound(NotFound::Limits {
                    entity: key.entity.clone(),
                    resource: key.resource.clone(),
                }));
            }
            image => Evaluation::by_image(image.as_ref(), config, found.now),
        };
        let outlook = |batch: &Batch| evaluation.outlook(limit, batch, 0);
        let before = outlook(&Batch::default()).ok_or_else(|| unknown_limit(limit, config, key))?;
        let mut batch = Batch::default();
        if !evaluation.top_up(&mut batch, limit, self.amount.millis()) {
            let rule = "it limits calls in flight, to which nothing can be added; raise the limit, until a time if need be";
            return Err(Error::invalid("limit", limit.as_str(), rule));
        }
        let after = outlook(&batch).unwrap_or(before);
        let write = evaluation.write(key.clone(), &batch, NO_SLOT, found.incarnation);
        Ok(Plan {
            statement: write.map(|write| write.statement_without_slot()),
            details: self.details(before, after),
        })
    }
}

impl TopUpRequest {
    fn details(&self, before: Outlook, after: Outlook) -> Details {
        let number = |tokens: i64| AttributeValue::N(tokens.to_string());
        let tokens = |millis: i128| number(clamped(whole_tokens(millis)));
        let mut details = Details::from([
            ("limit".to_owned(), audit::text(self.limit.as_str())),
            (
                "amount".to_owned(),
                AttributeValue::N(self.amount.get().to_string()),
            ),
            (ADDED.to_owned(), tokens(after.left - before.left)),
            (LEFT.to_owned(), tokens(after.left)),
        ]);
        let end = after.reset.map(|reset| audit::text(&reset.at.to_string()));
        details.extend(end.map(|end| (PERIOD_END.to_owned(), end)));
        details
    }
}
