//! What a decision stands on: the last image, the config, and one reading of the clock.

use super::batch::NOTHING;
use super::kinds::WriteContext;
use super::{Batch, BucketConfig, Demand, Held, Image, LimitState, Outlook, Presence, Sharing};
use crate::{LimitName, Timestamp};

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
    /// In order of their names, each once. A bucket has few limits.
    limits: Vec<(LimitName, LimitState)>,
    /// Limits of the item whose name belongs to a limit of another kind now. They are on their way out.
    replaced: Vec<(LimitName, LimitState)>,
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
        let limits = config.limits().iter().map(|limit| {
            (
                limit.name().clone(),
                LimitState::absent(limit, Presence::Fresh, now),
            )
        });
        Self {
            basis: Basis::Create,
            config,
            now,
            elapsed: 0,
            sharing: Sharing::Alone,
            limits: limits.collect(),
            replaced: Vec::new(),
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
        let (refill_now, elapsed) = forward(image, now);
        let limits =
            LimitState::on_item(image, &presence, now).map(|(name, limit_state)| (name.clone(), limit_state));
        let (limits, replaced) = each_name_once(limits.collect(), config);
        Self {
            basis: Basis::Live(image),
            config,
            now: refill_now,
            elapsed,
            sharing: Sharing::Alone,
            limits,
            replaced,
        }
    }

    /// The bucket has other parameters: it is about to get those of the config.
    pub fn parameters(image: &'a Image, config: &'a BucketConfig, now: Timestamp) -> Self {
        let (refill_now, elapsed) = forward(image, now);
        let mut limits = Vec::with_capacity(image.limit_count().max(config.limits().len()));
        for limit in config.limits() {
            let name = limit.name();
            let limit_state = match LimitState::kept(image, limit, now) {
                Some(kept) => kept,
                None if config.is_on(image) => LimitState::lost(limit, elapsed, now),
                None if image.broken.contains(name) => LimitState::absent(limit, Presence::Broken, now),
                None => LimitState::absent(limit, Presence::Fresh, now),
            };
            limits.push((name.clone(), limit_state));
        }
        let leaves = |(name, limit_state): &(&LimitName, LimitState)| {
            let limit = config.limits().get(name);
            limit.is_none_or(|limit| !limit_state.is_kind_of(limit))
        };
        let leaving = LimitState::on_item(image, |_| Presence::Leaving, now).filter(leaves);
        limits.extend(leaving.map(|(name, limit_state)| (name.clone(), limit_state)));
        let (limits, replaced) = each_name_once(limits, config);
        Self {
            basis: Basis::Parameters(image),
            config,
            now: refill_now,
            elapsed,
            sharing: Sharing::Alone,
            limits,
            replaced,
        }
    }

    /// The same for a bucket that others may write too.
    #[must_use]
    pub fn with_sharing(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// The same for a bucket whose last refill is [in the future](Image::is_ahead_of): the write moves it back to `time`. The
    /// levels stay as they are, since nothing has come back since a time in the future.
    #[must_use]
    pub fn with_refill_set_back(self, time: Timestamp) -> Self {
        Self { now: time, ..self }
    }

    /// True if the write moves the last refill back.
    pub(super) fn sets_refill_back(&self) -> bool {
        match self.basis {
            Basis::Create => false,
            Basis::Live(image) | Basis::Parameters(image) => self.now < image.refilled_at,
        }
    }

    /// The one reading of the clock, not before the last refill unless that is set back.
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
    pub fn outlook(&self, limit: &LimitName, batch: &Batch, amount: i128) -> Option<Outlook> {
        let limit_state = self.limit_state(limit)?;
        Some(limit_state.outlook(batch.demand(limit), amount))
    }

    /// Adds a change to a batch, in the way in which it can be booked on this bucket: above zero is taken, below zero given
    /// back. `held` says what is given back, and `same_bucket` that it was taken from this incarnation.
    pub fn book(
        &self,
        batch: &mut Batch,
        limit: &LimitName,
        change: i128,
        held: Option<Held>,
        same_bucket: bool,
    ) {
        match self.limit_state(limit) {
            Some(limit_state) => limit_state.book(limit, change, held, same_bucket, batch),
            // Nothing of it is written.
            None => batch.add(limit, Demand::default()),
        }
    }

    /// Adds a top-up of a limit to a batch. False if the bucket does not have the limit, or if it is one on calls in flight:
    /// nothing can be added to those.
    pub fn top_up(&self, batch: &mut Batch, limit: &LimitName, amount: i128) -> bool {
        let demand = self.limit_state(limit).and_then(|state| state.top_up(amount));
        if let Some(demand) = demand {
            batch.add(limit, demand);
        }
        demand.is_some()
    }

    /// Adds the renewal of permits to a batch. False if their epoch no longer has them: they have expired.
    pub fn renew(&self, batch: &mut Batch, limit: &LimitName, held: Held, permits: i128) -> bool {
        self.limit_state(limit)
            .is_some_and(|limit_state| limit_state.renew(limit, permits, held, batch))
    }

    /// All limits that the write concerns, with what is asked of them.
    pub(super) fn asked<'b>(
        &'b self,
        batch: &'b Batch,
    ) -> impl Iterator<Item = (&'b LimitName, &'b LimitState, &'b Batch)> {
        let limits = self
            .limits
            .iter()
            .map(move |(name, limit_state)| (name, limit_state, batch));
        let replaced = self
            .replaced
            .iter()
            .map(|(name, limit_state)| (name, limit_state, &NOTHING));
        limits.chain(replaced)
    }

    /// What all limits are decided with.
    pub(super) fn write_context(&self) -> WriteContext {
        WriteContext {
            elapsed: self.elapsed,
            sharing: self.sharing,
            writes_params: !matches!(self.basis, Basis::Live(_)),
        }
    }

    /// How long the bucket lives after the batch, in seconds.
    pub(super) fn life(&self, batch: &Batch) -> Option<i64> {
        let lives = self
            .asked(batch)
            .map(|(name, limit_state, batch)| limit_state.life(name, batch));
        let (fill, to_full) = lives.fold((0, 0), |(fill, to_full), own: (i128, i128)| {
            (fill.max(own.0), to_full.max(own.1))
        });
        self.config.ttl().life_seconds(fill, to_full)
    }
}

type Limits = Vec<(LimitName, LimitState)>;

/// The limits in order, each name once, and those that are replaced. A limit that has changed its kind keeps its name, and the
/// item keeps what it was before until nothing of it is used: of several limits of a name, that of the config's kind counts.
fn each_name_once(mut limits: Limits, config: &BucketConfig) -> (Limits, Limits) {
    let other_kind = |(name, limit_state): &(LimitName, LimitState)| {
        let limit = config.limits().get(name);
        limit.is_some_and(|limit| !limit_state.is_kind_of(limit))
    };
    limits.sort_by(|one, other| {
        let by_name = one.0.cmp(&other.0);
        by_name.then_with(|| other_kind(one).cmp(&other_kind(other)))
    });
    if limits.windows(2).all(|pair| pair[0].0 != pair[1].0) {
        return (limits, Vec::new());
    }
    let mut once: Limits = Vec::with_capacity(limits.len());
    let mut replaced = Vec::new();
    for (name, limit_state) in limits {
        if once.last().is_some_and(|(last, _)| *last == name) {
            replaced.push((name, limit_state.leaving()));
        } else {
            once.push((name, limit_state));
        }
    }
    (once, replaced)
}

/// A clock behind the last refill is clamped to it.
fn forward(image: &Image, now: Timestamp) -> (Timestamp, i128) {
    let now = now.max(image.refilled_at);
    (now, image.elapsed(now))
}
