//! Tokens taken from one bucket, which go back unless they are kept.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Batch, BucketConfig, ClientTag, Evaluation, Image, Outlook, RetryAfter};
use zae_limiter_schema::{Limit, LimitName, Mode};

use super::amounts::{Amounts, add, amount_of};
use super::core::request::Taken;
use super::handle::BucketHandle;
use super::limit_statuses::limit_statuses;
use super::origin::{Holdings, Origin, agree, holding_of, lots};
use super::permits::PermitLot;
use crate::status::LimitStatus;
use crate::{Error, Result};

/// Tokens taken from one bucket, or none yet. Dropped, they go back in the background, so that nothing leaks by an error, a
/// panic or a canceled future.
#[derive(Debug)]
pub(crate) struct Grant {
    bucket: Arc<BucketHandle>,
    /// The limits that the bucket had then.
    config: Arc<BucketConfig>,
    /// The tag of the process then.
    client: ClientTag,
    /// Oldest first. There are several only if the bucket was deleted and created again between two of them.
    taken: SmallVec<[Portion; 1]>,
    /// What passed without being taken.
    passed: Option<Box<Passed>>,
}

/// What a call wanted of a bucket whose limits are not enforced.
#[derive(Debug)]
struct Passed {
    amounts: Amounts,
    /// The limits that would have refused it.
    observed: Vec<LimitStatus>,
}

/// What was taken from one incarnation of the bucket, and within the same periods and permits: no other one may get it back.
#[derive(Debug)]
struct Portion {
    /// The bucket after the last write that took some of it.
    image: Arc<Image>,
    amounts: Amounts,
    holdings: Holdings,
}

type Booked = oneshot::Receiver<Result<(), Error>>;

impl Grant {
    pub(crate) fn new(
        bucket: Arc<BucketHandle>,
        config: Arc<BucketConfig>,
        amounts: Amounts,
        taken: Taken,
    ) -> Self {
        let client = bucket.with_core(|core| core.client());
        bucket.book_locally(&config, &amounts);
        let Taken { image, holdings } = taken;
        Self {
            bucket,
            config,
            client,
            taken: smallvec![Portion {
                image,
                amounts,
                holdings
            }],
            passed: None,
        }
    }

    /// Nothing is taken from this bucket.
    pub(crate) fn empty(bucket: Arc<BucketHandle>, config: Arc<BucketConfig>) -> Self {
        let client = bucket.with_core(|core| core.client());
        Self {
            bucket,
            config,
            client,
            taken: SmallVec::new(),
            passed: None,
        }
    }

    /// Nothing is taken from this bucket though the call wanted this, because its limits are not enforced. `statuses` are
    /// those of the refusal that it would have been.
    pub(crate) fn passed(
        bucket: Arc<BucketHandle>,
        config: Arc<BucketConfig>,
        amounts: Amounts,
        statuses: Vec<LimitStatus>,
    ) -> Self {
        let observed = statuses.into_iter().filter(|status| status.observed).collect();
        let mut grant = Self::empty(bucket, config);
        grant.passed = Some(Box::new(Passed { amounts, observed }));
        grant
    }

    /// The limits that would have refused the call if they were enforced.
    pub(crate) fn observed(&self) -> &[LimitStatus] {
        self.passed.as_ref().map_or(&[], |passed| &passed.observed)
    }

    /// Whether the limits were enforced.
    pub(crate) fn mode(&self) -> Mode {
        self.config.mode()
    }

    /// True if there is nothing to return.
    pub(crate) fn holds_nothing(&self) -> bool {
        self.taken.is_empty()
    }

    /// The bucket that they were taken from.
    pub(crate) fn bucket(&self) -> &Arc<BucketHandle> {
        &self.bucket
    }

    /// The limit of that name that the bucket had.
    pub(crate) fn limit(&self, limit: &LimitName) -> Option<&Limit> {
        self.config.limits().get(limit)
    }

    /// The permits that are held.
    pub(crate) fn lots(&self) -> impl Iterator<Item = &Arc<PermitLot>> {
        let lots = self.taken.iter().flat_map(|portion| lots(&portion.holdings));
        lots.map(|(_, lot)| lot)
    }

    /// The status of every limit after the last write that took some of it, or by the last image where nothing was taken; next
    /// to what was taken.
    pub(crate) fn statuses(&self) -> Vec<LimitStatus> {
        if self.holds_nothing() && self.config.mode() == Mode::Bypass {
            return Vec::new();
        }
        let after = self.taken.last().map(|latest| latest.image.clone());
        let image = after.or_else(|| self.bucket.image());
        let now = self.bucket.shared().now();
        let evaluation = Evaluation::by_image(image.as_deref(), &self.config, now);
        limit_statuses(self.bucket.key(), &self.config, &self.taken(), |limit, _| {
            let outlook = evaluation.outlook(limit.name(), &Batch::default(), 0)?;
            Some(Outlook {
                retry_after: RetryAfter::Now,
                ..outlook
            })
        })
    }

    /// What was taken, by limit, or passed in its place.
    pub(crate) fn taken(&self) -> Amounts {
        let mut all = Amounts::new();
        let taken = self.taken.iter().flat_map(|portion| &portion.amounts);
        let passed = self.passed.iter().flat_map(|passed| &passed.amounts);
        for (limit, amount) in taken.chain(passed) {
            add(&mut all, limit, *amount);
        }
        all
    }

    /// Takes over what a later grant on the same bucket has taken.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.config = other.config.clone();
        match (&mut self.passed, other.passed.take()) {
            (Some(passed), Some(later)) => passed.absorb(*later),
            (passed @ None, later) => *passed = later,
            (Some(_), None) => {}
        }
        for portion in std::mem::take(&mut other.taken) {
            match self.taken.last_mut() {
                Some(latest) if latest.comes_back_like(&portion) => latest.absorb(portion),
                _ => self.taken.push(portion),
            }
        }
    }

    /// Keeps the tokens and books what was used more or less of the limits that the bucket has. If nothing was taken, it books
    /// only what was used more; if the call passed, nothing. Permits are released.
    ///
    /// The receivers report when it is booked, which goes on in the background if nobody waits for them.
    pub(crate) fn keep(&mut self, changes: &Amounts) -> Vec<Booked> {
        let portions = std::mem::take(&mut self.taken);
        let here = changes.iter().filter(|(limit, _)| {
            let limit = self.limit(limit);
            limit.is_some_and(|limit| limit.kind().can_be_adjusted())
        });
        let mut changes: Amounts = here.cloned().collect();
        if portions.is_empty() && self.passed.is_some() {
            return Vec::new();
        }
        if portions.is_empty() {
            changes.retain(|(_, change)| *change > 0);
            let books = !changes.is_empty();
            return Vec::from_iter(books.then(|| self.adjust(changes, Origin::of_bucket(""))));
        }
        let mut outcomes = Vec::new();
        for portion in portions.into_iter().rev() {
            let mut own = portion.share(&mut changes);
            own.extend(portion.released_permits());
            if !own.is_empty() {
                outcomes.push(self.adjust(own, portion.origin()));
            }
        }
        outcomes
    }

    /// Refunds everything. The receivers report when it is booked.
    pub(crate) fn give_back(mut self) -> Vec<Booked> {
        self.take_back()
    }

    fn take_back(&mut self) -> Vec<Booked> {
        let portions = std::mem::take(&mut self.taken);
        let back = portions.into_iter().filter(|portion| !portion.amounts.is_empty());
        back.map(|portion| {
            let amounts = portion.amounts.iter();
            let changes = amounts.map(|(limit, amount)| (limit.clone(), -amount)).collect();
            self.adjust(changes, portion.origin())
        })
        .collect()
    }

    fn adjust(&self, changes: Amounts, origin: Origin) -> Booked {
        self.bucket.book_locally(&self.config, &changes);
        self.bucket.adjust(changes, origin, self.client)
    }
}

impl Passed {
    fn absorb(&mut self, later: Self) {
        for (limit, amount) in &later.amounts {
            add(&mut self.amounts, limit, *amount);
        }
        self.observed = later.observed;
    }
}

impl Portion {
    fn origin(&self) -> Origin {
        Origin {
            incarnation: self.image.incarnation().into(),
            holdings: self.holdings.clone(),
        }
    }

    fn comes_back_like(&self, other: &Self) -> bool {
        self.image.incarnation() == other.image.incarnation() && agree(&self.holdings, &other.holdings)
    }

    /// The permits, given back.
    fn released_permits(&self) -> impl Iterator<Item = (LimitName, i128)> {
        lots(&self.holdings).map(|(limit, _)| (limit.clone(), -amount_of(&self.amounts, limit)))
    }

    fn absorb(&mut self, later: Self) {
        for (limit, amount) in &later.amounts {
            add(&mut self.amounts, limit, *amount);
        }
        let new = later
            .holdings
            .into_iter()
            .filter(|(limit, _)| holding_of(&self.holdings, limit).is_none());
        let new: Holdings = new.collect();
        self.holdings.extend(new);
        self.image = later.image;
    }

    /// Takes its share out of the changes: all that was used more, and of what was used less no more than it gave.
    fn share(&self, left: &mut Amounts) -> Amounts {
        let mut own = Amounts::new();
        for (limit, change) in left {
            let part = (*change).max(-amount_of(&self.amounts, limit));
            if part != 0 {
                own.push((limit.clone(), part));
                *change -= part;
            }
        }
        own
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.taken.is_empty() {
            drop(self.take_back());
        }
    }
}
