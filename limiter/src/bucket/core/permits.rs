//! The permits that this process holds of the bucket: renewed in time, or lost.

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Batch, BucketConfig, BucketWrite, Epoch, Evaluation, Held, Image};
use zae_limiter_schema::{LimitName, Timestamp};

use super::super::amounts::{Amounts, amount_of};
use super::super::origin::{Holding, Holdings};
use super::super::permits::PermitLot;
use super::Core;
use super::request::Request;

/// A renewal that could not be written yet is tried again after this time.
const RETRY_RENEWAL: Duration = Duration::from_millis(500);

/// The lots of a bucket. There is one for each epoch, of which there are few.
#[derive(Debug, Default)]
pub(super) struct Permits {
    lots: Vec<Arc<PermitLot>>,
    /// A renewal was planned and is not written yet.
    renewing: bool,
}

/// The renewal of a lot that a write carries.
#[derive(Debug, Clone)]
pub(super) struct Renewal {
    lot: Arc<PermitLot>,
    to: Epoch,
}

impl Renewal {
    /// It is on the item.
    pub(super) fn written(&self) {
        self.lot.renewed(self.to);
    }

    /// It cannot be told whether it is on the item.
    pub(super) fn untraceable(&self) {
        self.lot.lose();
    }
}

impl Permits {
    /// True if calls hold permits.
    pub(super) fn is_held(&self) -> bool {
        !self.lots.is_empty()
    }

    /// True if a renewal is planned and not written yet.
    pub(super) const fn is_renewing(&self) -> bool {
        self.renewing
    }

    /// True if a lot is to be renewed by now.
    fn is_due(&self, now: Timestamp) -> bool {
        self.lots.iter().any(|lot| lot.renew_at() <= now)
    }

    /// How long until a lot is to be renewed.
    fn until_due(&self, now: Timestamp) -> Option<Duration> {
        let next = self.lots.iter().map(|lot| lot.renew_at()).min()?;
        let millis = u64::try_from(next.since(now)).unwrap_or(0);
        Some(Duration::from_millis(millis).max(RETRY_RENEWAL))
    }

    /// Forgets lots that nobody holds, and those that have expired.
    fn expire(&mut self, now: Timestamp) {
        self.lots.retain(|lot| {
            let lost = lot.is_lost(now);
            if lost {
                lot.lose();
            }
            !lost && lot.permits() > 0
        });
        self.renewing &= self.is_held();
    }

    fn lose_where(&mut self, gone: impl Fn(&PermitLot) -> bool) {
        for lot in self.lots.extract_if(.., |lot| gone(lot)) {
            lot.lose();
        }
        self.renewing &= self.is_held();
    }
}

impl Core {
    /// What a call holds of the limits that it takes, by the write that took them.
    pub(super) fn holdings(
        &mut self,
        config: &BucketConfig,
        amounts: &Amounts,
        held: &[(LimitName, Held)],
        incarnation: &Arc<str>,
    ) -> Holdings {
        let mut holdings = Holdings::new();
        for (limit, held) in held {
            let amount = amount_of(amounts, limit);
            let limit_config = config.limits().get(limit);
            let expiry = limit_config.and_then(|limit| limit.kind().expires_after());
            let holding = match (held, expiry) {
                _ if amount == 0 => continue,
                (Held::Permits(epoch), Some(expiry)) => {
                    let expiry = i64::try_from(expiry.as_secs()).unwrap_or(i64::MAX);
                    Holding::Permits(self.permits.hold(limit, *epoch, incarnation, amount, expiry))
                }
                _ => Holding::Fixed(*held),
            };
            holdings.push((limit.clone(), holding));
        }
        holdings
    }

    /// True if permits are to be renewed now. Not while the limiter shuts down: they come back when they expire.
    pub(super) fn renewal_is_due(&mut self, now: Timestamp) -> bool {
        self.permits.expire(now);
        !self.closing && self.permits.is_due(now)
    }

    /// How long until permits are to be renewed.
    pub(super) fn until_renewal(&self, now: Timestamp) -> Option<Duration> {
        let renews = !self.closing;
        self.permits.until_due(now).filter(|_| renews)
    }

    /// True if a renewal could not be written yet.
    pub(crate) fn is_renewing(&self) -> bool {
        self.permits.is_renewing()
    }

    /// Permits that have expired are lost, whether the table responds or not.
    pub(crate) fn expire_permits(&mut self, now: Timestamp) {
        self.permits.expire(now);
    }

    /// Adds the renewals that are due to a write. Those that it releases anyway are not renewed.
    pub(super) fn add_renewals(
        &mut self,
        batch: &mut Batch,
        evaluation: &Evaluation<'_>,
        image: &Image,
        carried: &[Request],
        now: Timestamp,
    ) -> Vec<Arc<PermitLot>> {
        if !self.renewal_is_due(now) {
            return Vec::new();
        }
        let mut renewed = Vec::new();
        for lot in self.permits.lots.iter().filter(|lot| lot.renew_at() <= now) {
            let released: i128 = carried.iter().map(|request| request.releases_of(lot)).sum();
            let kept = lot.permits() - released;
            let held = lot
                .epoch(now)
                .filter(|_| **lot.incarnation() == *image.incarnation());
            match held {
                _ if kept <= 0 => {}
                Some(epoch) if evaluation.renew(batch, lot.limit(), Held::Permits(epoch), kept) => {
                    renewed.push(lot.clone());
                }
                _ => lot.lose(),
            }
        }
        self.permits.expire(now);
        self.permits.renewing = !renewed.is_empty();
        renewed
    }

    /// The renewals that a write carries.
    pub(super) fn renewals(write: &BucketWrite, lots: Vec<Arc<PermitLot>>) -> Vec<Renewal> {
        let renewal = |lot: Arc<PermitLot>| match write.held(lot.limit()) {
            Some(Held::Permits(to)) => Some(Renewal { lot, to }),
            _ => None,
        };
        lots.into_iter().filter_map(renewal).collect()
    }

    /// The renewals of a write are on the item.
    pub(super) fn renewed(&mut self, renewals: &[Renewal]) {
        renewals.iter().for_each(Renewal::written);
        self.permits.renewing = false;
    }

    /// The bucket is this incarnation now: permits of an earlier one are gone.
    pub(super) fn lose_permits_of_others(&mut self, incarnation: &str) {
        self.permits.lose_where(|lot| **lot.incarnation() != *incarnation);
    }

    /// The bucket is gone, and all permits with it.
    pub(super) fn lose_permits(&mut self) {
        self.permits.lose_where(|_| true);
    }
}

impl Permits {
    fn hold(
        &mut self,
        limit: &LimitName,
        epoch: Epoch,
        incarnation: &Arc<str>,
        permits: i128,
        expires_after_seconds: i64,
    ) -> Arc<PermitLot> {
        let joined = self
            .lots
            .iter()
            .find(|lot| lot.limit() == limit && lot.incarnation() == incarnation && lot.join(epoch, permits));
        if let Some(lot) = joined {
            return lot.clone();
        }
        let lot = PermitLot::new(
            limit.clone(),
            incarnation.clone(),
            expires_after_seconds,
            epoch,
            permits,
        );
        self.lots.push(lot.clone());
        lot
    }
}
