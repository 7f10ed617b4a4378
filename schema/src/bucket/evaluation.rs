//! What a decision stands on: the last image, the config, and one reading of the clock.

use super::{Batch, BucketConfig, Demand, Image, Params, Pending, RetryAfter, Sharing, TokenBucket};
use crate::{LimitName, Timestamp};

/// How a limit stands between the item and the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// On the item and in the config.
    Kept,
    /// In the config only: it starts full.
    Fresh,
    /// In the config; on the item there is a remnant that cannot be computed with.
    Broken,
    /// In the config; the etag says that the item has it, but its level or its parameters are gone. It counts as empty
    /// at the last refill.
    Lost,
    /// On the item only: it leaves once it is full.
    Leaving,
}

/// One limit under a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitState {
    /// Between item and config.
    pub presence: Presence,
    /// The limit as on the item; full where it is not there, empty where it is lost.
    pub token_bucket: TokenBucket,
    /// The parameters after the write.
    pub after: Params,
    /// The ceiling for this decision: the smaller of the old and the new burst.
    pub burst: i128,
    /// What has come back since the last refill, at the old rate.
    pub pending: Pending,
}

impl LimitState {
    fn new(presence: Presence, token_bucket: TokenBucket, after: Params, elapsed: i128) -> Self {
        let burst = token_bucket.params.burst().min(after.burst());
        Self {
            presence,
            token_bucket,
            after,
            burst,
            pending: token_bucket.pending(elapsed),
        }
    }

    /// The level now, with credits and adjusts booked and debits not.
    pub fn level(&self, demand: Demand) -> i128 {
        let filled = match self.presence {
            Presence::Kept | Presence::Leaving | Presence::Lost => {
                self.token_bucket.tokens + self.pending.whole + demand.credit
            }
            Presence::Fresh | Presence::Broken => self.burst,
        };
        self.burst.min(filled) - demand.adjust
    }

    /// The limit after the write, with its last refill now.
    pub fn after_write(&self, demand: Demand) -> TokenBucket {
        let full = self.level(Demand { adjust: 0, ..demand }) >= self.burst;
        let lost = self.presence == Presence::Lost;
        let remainder = if full || lost || !self.token_bucket.params.same_rate(&self.after) {
            0
        } else {
            self.pending.remainder
        };
        TokenBucket {
            params: self.after,
            tokens: self.level(demand) - demand.debit,
            remainder,
        }
    }
}

/// Whether the bucket is there, and whether it has the right parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis<'a> {
    Create,
    Live(&'a Image),
    Parameters(&'a Image),
}

/// What a decision about a bucket stands on. The image may reject; only the server's condition admits.
#[derive(Debug, Clone)]
pub struct Evaluation<'a> {
    pub(super) basis: Basis<'a>,
    pub(super) config: &'a BucketConfig,
    pub(super) now: Timestamp,
    pub(super) elapsed: i128,
    pub(super) sharing: Sharing,
    /// In order of their names. A bucket has few limits.
    limits: Vec<(LimitName, LimitState)>,
}

impl<'a> Evaluation<'a> {
    /// The bucket by its last image; one that is not there is full.
    pub fn by_image(image: Option<&'a Image>, config: &'a BucketConfig, now: Timestamp) -> Self {
        match image {
            Some(image) if config.matches(image) => Self::live(image, config, now),
            Some(image) => Self::parameters(image, config, now),
            None => Self::create(config, now),
        }
    }

    /// There is no bucket: it is about to be created.
    pub fn create(config: &'a BucketConfig, now: Timestamp) -> Self {
        let limits = config
            .limits()
            .iter()
            .map(|limit| (limit.name().clone(), fresh(Params::from(limit), Presence::Fresh)));
        let limits = in_order(limits.collect());
        Self {
            basis: Basis::Create,
            config,
            now,
            elapsed: 0,
            sharing: Sharing::Alone,
            limits,
        }
    }

    /// The bucket has the parameters of the config ([`BucketConfig::matches`]).
    pub fn live(image: &'a Image, config: &'a BucketConfig, now: Timestamp) -> Self {
        Self::present(image, config, now, |name| {
            if config.limits().get(name).is_some() {
                Presence::Kept
            } else {
                Presence::Leaving
            }
        })
    }

    /// The bucket has other parameters, and they stay: changes are booked on it as it is, and every limit is kept.
    pub fn as_it_is(image: &'a Image, config: &'a BucketConfig, now: Timestamp) -> Self {
        Self::present(image, config, now, |_| Presence::Kept)
    }

    fn present(
        image: &'a Image,
        config: &'a BucketConfig,
        now: Timestamp,
        presence: impl Fn(&LimitName) -> Presence,
    ) -> Self {
        let (now, elapsed) = forward(image, now);
        let limits = image.limits.iter().map(|(name, limit)| {
            let limit_state = LimitState::new(
                presence(name),
                limit.token_bucket,
                limit.token_bucket.params,
                elapsed,
            );
            (name.clone(), limit_state)
        });
        Self {
            basis: Basis::Live(image),
            config,
            now,
            elapsed,
            sharing: Sharing::Alone,
            limits: limits.collect(),
        }
    }

    /// The bucket has other parameters: it is about to get those of the config.
    pub fn parameters(image: &'a Image, config: &'a BucketConfig, now: Timestamp) -> Self {
        let (now, elapsed) = forward(image, now);
        let mut limits = Vec::with_capacity(image.limits.len().max(config.limits().len()));
        for limit in config.limits() {
            let after = Params::from(limit);
            let limit_state = match image.limits.get(limit.name()) {
                Some(on_item) => LimitState::new(Presence::Kept, on_item.token_bucket, after, elapsed),
                None if config.is_on(image) => {
                    let empty = TokenBucket {
                        tokens: 0,
                        ..TokenBucket::full(after)
                    };
                    LimitState::new(Presence::Lost, empty, after, elapsed)
                }
                None if image.broken.contains(limit.name()) => fresh(after, Presence::Broken),
                None => fresh(after, Presence::Fresh),
            };
            limits.push((limit.name().clone(), limit_state));
        }
        for (name, limit) in &image.limits {
            if limits.iter().any(|(known, _)| known == name) {
                continue;
            }
            let token_bucket = limit.token_bucket;
            let leaving = LimitState::new(Presence::Leaving, token_bucket, token_bucket.params, elapsed);
            limits.push((name.clone(), leaving));
        }
        let limits = in_order(limits);
        Self {
            basis: Basis::Parameters(image),
            config,
            now,
            elapsed,
            sharing: Sharing::Alone,
            limits,
        }
    }

    /// The same for a bucket that others may write too.
    #[must_use]
    pub fn with_sharing(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// The one reading of the clock, not before the last refill.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The limits by name.
    pub fn limits(&self) -> impl Iterator<Item = (&LimitName, &LimitState)> {
        self.limits.iter().map(|(name, limit_state)| (name, limit_state))
    }

    /// One limit.
    pub fn limit_state(&self, limit: &LimitName) -> Option<&LimitState> {
        let mut limits = self.limits.iter();
        limits.find_map(|(name, limit_state)| (name == limit).then_some(limit_state))
    }

    /// True if there is enough for these debits alone.
    pub fn covers(&self, debits: &[(LimitName, i128)]) -> bool {
        debits.iter().all(|(name, debit)| {
            let limit_state = self.limit_state(name);
            limit_state.is_some_and(|limit_state| limit_state.level(Demand::default()) >= *debit)
        })
    }

    /// True if there is enough for all debits of the batch.
    pub fn fits(&self, batch: &Batch) -> bool {
        batch
            .demands
            .iter()
            .filter(|(_, demand)| demand.debit > 0)
            .all(|(name, demand)| {
                self.limit_state(name)
                    .is_some_and(|limit_state| limit_state.level(*demand) >= demand.debit)
            })
    }

    /// What is left of a limit when the batch is booked, and when `amount` more would be there.
    pub fn outlook(&self, limit: &LimitName, batch: &Batch, amount: i128) -> Option<(i128, RetryAfter)> {
        let token_bucket = self.limit_state(limit)?.after_write(batch.demand(limit));
        Some((token_bucket.tokens, token_bucket.wait_for(0, amount)))
    }

    /// How long the bucket lives after the batch, in seconds.
    pub(super) fn life(&self, batch: &Batch) -> Option<i64> {
        let token_buckets = || {
            self.limits
                .iter()
                .map(|(name, limit_state)| limit_state.after_write(batch.demand(name)))
        };
        let fill = token_buckets()
            .map(|token_bucket| token_bucket.params.fill_time())
            .max()
            .unwrap_or(0);
        let to_full = token_buckets()
            .map(|token_bucket| {
                token_bucket
                    .params
                    .time_for(token_bucket.params.burst() - token_bucket.tokens)
            })
            .max()
            .unwrap_or(0);
        self.config.ttl().life_seconds(fill, to_full)
    }
}

fn in_order(mut limits: Vec<(LimitName, LimitState)>) -> Vec<(LimitName, LimitState)> {
    limits.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    limits
}

fn fresh(params: Params, presence: Presence) -> LimitState {
    LimitState::new(presence, TokenBucket::full(params), params, 0)
}

/// A last refill that is further ahead was written by a wrong clock: one that is off by more than five minutes cannot sign
/// requests to DynamoDB without being corrected.
const MAX_AHEAD_MILLIS: i64 = 10 * 60 * 1_000;
/// The refill that a bucket with such a time gets: when it was really refilled is not known.
const REFILL_OF_UNKNOWN_TIME_MILLIS: i128 = 60 * 1_000;

/// A clock behind the last refill is clamped to it. A last refill far ahead of the clock counts as one a minute ago, so that the
/// next write sets it right instead of refusing everything until then.
fn forward(image: &Image, now: Timestamp) -> (Timestamp, i128) {
    if image.refilled_at > now.plus_millis(MAX_AHEAD_MILLIS) {
        return (now, REFILL_OF_UNKNOWN_TIME_MILLIS);
    }
    let now = now.max(image.refilled_at);
    (now, image.elapsed(now))
}
