//! Combining the queue into the next write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Batch, BucketConfig, BucketKey, Evaluation, Image, Sharing, Slot};

use super::super::limit_statuses::limit_statuses;
use super::super::request::{Outcome, Request, RequestKind};
use super::{Completion, LastSeen, Moment, QueueState, SentWrite, Sighting, Step};
use crate::status::LimitStatus;

/// A configuration that was read longer ago is read again before it is written to a bucket.
const READ_A_MOMENT_AGO: Duration = Duration::from_secs(1);

/// A bucket counts as shared for this long after somebody else wrote it.
const SHARED_FOR: Duration = Duration::from_secs(10);

/// On a shared bucket an image older than this says little about the present.
const STALE_AFTER: Duration = Duration::from_millis(20);

/// At most this many calls go into one write, so that no answer waits for a huge one.
const MAX_COMBINED: usize = 1_000;

/// Calls combined into one write, and what became of the others.
struct Combined {
    batch: Batch,
    /// What of it takes place for certain: all but the acquires.
    certain: Batch,
    taken: Vec<Request>,
    completions: Vec<Completion>,
    /// A call did not fit, and the image is too old to say no.
    doubtful: bool,
}

impl QueueState {
    /// There is no bucket: acquires create it, and there is nothing to book changes on.
    pub(super) fn next_on_absent(&mut self, sighting: Sighting, moment: Moment) -> (Step, Vec<Completion>) {
        if !sighting.proven && self.queue.iter().any(|request| !request.is_acquire()) {
            return (Step::Read, Vec::new());
        }
        self.nothing_there();
        self.looked();
        let mut completions = Vec::new();
        let changes = self.take_out(|request| !request.is_acquire());
        completions.extend(changes.into_iter().map(Completion::Gone));
        let Some(config) = self.front_config() else {
            return (Step::Again, completions);
        };
        self.guess.under_way = false;
        let evaluation = Evaluation::create(&config, moment.now);
        let combined = self.combine(&evaluation, &config, "", |_| true);
        completions.extend(combined.completions);
        let step = self
            .send(&evaluation, &combined.batch, combined.taken, moment)
            .unwrap_or(Step::Again);
        (step, completions)
    }

    pub(super) fn next_on_live(
        &mut self,
        image: &Arc<Image>,
        sighting: Sighting,
        moment: Moment,
    ) -> (Step, Vec<Completion>) {
        let given = self.queue.iter().find_map(|request| match &request.work {
            RequestKind::Acquire { given, .. } => Some(*given),
            RequestKind::Adjust { .. } => None,
        });
        let Some(config) = self.front_config().or_else(|| self.config.clone()) else {
            return (Step::Reload, Vec::new());
        };
        let agrees = config.matches(image);
        // Deltas alone take the bucket as it is; acquires and buckets that only the peer has written do not.
        let rewrites = !agrees && (given.is_some() || image.etag.is_none());
        if rewrites && given != Some(true) && !self.may_rewrite(image, &config, moment) {
            return (Step::Reload, Vec::new());
        }
        let sharing = self.sharing(image, sighting, moment);
        let evaluation = match (rewrites, agrees) {
            (true, _) => Evaluation::parameters(image, &config, moment.now),
            (false, true) => Evaluation::live(image, &config, moment.now).with_sharing(sharing),
            // A limit that this config does not know may be one that was just added.
            (false, false) => Evaluation::as_it_is(image, &config, moment.now),
        };
        let memory = self.memory;
        let refuses = |request: &Request| may_refuse(request, sighting, moment, memory);
        let combined = self.combine(&evaluation, &config, image.incarnation(), refuses);
        let nothing = combined.taken.is_empty();
        if nothing && combined.doubtful {
            return (Step::Read, combined.completions);
        }
        if nothing && !rewrites && self.unresolved.is_empty() {
            self.guess.just_read = false;
            return (Step::Again, combined.completions);
        }
        let guesses = sharing == Sharing::SharedAndStale && needs_refill(&evaluation, &combined.batch);
        if guesses && self.reads_before_refill(moment) {
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
        // With nothing to carry it still applies new parameters, or fences off writes without an answer.
        match self.send(&evaluation, &combined.batch, combined.taken, moment) {
            Some(step) => (step, combined.completions),
            None => (Step::Read, combined.completions),
        }
    }

    /// Refuses calls that the bucket as last seen has too little for, as the next write would. The others stay.
    pub(crate) fn refuse_hopeless(&mut self, moment: Moment) -> Vec<Completion> {
        let LastSeen::Live(image, sighting) = self.known.clone() else {
            return Vec::new();
        };
        let Some(config) = self.front_config().filter(|config| config.matches(&image)) else {
            return Vec::new();
        };
        let evaluation = Evaluation::live(&image, &config, moment.now);
        if self.queue.iter().any(Request::only_gives_back) {
            // The next write makes room.
            return Vec::new();
        }
        let (nothing, memory) = (Batch::default(), self.memory);
        let hopeless = |request: &Request| {
            let RequestKind::Acquire { config: own, .. } = &request.work else {
                return false;
            };
            let mut alone = Batch::default();
            request.add_to(&mut alone, image.incarnation());
            own == &config
                && !evaluation.fits(&alone)
                && !request.needs_a_look()
                && may_refuse(request, sighting, moment, memory)
        };
        let (hopeless, left): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queue).into_iter().partition(hopeless);
        self.queue = left;
        let refused = hopeless.into_iter().map(|request| {
            let statuses = refusal(&evaluation, &config, &nothing, &request, &self.key);
            Completion::Answer(request, Outcome::Refused(statuses))
        });
        refused.collect()
    }

    /// Whether others write this bucket too: they did shortly before it was last seen, or a write of ours was refused.
    pub(super) fn sharing(&self, image: &Image, sighting: Sighting, moment: Moment) -> Sharing {
        if breaks!(self.mutation, NoMargin) {
            return Sharing::Alone;
        }
        let age = moment.elapsed.saturating_sub(sighting.at);
        let millis = |time: Duration| i128::try_from(time.as_millis()).unwrap_or(i128::MAX);
        let recent = i128::from(moment.now.millis()) - millis(age) - millis(SHARED_FOR);
        let others = image
            .slots
            .values()
            .any(|number| !self.client.wrote(*number) && Slot::written_at(*number) >= recent);
        let refused = self
            .refused_at
            .is_some_and(|at| moment.elapsed.saturating_sub(at) <= SHARED_FOR);
        let alone = !others && !refused && !breaks!(self.mutation, MarginWithoutOthers);
        if alone {
            Sharing::Alone
        } else if age > STALE_AFTER && !breaks!(self.mutation, NoGuess) {
            Sharing::SharedAndStale
        } else {
            Sharing::Shared
        }
    }

    /// Whether the bucket is read instead of guessing its refill time from an old image. A refill is exact for one refill
    /// time only: where every call of every process needs one, the first write of each call would be refused. Not twice in
    /// a row: what was just read is as good as it gets.
    fn reads_before_refill(&self, moment: Moment) -> bool {
        if breaks!(self.mutation, RefillsFromOldImages) {
            return false;
        }
        let wrong = self.guess.wrong_at;
        let guessed_wrong = wrong.is_some_and(|at| moment.elapsed.saturating_sub(at) <= SHARED_FOR);
        // Without old images nothing would show that the level may have risen since.
        guessed_wrong && !self.guess.just_read && !breaks!(self.mutation, RefillAgainstStaleLevel)
    }

    pub(super) fn may_rewrite(&self, image: &Image, config: &BucketConfig, moment: Moment) -> bool {
        if breaks!(self.mutation, ParametersFromCache) {
            return true;
        }
        // Parameters come from a consistent read of a moment ago that has seen this very etag, never from a cache.
        self.reloaded.as_ref().is_some_and(|read| {
            (read.etag == image.etag || breaks!(self.mutation, RewriteIgnoresEtag))
                && read.config.as_ref() == config
                && moment.elapsed.saturating_sub(read.at) <= READ_A_MOMENT_AGO
        })
    }

    /// The config of the first acquire in the queue.
    fn front_config(&self) -> Option<Arc<BucketConfig>> {
        self.queue.iter().find_map(|request| match &request.work {
            RequestKind::Acquire { config, .. } => Some(config.clone()),
            RequestKind::Adjust { .. } => None,
        })
    }

    /// Takes calls from the queue in order of arrival, after what is given back: nothing is refused that the same write
    /// makes room for. A call that does not fit is refused and does not block those behind it. One that does not fit
    /// beside earlier calls, which may fail yet, waits for their answer once: under overload there are always earlier
    /// calls. One with another config waits for the next write.
    fn combine(
        &mut self,
        evaluation: &Evaluation<'_>,
        config: &Arc<BucketConfig>,
        incarnation: &str,
        may_refuse: impl Fn(&Request) -> bool,
    ) -> Combined {
        let mut combined = Combined {
            batch: Batch::default(),
            certain: Batch::default(),
            taken: Vec::new(),
            completions: Vec::new(),
            doubtful: false,
        };
        self.queue
            .make_contiguous()
            .sort_by_key(|request| !request.only_gives_back());
        let mut left = VecDeque::new();
        while let Some(mut request) = self.queue.pop_front() {
            if combined.taken.len() >= MAX_COMBINED {
                left.push_back(request);
                continue;
            }
            if let RequestKind::Acquire {
                config: own, amounts, ..
            } = &request.work
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
                        .push(Completion::Answer(request, Outcome::Failed(error)));
                    continue;
                }
            }
            let with = |batch: &Batch| {
                let mut with = batch.clone();
                request.add_to(&mut with, incarnation);
                with
            };
            let all = with(&combined.batch);
            if evaluation.fits(&all) {
                combined.batch = all;
                if !request.is_acquire() {
                    combined.certain = with(&combined.certain);
                }
                combined.taken.push(request);
                continue;
            }
            let fits_alone = evaluation.fits(&with(&combined.certain));
            if !request.is_acquire() || (fits_alone && !request.passed_over) {
                // Booking a change now would take away what an earlier call was just given.
                request.passed_over = true;
                left.push_back(request);
            } else if may_refuse(&request) && !request.needs_a_look() {
                let taken = if fits_alone {
                    &combined.batch
                } else {
                    &combined.certain
                };
                let statuses = refusal(evaluation, config, taken, &request, &self.key);
                combined
                    .completions
                    .push(Completion::Answer(request, Outcome::Refused(statuses)));
            } else {
                combined.doubtful = true;
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
        moment: Moment,
    ) -> Option<Step> {
        if requests.is_empty() && matches!(self.known, LastSeen::Absent(_)) {
            return None;
        }
        self.guess.just_read = false;
        let image = self.image().cloned();
        let slot = self.next_slot(image.as_deref(), moment);
        let write = evaluation.write(self.key.clone(), batch, slot, Self::draw_incarnation(moment))?;
        let write = Arc::new(write);
        self.current = Some(SentWrite {
            write: write.clone(),
            requests,
            lost: None,
        });
        Some(Step::Send(write))
    }
}

/// True if the tokens on the item do not cover the batch without what has come back since.
pub(super) fn needs_refill(evaluation: &Evaluation<'_>, batch: &Batch) -> bool {
    batch.demands.iter().any(|(limit, demand)| {
        let tokens = evaluation
            .limit_state(limit)
            .map_or(0, |state| state.token_bucket.tokens);
        demand.debit > 0 && tokens + demand.credit - demand.adjust < demand.debit
    })
}

/// What was seen after a call came may always refuse it, what was seen before for a while.
fn may_refuse(request: &Request, sighting: Sighting, moment: Moment, memory: Duration) -> bool {
    let remembered = moment.elapsed.saturating_sub(sighting.at) <= memory;
    sighting.proven && (remembered || request.since <= sighting.at)
}

/// Every limit's status at the moment of refusal, what is asked of it next to what is left.
fn refusal(
    evaluation: &Evaluation<'_>,
    config: &BucketConfig,
    batch: &Batch,
    request: &Request,
    key: &BucketKey,
) -> Vec<LimitStatus> {
    let RequestKind::Acquire { amounts, .. } = &request.work else {
        return Vec::new();
    };
    limit_statuses(key, config, amounts, |limit, amount| {
        evaluation.outlook(limit.name(), batch, amount)
    })
}
