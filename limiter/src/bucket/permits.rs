//! Permits that this process holds of limits on calls in flight.
//!
//! All permits of a bucket that expire together are a [lot](PermitLot). The core renews a lot at half of its expiry, so that
//! renewing costs the same however many calls are in flight. A lot whose renewal failed, or did not come in time, is lost: its
//! leases report that, and their releases give nothing back, since the permits have expired and may belong to other calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use zae_limiter_schema::bucket::Epoch;
use zae_limiter_schema::{LimitName, Timestamp};

/// Permits of one limit that expire together.
#[derive(Debug)]
pub(crate) struct PermitLot {
    limit: LimitName,
    /// The incarnation of the bucket that they were taken from.
    incarnation: Arc<str>,
    expires_after_seconds: i64,
    state: Mutex<State>,
    /// Notified once, when the lot is lost.
    lost: Notify,
}

#[derive(Debug, Clone, Copy)]
struct State {
    epoch: Epoch,
    /// In thousandths.
    permits: i128,
    lost: bool,
}

impl PermitLot {
    pub(crate) fn new(
        limit: LimitName,
        incarnation: Arc<str>,
        expires_after_seconds: i64,
        epoch: Epoch,
        permits: i128,
    ) -> Arc<Self> {
        Arc::new(Self {
            limit,
            incarnation,
            expires_after_seconds,
            state: Mutex::new(State {
                epoch,
                permits,
                lost: false,
            }),
            lost: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limit(&self) -> &LimitName {
        &self.limit
    }

    pub(crate) fn incarnation(&self) -> &Arc<str> {
        &self.incarnation
    }

    /// The epoch that they expire with; nothing once they have.
    pub(crate) fn epoch(&self, now: Timestamp) -> Option<Epoch> {
        let state = self.state();
        (!state.lost && now < state.epoch.end()).then_some(state.epoch)
    }

    /// True if they have expired.
    pub(crate) fn is_lost(&self, now: Timestamp) -> bool {
        self.epoch(now).is_none()
    }

    /// How many there are.
    pub(crate) fn permits(&self) -> i128 {
        self.state().permits
    }

    /// When they are renewed: at half of their expiry.
    pub(crate) fn renew_at(&self) -> Timestamp {
        let half = self.expires_after_seconds.saturating_mul(500);
        self.state().epoch.end().plus_millis(-half)
    }

    /// Adds permits of another call, if they expire together.
    pub(crate) fn join(&self, epoch: Epoch, permits: i128) -> bool {
        let mut state = self.state();
        let together = !state.lost && state.epoch == epoch;
        state.permits += if together { permits } else { 0 };
        together
    }

    /// Permits that were released, or never will be.
    pub(crate) fn leave(&self, permits: i128) {
        self.state().permits -= permits;
    }

    /// All of them expire later now.
    pub(crate) fn renewed(&self, epoch: Epoch) {
        self.state().epoch = epoch;
    }

    /// They have expired, or may have.
    pub(crate) fn lose(&self) {
        self.state().lost = true;
        self.lost.notify_waiters();
    }

    /// Waits until they are lost.
    pub(crate) async fn wait_until_lost(&self) {
        let mut lost = std::pin::pin!(self.lost.notified());
        lost.as_mut().enable();
        if !self.state().lost {
            lost.await;
        }
    }
}
