//! Tokens taken from one bucket, which go back unless they are kept.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tokio::sync::oneshot;
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::Image;

use super::queue::BucketQueue;
use super::request::Deltas;
use crate::{Error, Result};

/// Tokens taken from one bucket. Dropped, they go back in the background: whatever becomes of the one who holds them
/// (an error, a panic, a cancelled future), nothing leaks.
#[derive(Debug)]
pub(crate) struct Grant {
    queue: Arc<BucketQueue>,
    /// The latest last. Several only if the bucket was deleted and made again between two of them.
    taken: SmallVec<[Portion; 1]>,
    image: Arc<Image>,
}

/// What was taken from one incarnation of the bucket: no other one may get it back.
#[derive(Debug)]
struct Portion {
    /// The bucket after the write that took it, or after the last one.
    bucket: Arc<Image>,
    amounts: Deltas,
}

type Booked = oneshot::Receiver<Result<(), Error>>;

impl Grant {
    pub(crate) fn new(queue: Arc<BucketQueue>, amounts: Deltas, image: Arc<Image>) -> Self {
        let bucket = image.clone();
        Self {
            queue,
            taken: smallvec![Portion { bucket, amounts }],
            image,
        }
    }

    /// The bucket after the last write of this grant.
    pub(crate) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// What was taken of a limit, in millitokens.
    pub(crate) fn taken(&self, limit: &LimitName) -> i128 {
        self.taken.iter().map(|portion| portion.taken(limit)).sum()
    }

    /// Takes over what another grant on the same bucket has taken.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        for portion in std::mem::take(&mut other.taken) {
            match self.taken.last_mut() {
                Some(latest) if latest.incarnation() == portion.incarnation() => latest.add(portion.amounts),
                _ => self.taken.push(portion),
            }
        }
        self.image = other.image.clone();
    }

    /// Keeps the tokens and books what was used more or less. The answers say whether it is booked; what is not yet
    /// goes on in the background.
    pub(crate) fn keep(mut self, changes: &Deltas) -> Vec<Booked> {
        let portions = std::mem::take(&mut self.taken);
        let mut answers = Vec::new();
        if changes.is_empty() {
            return answers;
        }
        let mut left = changes.clone();
        for portion in portions.iter().rev() {
            let own = portion.share(&mut left);
            if !own.is_empty() {
                answers.push(self.queue.adjust(own, portion.incarnation().into()));
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
            self.queue.adjust(changes.collect(), portion.incarnation().into())
        })
        .collect()
    }
}

impl Portion {
    fn incarnation(&self) -> &str {
        self.bucket.incarnation()
    }

    fn add(&mut self, amounts: Deltas) {
        for (limit, amount) in amounts {
            match self.amounts.iter_mut().find(|(name, _)| *name == limit) {
                Some((_, total)) => *total += amount,
                None => self.amounts.push((limit, amount)),
            }
        }
    }

    fn taken(&self, limit: &LimitName) -> i128 {
        let own = self.amounts.iter().find(|(name, _)| name == limit);
        own.map_or(0, |(_, amount)| *amount)
    }

    /// Takes its share out of the changes: all that was used more, and of what was used less no more than it gave.
    fn share(&self, left: &mut Deltas) -> Deltas {
        let mut own = Deltas::new();
        for (limit, change) in left {
            let part = (*change).max(-self.taken(limit));
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
        drop(self.take_back());
    }
}
