//! Tokens taken from one bucket, which go back unless they are kept.

use std::sync::Arc;

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::Image;

use super::lane::Lane;
use super::ticket::Changes;
use crate::{Error, Result};

/// Tokens taken from one bucket. Dropped, they go back in the background: whatever becomes of the one who holds them
/// (an error, a panic, a cancelled future), nothing leaks.
#[derive(Debug)]
pub(crate) struct Grant {
    lane: Arc<Lane>,
    taken: Changes,
    incarnation: Arc<str>,
    image: Arc<Image>,
}

impl Grant {
    pub(super) fn new(lane: Arc<Lane>, taken: Changes, image: Arc<Image>) -> Self {
        let incarnation = image.incarnation().into();
        Self {
            lane,
            taken,
            incarnation,
            image,
        }
    }

    /// The bucket after the last write of this grant.
    pub(super) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Takes over what another grant on the same bucket has taken.
    pub(super) fn absorb(&mut self, mut other: Self) {
        for (limit, amount) in std::mem::take(&mut other.taken) {
            match self.taken.iter_mut().find(|(name, _)| *name == limit) {
                Some((_, total)) => *total += amount,
                None => self.taken.push((limit, amount)),
            }
        }
        self.image = other.image.clone();
        self.incarnation = other.incarnation.clone();
    }

    /// Keeps the tokens and books what was used more or less. The answer says whether it is booked; if it is not
    /// yet, it goes on in the background.
    pub(super) fn keep(mut self, changes: Changes) -> Option<oneshot::Receiver<Result<(), Error>>> {
        self.taken.clear();
        let changes: Changes = changes.into_iter().filter(|(_, change)| *change != 0).collect();
        (!changes.is_empty()).then(|| self.lane.settle(changes, self.incarnation.clone()))
    }

    /// Gives everything back. The answer says whether it is booked.
    pub(super) fn give_back(mut self) -> Option<oneshot::Receiver<Result<(), Error>>> {
        self.take_back()
            .map(|changes| self.lane.settle(changes, self.incarnation.clone()))
    }

    fn take_back(&mut self) -> Option<Changes> {
        let taken = std::mem::take(&mut self.taken);
        (!taken.is_empty()).then(|| {
            taken
                .into_iter()
                .map(|(limit, amount)| (limit, -amount))
                .collect()
        })
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if let Some(changes) = self.take_back() {
            drop(self.lane.settle(changes, self.incarnation.clone()));
        }
    }
}
