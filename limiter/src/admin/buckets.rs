//! Buckets as they are now, for people who look at them.

use zae_limiter_schema::bucket::{Attributes, ClientTag, Decoded, Image, LimitOnItem, Slot};
use zae_limiter_schema::keys::prefix;
use zae_limiter_schema::{
    EntityId, Item, LimitName, Malformed, QuotaPeriod, Resource, Timestamp, whole_tokens,
};

/// A bucket as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketState {
    /// Whose bucket.
    pub entity: EntityId,
    /// For what.
    pub resource: Resource,
    /// The time at which the levels are computed.
    pub at: Timestamp,
    /// Time of the last refill.
    pub refilled_at: Timestamp,
    /// Its limits of all kinds, by name. Those with missing or invalid attributes are left out.
    pub limits: Vec<BucketLimit>,
    /// Acquires since it was created.
    pub acquires: u64,
    /// The clients that wrote last, newest first: at most sixteen.
    pub writers: Vec<BucketWriter>,
    /// When DynamoDB may delete it, if ever.
    pub expires_at: Option<Timestamp>,
}

/// One limit of a bucket. Amounts are whole tokens, rounded down.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketLimit {
    /// Its name.
    pub name: LimitName,
    /// Tokens per period, or permits.
    pub capacity: u64,
    /// The most that can be available at once: for a quota its amount and what it was topped up with.
    pub burst: u64,
    /// Tokens or permits available now. Negative is debt.
    pub available: i64,
    /// Net tokens consumed since the limit came to the bucket; permits taken.
    pub consumed: i64,
    /// What only limits of its kind have.
    pub kind: BucketLimitKind,
}

/// What a limit of a bucket has because of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BucketLimitKind {
    /// A rate.
    Rate {
        /// Tokens that each period adds.
        refill_amount: u64,
        /// The length of a period in milliseconds.
        refill_period_ms: u64,
    },
    /// A quota.
    Quota {
        /// Its period.
        period: QuotaPeriod,
        /// Tokens used in the period that runs.
        used: i64,
        /// When that period ends; none runs if nothing was used since the last one.
        period_end: Option<Timestamp>,
    },
    /// A limit on calls in flight.
    Concurrency {
        /// Permits that are held and have not expired.
        held: i64,
        /// How long one lasts if nobody releases or renews it, in seconds.
        expires_after_seconds: u64,
    },
}

/// A client that wrote a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketWriter {
    /// Ten digits that identify one limiter instance for as long as it runs.
    pub client: String,
    /// When it last wrote.
    pub wrote_at: Timestamp,
}

/// One item that is none of ours does not hide the others.
pub(super) fn read_bucket(item: &Item, entity: &EntityId, now: Timestamp) -> Option<BucketState> {
    let key = zae_limiter_dynamo::key_of(item)?;
    let resource = Resource::from_stored(key.sk.strip_prefix(prefix::BUCKET)?).ok()?;
    let image = decode(item)
        .inspect_err(|error| tracing::warn!(%entity, %error, "a bucket is passed over"))
        .ok()??;
    Some(BucketState::new(entity.clone(), resource, &image, now))
}

/// The bucket that an item is. None for what the Python peer leaves of one.
pub(super) fn decode(item: &Item) -> Result<Option<Image>, Malformed> {
    Ok(match Attributes::from_item(item).decode()? {
        Decoded::Bucket(image) => Some(image),
        Decoded::Stub => None,
    })
}

impl BucketState {
    pub(super) fn new(entity: EntityId, resource: Resource, image: &Image, now: Timestamp) -> Self {
        let limits = image.all_limits().into_iter();
        let mut writers: Vec<_> = image
            .slots
            .values()
            .map(|number| BucketWriter {
                client: ClientTag::of(*number).to_string(),
                wrote_at: Timestamp::from_millis(clamped(Slot::written_at(*number))),
            })
            .collect();
        writers.sort_by(|one, other| (other.wrote_at, &one.client).cmp(&(one.wrote_at, &other.client)));
        Self {
            entity,
            resource,
            at: now,
            refilled_at: image.refilled_at,
            limits: limits
                .map(|(name, limit)| BucketLimit::new(name.clone(), limit, image.elapsed(now), now))
                .collect(),
            acquires: u64::try_from(image.events).unwrap_or(0),
            writers,
            expires_at: image.expires_at.map(Timestamp::from_seconds),
        }
    }
}

impl BucketLimit {
    fn new(name: LimitName, limit: LimitOnItem<'_>, elapsed: i128, now: Timestamp) -> Self {
        let amount = |millitokens| u64::try_from(whole_tokens(millitokens)).unwrap_or(u64::MAX);
        let number = |millitokens| clamped(whole_tokens(millitokens));
        Self {
            name,
            capacity: amount(limit.capacity()),
            burst: amount(limit.burst() + limit.topped_up(now)),
            available: number(limit.available(elapsed, now)),
            consumed: number(limit.consumed()),
            kind: match limit {
                LimitOnItem::Rate(rate) => BucketLimitKind::Rate {
                    refill_amount: amount(rate.token_bucket.params.amount()),
                    refill_period_ms: u64::try_from(rate.token_bucket.params.period()).unwrap_or(u64::MAX),
                },
                LimitOnItem::Quota(quota) => {
                    let (used, period_end) = quota.at(now);
                    BucketLimitKind::Quota {
                        period: quota.period.clone(),
                        used: number(used),
                        period_end,
                    }
                }
                LimitOnItem::Concurrency(limit) => BucketLimitKind::Concurrency {
                    held: number(limit.held_at(now)),
                    expires_after_seconds: u64::try_from(limit.expires_after_seconds).unwrap_or(0),
                },
            },
        }
    }
}

/// The nearest number that fits.
pub(super) fn clamped(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}
