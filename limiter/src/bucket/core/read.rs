//! What a read of the bucket says about the calls that wait and the unconfirmed writes.

use std::sync::Arc;

use zae_limiter_schema::bucket::BucketConfig;

use super::request::{Outcome, Reply, Request};
use super::slots::Trace;
use super::{Completion, Core, LastSeen, Now, Reloaded, RequestKind};
use crate::Error;
use crate::error::Conflict;

impl Core {
    /// The bucket as a read of the configuration brought it along, which need not be consistent. Unconfirmed writes are
    /// judged by a read of their own: this one may be from before them.
    pub(crate) fn read_along(&mut self, found: LastSeen, now: Now) {
        if matches!(self.known, LastSeen::Nothing) && self.unconfirmed.is_empty() {
            self.adopt(&found);
            self.known = found;
            self.observe_others(None, now);
        }
    }

    /// The configuration as just read: it replaces what queued calls came with, except limits of a call. Calls that came in
    /// another mode must be decided again.
    pub(crate) fn reloaded(
        &mut self,
        config: &Arc<BucketConfig>,
        found: &LastSeen,
        now: Now,
    ) -> Vec<Completion> {
        self.config = Some(config.clone());
        let in_another_mode = |request: &Request| match &request.kind {
            RequestKind::Acquire {
                config: held,
                reply: Reply::Caller(_),
                ..
            } => held.mode() != config.mode(),
            _ => false,
        };
        let outdated = self.take_out(in_another_mode);
        for request in &mut self.queue {
            if let RequestKind::Acquire {
                config: held,
                call_limits: false,
                ..
            } = &mut request.kind
            {
                *held = config.clone();
            }
        }
        let mut completions = self.reread(found, now);
        completions.extend(outdated.into_iter().map(|request| {
            let error = Error::Conflict(Conflict::ModeChanged {
                entity: self.key.entity.clone(),
                resource: self.key.resource.clone(),
            });
            Completion::Decided(request, Outcome::Failed(error))
        }));
        if let LastSeen::Live(image, _) = &self.known {
            self.reloaded = Some(Box::new(Reloaded {
                etag: image.etag.clone(),
                config: config.clone(),
                at: now.elapsed,
            }));
        }
        completions
    }

    /// The bucket as just read, consistently.
    pub(crate) fn reread(&mut self, found: &LastSeen, now: Now) -> Vec<Completion> {
        self.fresh_image_seen();
        self.guess.just_read = true;
        let first = self.knows_nothing() && self.unconfirmed.is_empty();
        self.pace.responded(now.elapsed);
        let before = self.image().cloned();
        self.known = found.clone();
        self.observe_others(before.as_deref(), now);
        match found {
            LastSeen::Live(_, _) if first => {
                self.adopt(found);
                Vec::new()
            }
            LastSeen::Live(image, _) => match self.trace(image, None, now) {
                Trace::NoneYet => Vec::new(),
                Trace::Happened(number) => self.happened(number),
                Trace::Untraceable => self.drop_untraceable(),
                Trace::Copied => self.drop_shared_with_copy(),
            },
            LastSeen::Absent(_) | LastSeen::Nothing => self.nothing_there(),
        }
    }

    /// The bucket could not be read. True if the next write can do without: it guesses from the image that is known.
    pub(crate) fn goes_on_unread(&mut self) -> bool {
        let goes_on = std::mem::take(&mut self.guess.optional_read);
        self.guess.just_read |= goes_on;
        goes_on
    }

    /// Every call that waits may be refused by what was just seen.
    pub(super) fn fresh_image_seen(&mut self) {
        self.queue.iter_mut().for_each(Request::fresh_image_seen);
    }
}
