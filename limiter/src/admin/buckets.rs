//! Buckets as they are now, for people who look at them.

use zae_limiter_schema::bucket::{Attributes, ClientTag, Decoded, Image, LimitImage, Slot};
use zae_limiter_schema::keys::prefix;
use zae_limiter_schema::{EntityId, Item, LimitName, Malformed, Resource, Timestamp, whole_tokens};

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
    /// Its limits, by name. Those with missing or invalid attributes are left out.
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
    /// Tokens per period.
    pub capacity: u64,
    /// The most that can be available at once.
    pub burst: u64,
    /// Tokens that each period adds.
    pub refill_amount: u64,
    /// The length of a period in milliseconds.
    pub refill_period_ms: u64,
    /// Tokens available now. Negative is debt.
    pub available: i64,
    /// Net tokens consumed since the limit came to the bucket.
    pub consumed: i64,
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
        let limits = image.limits.iter();
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
                .map(|(name, limit)| BucketLimit::new(name.clone(), limit, image.elapsed(now)))
                .collect(),
            acquires: u64::try_from(image.events).unwrap_or(0),
            writers,
            expires_at: image.expires_at.map(Timestamp::from_seconds),
        }
    }
}

impl BucketLimit {
    fn new(name: LimitName, limit: &LimitImage, elapsed: i128) -> Self {
        let params = limit.token_bucket.params;
        let amount = |millitokens| u64::try_from(whole_tokens(millitokens)).unwrap_or(u64::MAX);
        Self {
            name,
            capacity: amount(params.capacity()),
            burst: amount(params.burst()),
            refill_amount: amount(params.amount()),
            refill_period_ms: u64::try_from(params.period()).unwrap_or(u64::MAX),
            available: clamped(whole_tokens(limit.token_bucket.available(elapsed))),
            consumed: clamped(whole_tokens(limit.consumed)),
        }
    }
}

/// The nearest number that fits.
pub(super) fn clamped(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}
