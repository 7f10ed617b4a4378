//! Tokens taken from one bucket, which go back unless they are kept.

use std::sync::Arc;

use tokio::sync::oneshot;
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::Image;

use super::lane::Lane;
use super::ticket::Changes;
use crate::{Error, Result};

/// Tokens taken from one bucket. Dropped, they go back in the background: whatever becomes of the one who holds them
/// (an error, a panic, a cancelled future), nothing leaks.
#[derive(Debug)]
pub(crate) struct Grant {
    lane: Arc<Lane>,
    /// The latest last. Several only if the bucket was deleted and made again between two of them.
    taken: Vec<Portion>,
    image: Arc<Image>,
}

/// What was taken from one incarnation of the bucket: no other one may get it back.
#[derive(Debug)]
struct Portion {
    incarnation: Arc<str>,
    amounts: Changes,
}

type Booked = oneshot::Receiver<Result<(), Error>>;

impl Grant {
    pub(super) fn new(lane: Arc<Lane>, amounts: Changes, image: Arc<Image>) -> Self {
        let incarnation = image.incarnation().into();
        Self {
            lane,
            taken: vec![Portion { incarnation, amounts }],
            image,
        }
    }

    /// The bucket after the last write of this grant.
    pub(super) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// What was taken of a limit, in millitokens.
    pub(super) fn taken(&self, limit: &LimitName) -> i128 {
        self.taken.iter().map(|portion| portion.taken(limit)).sum()
    }

    /// Takes over what another grant on the same bucket has taken.
    pub(super) fn absorb(&mut self, mut other: Self) {
        for portion in std::mem::take(&mut other.taken) {
            match self.taken.last_mut() {
                Some(latest) if latest.incarnation == portion.incarnation => latest.add(portion.amounts),
                _ => self.taken.push(portion),
            }
        }
        self.image = other.image.clone();
    }

    /// Keeps the tokens and books what was used more or less. The answers say whether it is booked; what is not yet
    /// goes on in the background.
    pub(super) fn keep(mut self, changes: &Changes) -> Vec<Booked> {
        let portions = std::mem::take(&mut self.taken);
        let mut answers = Vec::new();
        let mut left = changes.clone();
        for portion in portions.iter().rev() {
            let own = portion.share(&mut left);
            if !own.is_empty() {
                answers.push(self.lane.settle(own, portion.incarnation.clone()));
            }
        }
        answers
    }

    /// Gives everything back. The answers say whether it is booked.
    pub(super) fn give_back(mut self) -> Vec<Booked> {
        self.take_back()
    }

    fn take_back(&mut self) -> Vec<Booked> {
        let portions = std::mem::take(&mut self.taken);
        let back = portions.into_iter().filter(|portion| !portion.amounts.is_empty());
        back.map(|portion| {
            let changes = portion
                .amounts
                .into_iter()
                .map(|(limit, amount)| (limit, -amount));
            self.lane.settle(changes.collect(), portion.incarnation)
        })
        .collect()
    }
}

impl Portion {
    fn add(&mut self, amounts: Changes) {
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
    fn share(&self, left: &mut Changes) -> Changes {
        let mut own = Changes::new();
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
