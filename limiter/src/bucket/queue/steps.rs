//! What the worker of a queue asks it for.

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Attributes, BucketConfig};

use super::super::chunk::Chunks;
use super::super::deltas::Deltas;
use super::super::request::RequestKind;
use super::super::state::{Completion, Moment, QueueState, Step};
use super::super::write_pace::WritePace;
use super::{BucketQueue, Locked};
use crate::Result;

impl BucketQueue {
    /// Somebody has asked for the bucket since this was last waited for.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// How long the next write waits for more calls to carry. Calls that need no write for their refusal do not wait.
    pub(crate) fn pause_before_write(&self, moment: Moment) -> (Duration, Vec<Completion>) {
        let mut locked = self.lock();
        let pause = locked.pace.wait(moment.elapsed);
        if pause.is_zero() {
            return (pause, Vec::new());
        }
        let refused = locked.state.refuse_hopeless(moment);
        (pause, refused)
    }

    pub(crate) fn with_pace(&self, act: impl FnOnce(&mut WritePace, Duration)) {
        let now = self.shared.clock.elapsed();
        act(&mut self.lock().pace, now);
    }

    /// The next step. After [`Step::Idle`] nobody drives the queue any more.
    pub(crate) fn next(&self, moment: Moment) -> (Step, Vec<Completion>) {
        let mut locked = self.lock();
        self.tend(&mut locked, moment);
        let (mut step, mut completions) = locked.state.next(moment);
        if matches!(step, Step::Idle) && locked.expires_too_early(moment) {
            // A write that carries nothing lets the bucket live until it is full.
            let nothing = RequestKind::Adjust {
                changes: Deltas::new(),
                incarnation: "".into(),
                done: None,
            };
            locked.state.push_counting(nothing, 0, moment.elapsed);
            let (next, more) = locked.state.next(moment);
            step = next;
            completions.extend(more);
        }
        if matches!(step, Step::Idle) {
            match locked.chunks.as_ref().and_then(Chunks::idle_at) {
                Some(idle_at) => step = Step::Later(idle_at.saturating_sub(moment.elapsed)),
                None => locked.has_worker = false,
            }
        }
        (step, completions)
    }

    /// True if there is nothing to do: nobody works on the queue any more.
    pub(crate) fn stops(&self) -> bool {
        let mut locked = self.lock();
        let idle = locked.is_idle();
        if idle {
            locked.has_worker = false;
        }
        idle
    }

    /// The task that worked on it is gone, perhaps with a write under way.
    pub(crate) fn abandoned(self: &Arc<Self>) {
        let completions = {
            let mut locked = self.lock();
            locked.has_worker = false;
            locked.state.interrupted(self.shared.clock.elapsed())
        };
        self.finish(completions);
        self.abandoned.notify_waiters();
    }

    pub(crate) fn with_state<T>(&self, act: impl FnOnce(&mut QueueState) -> T) -> T {
        act(&mut self.lock().state)
    }

    pub(crate) fn reread(self: &Arc<Self>, found: Option<&Attributes>, moment: Moment) -> Result<()> {
        let known = self.known(found, true)?;
        self.finish(self.with_state(|state| state.reread(&known, moment)));
        Ok(())
    }

    pub(crate) fn reloaded(
        self: &Arc<Self>,
        config: &Arc<BucketConfig>,
        found: Option<&Attributes>,
        moment: Moment,
    ) -> Result<()> {
        let known = self.known(found, true)?;
        self.finish(self.with_state(|state| state.reloaded(config, &known, moment)));
        Ok(())
    }
}

impl Locked {
    /// True, once, if the bucket would expire before it has paid off what was booked last. A write computes the expiry from
    /// the image that it was made from; only the bucket afterwards shows what others have taken meanwhile.
    fn expires_too_early(&mut self, moment: Moment) -> bool {
        let booked = std::mem::take(&mut self.booked);
        booked
            && self
                .state
                .image()
                .is_some_and(|image| image.expires_before_full(moment.now))
    }
}
