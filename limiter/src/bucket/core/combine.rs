//! Combining the queue into the next write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Batch, BucketConfig, Evaluation, Image, LimitState, Sharing};

use super::super::permits::PermitLot;
use super::contention::SHARED_FOR;
use super::refusal::{OwnShare, may_refuse, refusal};
use super::request::{Outcome, Request, RequestKind};
use super::{Completion, Core, LastSeen, Now, RefillGuess, Seen, SentWrite, Step};
use crate::Error;
use crate::admin::MAX_LIMITS_OF_WRITE;

/// A configuration that was read longer ago is read again before it is written to a bucket.
const RELOAD_AFTER: Duration = Duration::from_secs(1);

/// Clocks agree within this time: so much older may a configuration be than it seems.
const CLOCK_MARGIN: Duration = Duration::from_secs(10);

/// At most this many calls go into one write, so that no response waits for a huge one.
const MAX_COMBINED: usize = 1_000;

/// Calls combined into one write, and what became of the others.
struct Combined {
    batch: Batch,
    /// What of it takes place for certain: all but the acquires.
    certain: Batch,
    taken: Vec<Request>,
    completions: Vec<Completion>,
    /// A call did not fit, and the image is too old to refuse it.
    needs_read: bool,
    /// A call did not fit.
    is_short: bool,
}

impl Core {
    /// There is no bucket: acquires create it, and there is nothing to write changes to.
    pub(super) fn plan_on_absent(&mut self, seen: Seen, now: Now) -> (Step, Vec<Completion>) {
        if !seen.consistent && self.queue.iter().any(|request| !request.is_acquire()) {
            return (Step::Read, Vec::new());
        }
        let mut completions = self.nothing_there();
        self.fresh_image_seen();
        let changes = self.take_out(|request| !request.is_acquire());
        completions.extend(changes.into_iter().map(Completion::Gone));
        let Some(config) = self.front_config() else {
            return (Step::Again, completions);
        };
        self.guess.under_way = false;
        let evaluation = Evaluation::create(&config, now.calendar);
        let combined = self.combine(&evaluation, None, &config, "", |_| true, now);
        completions.extend(combined.completions);
        let step = self
            .send(&evaluation, &combined.batch, combined.taken, Vec::new(), now)
            .unwrap_or(Step::Again);
        (step, completions)
    }

    pub(super) fn plan_on_live(
        &mut self,
        image: &Arc<Image>,
        seen: Seen,
        now: Now,
    ) -> (Step, Vec<Completion>) {
        let call_limits = self.queue.iter().find_map(|request| match &request.kind {
            RequestKind::Acquire { call_limits, .. } => Some(*call_limits),
            RequestKind::Adjust { .. } => None,
        });
        let Some(config) = self.front_config().or_else(|| self.config.clone()) else {
            return (Step::Reload, Vec::new());
        };
        if call_limits.is_some() && self.asks_for_reload(image, now) {
            return (Step::Reload, Vec::new());
        }
        let agrees = config.matches(image);
        // Changes alone take the bucket as it is; acquires and buckets that only the peer has written do not.
        let rewrites = !agrees && (call_limits.is_some() || image.etag.is_none());
        if rewrites && call_limits != Some(true) && !self.may_rewrite(image, &config, now) {
            return (Step::Reload, Vec::new());
        }
        let sharing = self.sharing(image, seen, now);
        let evaluation = match (rewrites, agrees) {
            (true, _) => Evaluation::parameters(image, &config, now.calendar),
            (false, true) => Evaluation::live(image, &config, now.calendar).with_sharing(sharing),
            // A limit that this config does not know may be one that was just added.
            (false, false) => Evaluation::as_it_is(image, &config, now.calendar),
        };
        if rewrites && call_limits.is_some() && evaluation.limits().count() > MAX_LIMITS_OF_WRITE {
            return self.plan_without_room(&evaluation, &config, seen, now);
        }
        let set_back = self.refill_set_back(image, now);
        let evaluation = match set_back {
            Some(time) => evaluation.with_refill_set_back(time),
            None => evaluation,
        };
        let ttl = self.refusal_cache_ttl;
        let refuses = |request: &Request| may_refuse(&evaluation, request, seen, now, ttl);
        let share = self.own_share(image, &config, seen, now).filter(|_| agrees);
        let mut combined = self.combine(
            &evaluation,
            share.as_ref(),
            &config,
            image.incarnation(),
            refuses,
            now,
        );
        if combined.is_short {
            self.contention.short_at = Some(now.elapsed);
        }
        let renewed = self.add_renewals(
            &mut combined.batch,
            &evaluation,
            image,
            &combined.taken,
            now.calendar,
        );
        let nothing = combined.taken.is_empty() && renewed.is_empty();
        if nothing && combined.needs_read {
            return (Step::Read, combined.completions);
        }
        if nothing && !rewrites && set_back.is_none() && self.searched().next().is_none() {
            self.guess.just_read = false;
            return (Step::Again, combined.completions);
        }
        let guesses = sharing == Sharing::SharedAndStale && needs_refill(&evaluation, &combined.batch);
        if guesses && self.reads_before_refill(now) {
            for request in combined.taken.into_iter().rev() {
                self.queue.push_front(request);
            }
            // No write has been sent that anybody could have waited for.
            for request in &mut self.queue {
                request.passed_over = false;
            }
            self.guess.optional_read = true;
            return (Step::Read, combined.completions);
        }
        self.guess.under_way = guesses;
        // With nothing to carry it still applies new parameters, sets the last refill back, or fences off writes without a
        // response.
        match self.send(&evaluation, &combined.batch, combined.taken, renewed, now) {
            Some(step) => (step, combined.completions),
            None => (Step::Read, combined.completions),
        }
    }

    /// The limits that the bucket is to have do not fit beside those that it has: those that left the configuration and are
    /// full make room. If there is none, acquires fail.
    fn plan_without_room(
        &mut self,
        evaluation: &Evaluation<'_>,
        config: &Arc<BucketConfig>,
        seen: Seen,
        now: Now,
    ) -> (Step, Vec<Completion>) {
        let image = self.image().cloned();
        let slot = self.next_slot(image.as_deref(), now);
        if let Some(write) = evaluation.removal(self.key.clone(), slot) {
            let write = Arc::new(write);
            self.guess = RefillGuess::default();
            self.current = Some(SentWrite {
                write: write.clone(),
                requests: Vec::new(),
                renewals: Vec::new(),
                lost: false,
            });
            return (Step::Send(write), Vec::new());
        }
        let ttl = self.refusal_cache_ttl;
        let has_no_room = |request: &Request| matches!(&request.kind, RequestKind::Acquire { config: own, .. } if own == config);
        let mut without_room = self.queue.iter().filter(|request| has_no_room(request));
        if !without_room.all(|request| may_refuse(evaluation, request, seen, now, ttl)) {
            return (Step::Read, Vec::new());
        }
        let error = Error::invalid(
            "limits",
            evaluation.limits().count().to_string(),
            format!(
                "a bucket has room for {MAX_LIMITS_OF_WRITE} limits, with those of earlier calls until they are full again; \
                 use the same names in each call"
            ),
        );
        let failed = self.take_out(has_no_room).into_iter();
        let failed = failed.map(|request| Completion::Decided(request, Outcome::Failed(error.clone())));
        (Step::Again, failed.collect())
    }

    /// Whether the bucket is read instead of guessing its refill time from an old image. A refill is exact for one refill
    /// time only: where every call of every process needs one, the first write of each call would be refused. Not twice in
    /// a row: what was just read is as good as it gets.
    fn reads_before_refill(&self, now: Now) -> bool {
        let wrong = self.guess.wrong_at;
        let guessed_wrong = wrong.is_some_and(|at| now.elapsed.saturating_sub(at) <= SHARED_FOR);
        guessed_wrong && !self.guess.just_read
    }

    pub(super) fn may_rewrite(&self, image: &Image, config: &BucketConfig, now: Now) -> bool {
        // Parameters come from a recent consistent read that has seen this very etag, never from a cache.
        self.reloaded.as_ref().is_some_and(|read| {
            read.etag == image.etag
                && read.config.as_ref() == config
                && now.elapsed.saturating_sub(read.at) <= RELOAD_AFTER
        })
    }

    /// True if the etag was bumped after the configuration of the calls may have been read, and it was not read since.
    fn asks_for_reload(&self, image: &Image, now: Now) -> bool {
        let Some((etag, bumped_at)) = image
            .etag
            .as_ref()
            .and_then(|etag| Some((etag, etag.bumped_at()?)))
        else {
            return false;
        };
        let read = self.reloaded.as_ref();
        let was_read = read.is_some_and(|read| read.etag.as_ref() == Some(etag));
        let age = u64::try_from(now.calendar.since(bumped_at)).unwrap_or(0);
        !was_read && Duration::from_millis(age) <= self.config_ttl.saturating_add(CLOCK_MARGIN)
    }

    /// The config of the first acquire in the queue.
    pub(super) fn front_config(&self) -> Option<Arc<BucketConfig>> {
        self.queue.iter().find_map(|request| match &request.kind {
            RequestKind::Acquire { config, .. } => Some(config.clone()),
            RequestKind::Adjust { .. } => None,
        })
    }

    /// Takes calls from the queue in order of arrival, after what is given back: nothing is refused that the same write
    /// makes room for. A call that does not fit is refused and does not block those behind it. One that does not fit
    /// beside earlier calls, which may fail yet, waits for their outcome once: under overload there are always earlier
    /// calls. One with another config waits for the next write.
    fn combine(
        &mut self,
        evaluation: &Evaluation<'_>,
        share: Option<&OwnShare<'_>>,
        config: &Arc<BucketConfig>,
        incarnation: &str,
        may_refuse: impl Fn(&Request) -> bool,
        now: Now,
    ) -> Combined {
        let mut combined = Combined {
            batch: Batch::default(),
            certain: Batch::default(),
            taken: Vec::new(),
            completions: Vec::new(),
            needs_read: false,
            is_short: false,
        };
        self.queue
            .make_contiguous()
            .sort_by_key(|request| !request.only_returns());
        let mut left = VecDeque::new();
        while let Some(mut request) = self.queue.pop_front() {
            if combined.taken.len() >= MAX_COMBINED {
                left.push_back(request);
                continue;
            }
            if let RequestKind::Acquire {
                config: own, amounts, ..
            } = &request.kind
            {
                if own != config {
                    left.push_back(request);
                    continue;
                }
                if let Some((limit, _)) = amounts
                    .iter()
                    .find(|(limit, _)| evaluation.limit_state(limit).is_none())
                {
                    let error = crate::error::unknown_limit(limit, config, &self.key);
                    combined
                        .completions
                        .push(Completion::Decided(request, Outcome::Failed(error)));
                    continue;
                }
            }
            let with = |batch: &Batch| {
                let mut with = batch.clone();
                request.add_to(&mut with, evaluation, incarnation, now.calendar);
                with
            };
            let all = with(&combined.batch);
            let exceeds_share = request.is_acquire()
                && may_refuse(&request)
                && !request.needs_fresh_image()
                && share.is_some_and(|share| !share.covers(&all, &request));
            if let Some(share) = share.filter(|_| exceeds_share && evaluation.fits(&all)) {
                let statuses = share.refusal(&combined.batch, &request, &self.key);
                let refused = Outcome::Refused(statuses);
                combined.completions.push(Completion::Decided(request, refused));
                continue;
            }
            if evaluation.fits(&all) {
                combined.batch = all;
                if !request.is_acquire() {
                    combined.certain = with(&combined.certain);
                }
                combined.taken.push(request);
                continue;
            }
            combined.is_short |= request.is_acquire();
            let fits_alone = evaluation.fits(&with(&combined.certain));
            if !request.is_acquire() || (fits_alone && !request.passed_over) {
                // Booking a change now would take what an earlier call has just been granted.
                request.passed_over = true;
                left.push_back(request);
            } else if may_refuse(&request) && !request.needs_fresh_image() {
                let taken = if fits_alone {
                    &combined.batch
                } else {
                    &combined.certain
                };
                let statuses = refusal(evaluation, config, taken, &request, &self.key);
                combined
                    .completions
                    .push(Completion::Decided(request, Outcome::Refused(statuses)));
            } else {
                combined.needs_read = true;
                left.push_back(request);
            }
        }
        self.queue = left;
        combined
    }

    /// Makes the write and notes what it carries.
    fn send(
        &mut self,
        evaluation: &Evaluation<'_>,
        batch: &Batch,
        requests: Vec<Request>,
        renewed: Vec<Arc<PermitLot>>,
        now: Now,
    ) -> Option<Step> {
        if requests.is_empty() && matches!(self.known, LastSeen::Absent(_)) {
            return None;
        }
        self.guess.just_read = false;
        let image = self.image().cloned();
        let slot = self.next_slot(image.as_deref(), now);
        let write = evaluation.write(self.key.clone(), batch, slot, Self::draw_incarnation(now))?;
        let write = Arc::new(write);
        self.current = Some(SentWrite {
            write: write.clone(),
            renewals: Self::renewals(&write, renewed),
            requests,
            lost: false,
        });
        Some(Step::Send(write))
    }
}

/// True if the tokens on the item do not cover the batch without what has come back since.
pub(super) fn needs_refill(evaluation: &Evaluation<'_>, batch: &Batch) -> bool {
    batch.demands.iter().any(|(limit, demand)| {
        let Some(rate) = evaluation.limit_state(limit).and_then(LimitState::rate) else {
            return false;
        };
        let tokens = rate.token_bucket.tokens;
        demand.debit > 0 && tokens + demand.credit - demand.adjust < demand.debit
    })
}
