//! Folding the queue into the next write.

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Batch, Footing, Image, Terms};

use super::super::status::LimitStatus;
use super::super::ticket::{Reply, Ticket, Work};
use super::{Completion, Current, Desk, FIRST_LOOK, LATE_DELIVERY, Moment, Sight, Step};

/// A configuration that was read longer ago is read again before it is written to a bucket.
const READ_A_MOMENT_AGO: Duration = Duration::from_secs(1);

/// At most so many calls are folded into one write, so that no answer waits for a huge one.
const MOST_FOLDED: usize = 1_000;

/// What came of folding.
struct Folded {
    batch: Batch,
    /// What of it takes place for certain: all but the acquires.
    certain: Batch,
    taken: Vec<Ticket>,
    completions: Vec<Completion>,
    /// A call did not fit, and the image is too old to say no.
    doubtful: bool,
}

impl Desk {
    /// There is no bucket: acquires create it, and there is nothing to book changes on.
    pub(super) fn next_on_absent(&mut self, sight: Sight, moment: Moment) -> (Step, Vec<Completion>) {
        if !sight.proven && self.queue.iter().any(|ticket| !ticket.is_acquire()) {
            return (Step::Read, Vec::new());
        }
        self.nothing_there();
        self.looked();
        let mut completions = Vec::new();
        let changes = self.take_out(|ticket| !ticket.is_acquire());
        completions.extend(changes.into_iter().map(Completion::Gone));
        let Some(terms) = self.front_terms() else {
            return (self.look_for_creations(moment), completions);
        };
        let footing = Footing::create(&terms, moment.now);
        let folded = self.fold(&footing, &terms, "", |_| true);
        completions.extend(folded.completions);
        let step = self
            .send(&footing, &folded.batch, folded.taken, moment)
            .unwrap_or(Step::Again);
        (step, completions)
    }

    /// A creation in doubt may still arrive and take what nobody has; nothing else can where there is no bucket.
    fn look_for_creations(&mut self, moment: Moment) -> Step {
        if let Some(sent_before) = moment.elapsed.checked_sub(LATE_DELIVERY) {
            self.rest(sent_before);
        }
        if self.unresolved.is_empty() || self.resting {
            return Step::Again;
        }
        self.looks += 1;
        Step::Later(FIRST_LOOK.saturating_mul(1 << (self.looks - 1).min(8)))
    }

    pub(super) fn next_on_live(
        &mut self,
        image: &Arc<Image>,
        sight: Sight,
        moment: Moment,
    ) -> (Step, Vec<Completion>) {
        let given = self.queue.iter().find_map(|ticket| match &ticket.work {
            Work::Acquire { given, .. } => Some(*given),
            Work::Settle { .. } => None,
        });
        let Some(terms) = self.front_terms().or_else(|| self.terms.clone()) else {
            return (Step::Reload, Vec::new());
        };
        let agrees = terms.match_image(image);
        // Changes alone take the bucket as it is; acquires and buckets that only the peer has written do not.
        let rewrites = !agrees && (given.is_some() || image.etag.is_none());
        if rewrites && given != Some(true) && !self.may_rewrite(image, &terms, moment) {
            return (Step::Reload, Vec::new());
        }
        let footing = match (rewrites, agrees) {
            (true, _) => Footing::parameters(image, &terms, moment.now),
            (false, true) => Footing::live(image, &terms, moment.now),
            // A limit that these terms do not know may be one that was just added.
            (false, false) => Footing::as_it_is(image, &terms, moment.now),
        };
        // What was seen after a call came may always refuse it, what was seen before for a while.
        let remembered = moment.elapsed.saturating_sub(sight.at) <= self.memory;
        let refuses = |ticket: &Ticket| sight.proven && (remembered || ticket.since <= sight.at);
        let folded = self.fold(&footing, &terms, image.incarnation(), refuses);
        let nothing = folded.taken.is_empty();
        if nothing && folded.doubtful {
            return (Step::Read, folded.completions);
        }
        if nothing && !rewrites && self.unresolved.is_empty() {
            return (Step::Again, folded.completions);
        }
        // With nothing to carry it still applies new parameters, or fences off writes without an answer.
        match self.send(&footing, &folded.batch, folded.taken, moment) {
            Some(step) => (step, folded.completions),
            None => (Step::Read, folded.completions),
        }
    }

    fn may_rewrite(&self, image: &Image, terms: &Terms, moment: Moment) -> bool {
        #[cfg(test)]
        if self.mutation == Some(crate::simulation::Mutation::ParametersFromCache) {
            return true;
        }
        // Parameters come from a consistent read of a moment ago that has seen this very etag, never from a cache.
        self.reloaded.as_ref().is_some_and(|read| {
            read.etag == image.etag
                && read.terms.as_ref() == terms
                && moment.elapsed.saturating_sub(read.at) <= READ_A_MOMENT_AGO
        })
    }

    /// The terms of the first acquire in the queue.
    fn front_terms(&self) -> Option<Arc<Terms>> {
        self.queue.iter().find_map(|ticket| match &ticket.work {
            Work::Acquire { terms, .. } => Some(terms.clone()),
            Work::Settle { .. } => None,
        })
    }

    /// Takes calls from the queue in order of arrival, after what is given back: nothing is refused that the same write
    /// makes room for. A call that does not fit is refused and does not block those behind it. One that does not fit
    /// beside earlier calls, which may fail yet, waits for their answer, and one with other terms for the next write.
    fn fold(
        &mut self,
        footing: &Footing<'_>,
        terms: &Arc<Terms>,
        incarnation: &str,
        may_refuse: impl Fn(&Ticket) -> bool,
    ) -> Folded {
        let mut folded = Folded {
            batch: Batch::default(),
            certain: Batch::default(),
            taken: Vec::new(),
            completions: Vec::new(),
            doubtful: false,
        };
        self.queue
            .make_contiguous()
            .sort_by_key(|ticket| !ticket.only_gives_back());
        let mut left = std::collections::VecDeque::new();
        while let Some(ticket) = self.queue.pop_front() {
            if folded.taken.len() >= MOST_FOLDED {
                left.push_back(ticket);
                continue;
            }
            if let Work::Acquire {
                terms: own, amounts, ..
            } = &ticket.work
            {
                if own != terms {
                    left.push_back(ticket);
                    continue;
                }
                if let Some((limit, _)) = amounts.iter().find(|(limit, _)| footing.ground(limit).is_none()) {
                    let error = super::super::level::unknown_limit(limit, terms, &self.key);
                    folded
                        .completions
                        .push(Completion::Answer(ticket, Reply::Failed(error)));
                    continue;
                }
            }
            let with = |batch: &Batch| {
                let mut with = batch.clone();
                ticket.add_to(&mut with, incarnation);
                with
            };
            let all = with(&folded.batch);
            if footing.fits(&all) {
                folded.batch = all;
                if !ticket.is_acquire() {
                    folded.certain = with(&folded.certain);
                }
                folded.taken.push(ticket);
            } else if !ticket.is_acquire() || footing.fits(&with(&folded.certain)) {
                // Booking a change now would take away what an earlier call was just given.
                left.push_back(ticket);
            } else if may_refuse(&ticket) && !ticket.needs_a_look() {
                let statuses = refusal(footing, terms, &folded.certain, &ticket, &self.key);
                folded
                    .completions
                    .push(Completion::Answer(ticket, Reply::Refused(statuses)));
            } else {
                folded.doubtful = true;
                left.push_back(ticket);
            }
        }
        self.queue = left;
        folded
    }

    /// Makes the write and notes what it carries.
    fn send(
        &mut self,
        footing: &Footing<'_>,
        batch: &Batch,
        tickets: Vec<Ticket>,
        moment: Moment,
    ) -> Option<Step> {
        if tickets.is_empty() && matches!(self.known, super::Known::Absent(_)) {
            return None;
        }
        let slot = self.next_slot(moment);
        let write = footing.write(self.key.clone(), batch, slot, Self::draw_incarnation(moment))?;
        let write = Box::new(write);
        self.current = Some(Current {
            write: write.clone(),
            tickets,
            lost: None,
        });
        Some(Step::Send(write))
    }
}

/// Every limit's status at the moment of refusal, what is asked of it next to what is left.
fn refusal(
    footing: &Footing<'_>,
    terms: &Terms,
    batch: &Batch,
    ticket: &Ticket,
    key: &zae_limiter_schema::bucket::BucketKey,
) -> Vec<LimitStatus> {
    let Work::Acquire { amounts, .. } = &ticket.work else {
        return Vec::new();
    };
    let asked = |name| {
        amounts
            .iter()
            .find(|(limit, _)| limit == name)
            .map_or(0, |(_, amount)| *amount)
    };
    let statuses = terms.limits().iter().filter_map(|limit| {
        let amount = asked(limit.name());
        let (available, wait) = footing.outlook(limit.name(), batch, amount)?;
        Some(LimitStatus::new(key, limit, available, amount, wait))
    });
    statuses.collect()
}
