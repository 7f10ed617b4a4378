//! Refusals that cost no request: by what was seen of the bucket a short while ago.
//!
//! The last image refuses what its level, refilled until now, does not cover. On a saturated bucket the refill since the
//! image is divided by the number of clients: the others take theirs, and a client that counted on all of it would send
//! writes only to lose them.

use std::collections::VecDeque;
use std::time::Duration;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{
    Batch, BucketConfig, BucketKey, Demand, Evaluation, Image, LimitState, Outlook, RetryAfter,
};

use super::super::limit_statuses::limit_statuses;
use super::request::{Outcome, Request, RequestKind};
use super::{Amounts, BucketCall, Completion, Core, LastSeen, Now, Seen};
use crate::status::LimitStatus;

/// Others release permits at any time: so long an image may refuse them.
const PERMIT_REFUSAL_TTL: Duration = Duration::from_millis(100);
/// On a saturated bucket a call that has lost this many writes to others is refused.
const CONFLICTS_WHEN_SATURATED: u32 = 2;
/// On any other bucket a call that has lost this many is refused when its time is over.
const CONFLICTS_WHEN_LATE: u32 = 3;

/// What a saturated bucket has for this client.
pub(super) struct OwnShare<'a> {
    /// The bucket with this client's part of what has come back since it was seen.
    evaluation: Evaluation<'a>,
    config: &'a BucketConfig,
    clients: u32,
}

impl OwnShare<'_> {
    /// True if the call may be sent together with everything that is in the batch already.
    pub(super) fn covers(&self, with_call: &Batch, request: &Request) -> bool {
        request.conflicts < CONFLICTS_WHEN_SATURATED && self.evaluation.fits(with_call)
    }

    /// The refusal of a call behind everything in the batch.
    pub(super) fn refusal(&self, batch: &Batch, request: &Request, key: &BucketKey) -> Vec<LimitStatus> {
        let RequestKind::Acquire { amounts, .. } = &request.kind else {
            return Vec::new();
        };
        refusal_in_line(&self.evaluation, self.config, batch, amounts, key, self.clients)
    }
}

impl Core {
    /// The refusal of a call that just arrived, if the next write would not carry it.
    pub(super) fn refuse_now(&mut self, call: &BucketCall, now: Now) -> Option<Vec<LimitStatus>> {
        let LastSeen::Live(image, seen) = &self.known else {
            return None;
        };
        let age = now.elapsed.saturating_sub(seen.at);
        let is_recent = age <= self.refusal_cache_ttl;
        let nothing_waits = self.queue.is_empty() && self.current.is_none();
        if !seen.consistent || !is_recent || !nothing_waits || !call.config.matches(image) {
            return None;
        }
        if self.refill_set_back(image, now).is_some() {
            // It needs a write.
            return None;
        }
        let (image, seen) = (image.clone(), *seen);
        let share = self.own_share(&image, &call.config, seen, now);
        let evaluation = Evaluation::live(&image, &call.config, now.calendar);
        let is_unknown = |(limit, _): &(_, i128)| evaluation.limit_state(limit).is_none();
        if call.amounts.iter().any(is_unknown) {
            return None;
        }
        let nothing = Batch::default();
        let statuses = match share {
            _ if is_soon_outdated(&evaluation, &call.amounts) && age > PERMIT_REFUSAL_TTL => return None,
            _ if !evaluation.covers(&call.amounts) => {
                self.contention.short_at = Some(now.elapsed);
                limit_statuses(&self.key, &call.config, &call.amounts, |limit, amount| {
                    evaluation.outlook(limit.name(), &nothing, amount)
                })
            }
            Some(share) if !share.evaluation.covers(&call.amounts) => refusal_in_line(
                &share.evaluation,
                &call.config,
                &nothing,
                &call.amounts,
                &self.key,
                share.clients,
            ),
            _ => return None,
        };
        Some(statuses)
    }

    /// Refuses calls that the bucket as last seen has too little for, as the next write would. The others stay.
    pub(super) fn refuse_in_advance(&mut self, now: Now) -> Vec<Completion> {
        let LastSeen::Live(image, seen) = self.known.clone() else {
            return Vec::new();
        };
        let Some(config) = self.front_config().filter(|config| config.matches(&image)) else {
            return Vec::new();
        };
        if self.queue.iter().any(Request::only_returns) || self.refill_set_back(&image, now).is_some() {
            // The next write makes room, or sets the bucket right.
            return Vec::new();
        }
        let evaluation = Evaluation::live(&image, &config, now.calendar);
        let (nothing, ttl) = (Batch::default(), self.refusal_cache_ttl);
        let does_not_fit = |request: &Request| {
            let RequestKind::Acquire { config: own, .. } = &request.kind else {
                return false;
            };
            let mut alone = Batch::default();
            request.add_to(&mut alone, &evaluation, image.incarnation(), now.calendar);
            own == &config
                && !evaluation.fits(&alone)
                && !request.needs_fresh_image()
                && may_refuse(&evaluation, request, seen, now, ttl)
        };
        let (refused, left): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(does_not_fit);
        self.queue = left;
        let refused = refused.into_iter().map(|request| {
            let statuses = refusal(&evaluation, &config, &nothing, &request, &self.key);
            Completion::Decided(request, Outcome::Refused(statuses))
        });
        refused.collect()
    }

    /// What a saturated bucket has for this client; nothing if it is not saturated, or not known well enough.
    pub(super) fn own_share<'a>(
        &self,
        image: &'a Image,
        config: &'a BucketConfig,
        seen: Seen,
        now: Now,
    ) -> Option<OwnShare<'a>> {
        if !seen.consistent || !self.contention.is_saturated(now) {
            return None;
        }
        let clients = self.contention.clients(now.calendar);
        let age = now.elapsed.saturating_sub(seen.at);
        // Half of its part: what nobody takes stays in the bucket, and every lost write costs as much as one that wins.
        let part = age / clients.saturating_mul(2);
        let lost = i64::try_from((age - part).as_millis()).unwrap_or(i64::MAX);
        Some(OwnShare {
            evaluation: Evaluation::live(image, config, now.calendar.plus_millis(-lost)),
            config,
            clients,
        })
    }

    /// The refusal of a call that has lost too many writes to other clients; nothing if the bucket cannot tell.
    pub(super) fn refuse_contended(&self, request: &Request, now: Now) -> Option<Vec<LimitStatus>> {
        let RequestKind::Acquire { amounts, config, .. } = &request.kind else {
            return None;
        };
        if request.conflicts < CONFLICTS_WHEN_LATE {
            return None;
        }
        let image = self.image().filter(|image| config.matches(image))?;
        let evaluation = Evaluation::live(image, config, now.calendar);
        let clients = self.contention.clients(now.calendar).max(2);
        let nothing = Batch::default();
        Some(refusal_in_line(
            &evaluation,
            config,
            &nothing,
            amounts,
            &self.key,
            clients,
        ))
    }
}

/// True if all that is missing may be given back by others at any time.
fn is_soon_outdated(evaluation: &Evaluation<'_>, amounts: &Amounts) -> bool {
    let is_short = |(limit, amount): &&(LimitName, i128)| {
        let state = evaluation.limit_state(limit);
        state.is_some_and(|state| state.level(Demand::default()) < *amount)
    };
    let mut short = amounts.iter().filter(is_short).peekable();
    let by_others = |(limit, _): &(LimitName, i128)| {
        let state = evaluation.limit_state(limit);
        state.is_some_and(LimitState::is_returned_by_others)
    };
    short.peek().is_some() && short.all(by_others)
}

/// What was seen after a call came may always refuse it, what was seen before for a while.
pub(super) fn may_refuse(
    evaluation: &Evaluation<'_>,
    request: &Request,
    seen: Seen,
    now: Now,
    ttl: Duration,
) -> bool {
    let ttl = match &request.kind {
        RequestKind::Acquire { amounts, .. } if is_soon_outdated(evaluation, amounts) => {
            ttl.min(PERMIT_REFUSAL_TTL)
        }
        _ => ttl,
    };
    let remembered = now.elapsed.saturating_sub(seen.at) <= ttl;
    seen.consistent && (remembered || request.since <= seen.at)
}

/// The status of every limit: what the call takes of it next to what is left.
pub(super) fn refusal(
    evaluation: &Evaluation<'_>,
    config: &BucketConfig,
    batch: &Batch,
    request: &Request,
    key: &BucketKey,
) -> Vec<LimitStatus> {
    let RequestKind::Acquire { amounts, .. } = &request.kind else {
        return Vec::new();
    };
    limit_statuses(key, config, amounts, |limit, amount| {
        evaluation.outlook(limit.name(), batch, amount)
    })
}

/// The same for a call in line with those of other clients: each of them is assumed to take as much before it.
fn refusal_in_line(
    evaluation: &Evaluation<'_>,
    config: &BucketConfig,
    batch: &Batch,
    amounts: &Amounts,
    key: &BucketKey,
    clients: u32,
) -> Vec<LimitStatus> {
    let mut ahead = batch.clone();
    for (limit, amount) in amounts {
        ahead.add(
            limit,
            Demand::debit(amount.saturating_mul(i128::from(clients) - 1)),
        );
    }
    let outlook = |limit: &_, amount| evaluation.outlook(limit, &ahead, amount);
    let is_short = |(limit, amount): &(_, i128)| {
        outlook(limit, *amount).is_some_and(|outlook| outlook.retry_after != RetryAfter::Now)
    };
    // Enough for all of them: the writes collide, and it is refused all the same.
    let shortest = (!amounts.iter().any(is_short)).then(|| Duration::from_millis(u64::from(clients)));
    limit_statuses(key, config, amounts, |limit, amount| {
        let in_line = outlook(limit.name(), amount)?;
        let now = evaluation.outlook(limit.name(), batch, amount)?;
        let retry_after = match (in_line.retry_after, shortest) {
            (RetryAfter::Now, Some(shortest)) if amount > 0 => RetryAfter::After(shortest),
            (wait, _) => wait,
        };
        let left = if retry_after == RetryAfter::Now {
            now.left
        } else {
            now.left.min((amount - 1).max(0))
        };
        Some(Outlook {
            left,
            retry_after,
            ..now
        })
    })
}
