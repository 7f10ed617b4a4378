//! Tokens taken from one bucket, which go back unless they are kept.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tokio::sync::oneshot;
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Batch, BucketConfig, ClientTag, Evaluation, Image, RetryAfter};

use super::amounts::{Amounts, add, amount_of};
use super::handle::BucketHandle;
use super::limit_statuses::limit_statuses;
use crate::status::LimitStatus;
use crate::{Error, Result};

/// Tokens taken from one bucket, or none yet. Dropped, they go back in the background: whatever becomes of the one who holds them
/// (an error, a panic, a cancelled future), nothing leaks.
#[derive(Debug)]
pub(crate) struct Grant {
    bucket: Arc<BucketHandle>,
    /// The limits that the bucket had then.
    config: Arc<BucketConfig>,
    /// The tag of the process then.
    client: ClientTag,
    /// The latest last. Several only if the bucket was deleted and made again between two of them.
    taken: SmallVec<[Portion; 1]>,
}

/// What was taken from one incarnation of the bucket: no other one may get it back.
#[derive(Debug)]
struct Portion {
    /// The bucket after the last write that took some of it.
    image: Arc<Image>,
    amounts: Amounts,
}

type Booked = oneshot::Receiver<Result<(), Error>>;

impl Grant {
    pub(crate) fn new(
        bucket: Arc<BucketHandle>,
        config: Arc<BucketConfig>,
        amounts: Amounts,
        image: Arc<Image>,
    ) -> Self {
        let client = bucket.with_core(|core| core.client());
        bucket.book_locally(&config, &amounts);
        Self {
            bucket,
            config,
            client,
            taken: smallvec![Portion { image, amounts }],
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
        }
    }

    /// The bucket that they were taken from.
    pub(crate) fn bucket(&self) -> &Arc<BucketHandle> {
        &self.bucket
    }

    pub(crate) fn has_limit(&self, limit: &LimitName) -> bool {
        self.config.limits().get(limit).is_some()
    }

    /// The status of every limit after the last write that took some of it, or by the last image where nothing was taken; next
    /// to what was taken.
    pub(crate) fn statuses(&self) -> Vec<LimitStatus> {
        let after = self.taken.last().map(|latest| latest.image.clone());
        let image = after.or_else(|| self.bucket.image());
        let now = self.bucket.shared().now();
        let evaluation = Evaluation::by_image(image.as_deref(), &self.config, now);
        limit_statuses(self.bucket.key(), &self.config, &self.taken(), |limit, _| {
            let (available, _) = evaluation.outlook(limit.name(), &Batch::default(), 0)?;
            Some((available, RetryAfter::Now))
        })
    }

    /// What was taken, by limit.
    pub(crate) fn taken(&self) -> Amounts {
        let mut all = Amounts::new();
        for (limit, amount) in self.taken.iter().flat_map(|portion| &portion.amounts) {
            add(&mut all, limit, *amount);
        }
        all
    }

    /// Takes over what a later grant on the same bucket has taken.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.config = other.config.clone();
        for portion in std::mem::take(&mut other.taken) {
            match self.taken.last_mut() {
                Some(latest) if latest.incarnation() == portion.incarnation() => latest.absorb(portion),
                _ => self.taken.push(portion),
            }
        }
    }

    /// Keeps the tokens and books what was used more or less of the limits that the bucket has; where nothing was taken, only
    /// more. The answers say whether it is booked; what is not yet goes on in the background.
    pub(crate) fn keep(&mut self, changes: &Amounts) -> Vec<Booked> {
        if changes.is_empty() {
            self.taken.clear();
            return Vec::new();
        }
        let portions = std::mem::take(&mut self.taken);
        let here = changes.iter().filter(|(limit, _)| self.has_limit(limit));
        let mut changes: Amounts = here.cloned().collect();
        if portions.is_empty() {
            changes.retain(|(_, change)| *change > 0);
            let books = !changes.is_empty();
            return Vec::from_iter(books.then(|| self.adjust(changes, "")));
        }
        let mut answers = Vec::new();
        for portion in portions.iter().rev() {
            let own = portion.share(&mut changes);
            if !own.is_empty() {
                answers.push(self.adjust(own, portion.incarnation()));
            }
        }
        answers
    }

    /// Gives everything back. The answers say whether it is booked.
    pub(crate) fn give_back(mut self) -> Vec<Booked> {
        self.take_back()
    }

    fn take_back(&mut self) -> Vec<Booked> {
        let portions = std::mem::take(&mut self.taken);
        let back = portions.into_iter().filter(|portion| !portion.amounts.is_empty());
        back.map(|portion| {
            let amounts = portion.amounts.iter();
            let changes = amounts.map(|(limit, amount)| (limit.clone(), -amount));
            self.adjust(changes.collect(), portion.incarnation())
        })
        .collect()
    }

    fn adjust(&self, changes: Amounts, incarnation: &str) -> Booked {
        self.bucket.book_locally(&self.config, &changes);
        self.bucket.adjust(changes, incarnation.into(), self.client)
    }
}

impl Portion {
    fn incarnation(&self) -> &str {
        self.image.incarnation()
    }

    fn absorb(&mut self, later: Self) {
        for (limit, amount) in &later.amounts {
            add(&mut self.amounts, limit, *amount);
        }
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
