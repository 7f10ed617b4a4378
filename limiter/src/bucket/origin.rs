//! Where tokens were taken from, which decides how they come back.

use std::sync::Arc;

use smallvec::SmallVec;
use zae_limiter_schema::bucket::Held;
use zae_limiter_schema::{LimitName, Timestamp};

use super::permits::PermitLot;

/// What a call holds of its limits, where that decides how it comes back. Rates need nothing.
pub(crate) type Holdings = SmallVec<[(LimitName, Holding); 1]>;

/// What a call holds of one limit.
#[derive(Debug, Clone)]
pub(crate) enum Holding {
    /// In a period or an epoch that does not change.
    Fixed(Held),
    /// Permits that are renewed together with others.
    Permits(Arc<PermitLot>),
}

impl Holding {
    /// Where it is now; nothing if permits have expired.
    fn held(&self, now: Timestamp) -> Option<Held> {
        match self {
            Self::Fixed(held) => Some(*held),
            Self::Permits(lot) => lot.epoch(now).map(Held::Permits),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fixed(one), Self::Fixed(two)) => one == two,
            (Self::Permits(one), Self::Permits(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

/// The incarnation of a bucket, and what is held of it.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) incarnation: Arc<str>,
    pub(crate) holdings: Holdings,
}

impl Origin {
    /// Tokens of rates.
    pub(crate) fn of_bucket(incarnation: impl Into<Arc<str>>) -> Self {
        Self {
            incarnation: incarnation.into(),
            holdings: Holdings::new(),
        }
    }

    /// What is held of a limit now.
    pub(crate) fn held(&self, limit: &LimitName, now: Timestamp) -> Option<Held> {
        holding_of(&self.holdings, limit)?.held(now)
    }

    /// The permits among it.
    pub(crate) fn lots(&self) -> impl Iterator<Item = (&LimitName, &Arc<PermitLot>)> {
        lots(&self.holdings)
    }
}

/// What is held of a limit.
pub(crate) fn holding_of<'a>(holdings: &'a Holdings, limit: &LimitName) -> Option<&'a Holding> {
    let found = holdings.iter().find(|(name, _)| name == limit);
    found.map(|(_, holding)| holding)
}

/// The permits among holdings.
pub(crate) fn lots(holdings: &Holdings) -> impl Iterator<Item = (&LimitName, &Arc<PermitLot>)> {
    holdings.iter().filter_map(|(limit, holding)| match holding {
        Holding::Permits(lot) => Some((limit, lot)),
        Holding::Fixed(_) => None,
    })
}

/// True if what both hold comes back in the same way.
pub(crate) fn agree(one: &Holdings, other: &Holdings) -> bool {
    one.iter().all(|(limit, holding)| {
        let same = holding_of(other, limit);
        same.is_none_or(|same| same.is_same(holding))
    })
}
