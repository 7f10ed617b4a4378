//! What a lane knows about its bucket, and what it does next. Pure: no I/O, no waiting, no clock.

mod fold;
mod outcome;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::{BucketKey, BucketWrite, ClientId, Etag, Image, Incarnation, Terms};

use super::ticket::{Changes, Reply, Ticket};
use crate::Error;

/// After so many refused writes a call is told that the bucket is contended.
pub(crate) const MOST_TRIES: u32 = 8;

/// At most so many writes without an answer are remembered, one a second over a quarter of an hour.
const MOST_UNRESOLVED: usize = 1_000;

/// The network may deliver a write this late; after that nobody looks for one without an answer on its own account.
pub(crate) const LATE_DELIVERY: Duration = Duration::from_mins(1);

/// A creation in doubt is looked for after this time, and then after twice as long each time.
const FIRST_LOOK: Duration = Duration::from_millis(100);

/// One reading of everything that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The calendar, corrected by the server's.
    pub(crate) now: Timestamp,
    /// The clock's time scale that never goes back.
    pub(crate) elapsed: Duration,
    /// Drawn numbers, for a new incarnation and, after a collision, a new id.
    pub(crate) chance: u128,
}

/// The bucket as last seen.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// Never looked.
    Nothing,
    /// There is none, or only what the Python peer leaves of one.
    Absent(Sight),
    /// It was like this.
    Live(Arc<Image>, Sight),
}

/// When and how well it was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    /// On the clock's time scale.
    pub(crate) at: Duration,
    /// By a write's answer or a consistent read; another read may be behind.
    pub(crate) proven: bool,
}

/// What the lane does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing is left to do.
    Idle,
    /// Send this write.
    Send(Box<BucketWrite>),
    /// Read the bucket, consistently.
    Read,
    /// Read the configuration and the bucket, consistently: the bucket has other parameters than expected.
    Reload,
    /// Read the bucket after this time, unless somebody asks for it before.
    Later(Duration),
    /// Look again: something was answered without asking anybody.
    Again,
}

/// Something to tell a caller once the lane is unlocked.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The answer to an acquire.
    Answer(Ticket, Reply),
    /// A change was booked.
    Booked(Ticket),
    /// A change could not be booked and never will be.
    Unwritten(Ticket, Error),
    /// There is no bucket left to book a change on. Its next incarnation owes nothing, so this is no failure.
    Gone(Ticket),
}

/// A write that was sent.
#[derive(Debug)]
struct Current {
    write: Box<BucketWrite>,
    tickets: Vec<Ticket>,
    /// When a copy of it was last sent that may be under way or applied without an answer, on the clock's time scale.
    lost: Option<Duration>,
}

/// A write of which a copy may still be applied, and what it carried.
#[derive(Debug)]
struct Unresolved {
    number: i128,
    /// When its last copy was sent, on the clock's time scale.
    sent: Duration,
    /// It creates the bucket: it can land where there is none.
    creates: bool,
    /// The incarnation of the bucket that has it, if any has.
    incarnation: Arc<str>,
    entries: Vec<Entry>,
}

/// One call that an unresolved write carried.
#[derive(Debug)]
struct Entry {
    ticket: u64,
    refund: Changes,
}

/// The last consistent read of the configuration.
#[derive(Debug)]
struct Reloaded {
    /// The etag of the bucket that it was read for; none on a bucket that only the peer has written.
    etag: Option<Etag>,
    terms: Arc<Terms>,
    /// On the clock's time scale.
    at: Duration,
}

/// The state of one bucket at one client.
#[derive(Debug)]
pub(crate) struct Desk {
    key: BucketKey,
    client: ClientId,
    known: Known,
    /// The terms of the last acquire, for writes that carry none.
    terms: Option<Arc<Terms>>,
    /// The number of our last confirmed write, as far as it is on the item.
    previous: Option<i128>,
    last_number: i128,
    queue: VecDeque<Ticket>,
    current: Option<Current>,
    unresolved: VecDeque<Unresolved>,
    /// How often a creation in doubt was looked for.
    looks: u32,
    /// There were so many of them that the oldest are no longer known.
    forgetful: bool,
    /// The last consistent read of the configuration, so that it is read once per etag.
    reloaded: Option<Reloaded>,
    next_ticket: u64,
    /// The table refuses us, or has been away for long: writes in doubt are looked for when somebody asks for the bucket
    /// again.
    resting: bool,
    /// How long an image that is proven may refuse.
    memory: Duration,
    #[cfg(test)]
    pub(crate) mutation: Option<crate::simulation::Mutation>,
}

impl Desk {
    pub(crate) fn new(key: BucketKey, client: ClientId, memory: Duration) -> Self {
        Self {
            key,
            client,
            known: Known::Nothing,
            terms: None,
            previous: None,
            last_number: 0,
            queue: VecDeque::new(),
            current: None,
            unresolved: VecDeque::new(),
            looks: 0,
            forgetful: false,
            reloaded: None,
            next_ticket: 0,
            resting: false,
            memory,
            #[cfg(test)]
            mutation: None,
        }
    }

    /// The last image, however old.
    pub(crate) fn image(&self) -> Option<&Arc<Image>> {
        match &self.known {
            Known::Live(image, _) => Some(image),
            Known::Nothing | Known::Absent(_) => None,
        }
    }

    pub(crate) fn knows_nothing(&self) -> bool {
        matches!(self.known, Known::Nothing)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// True if forgetting this desk loses nothing but the image, or what could not be found out in all its time.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.current.is_none() && (self.unresolved.is_empty() || self.resting)
    }

    pub(crate) fn push(&mut self, work: super::ticket::Work, elapsed: Duration) {
        if let super::ticket::Work::Acquire { terms, .. } = &work {
            self.terms = Some(terms.clone());
        }
        self.next_ticket += 1;
        self.resting = false;
        self.queue.push_back(Ticket {
            id: self.next_ticket,
            work,
            tries: 0,
            since: elapsed,
            in_doubt: false,
        });
    }

    /// Takes calls out of the queue; the others keep their order.
    fn take_out(&mut self, wanted: impl Fn(&Ticket) -> bool) -> Vec<Ticket> {
        let (taken, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queue).into_iter().partition(wanted);
        self.queue = kept;
        taken.into()
    }

    /// What to do now.
    pub(crate) fn next(&mut self, moment: Moment) -> (Step, Vec<Completion>) {
        debug_assert!(self.current.is_none(), "one write at a time");
        self.queue.retain(Ticket::is_wanted);
        if self.queue.is_empty() && (self.unresolved.is_empty() || self.resting) {
            return (Step::Idle, Vec::new());
        }
        match self.known.clone() {
            Known::Nothing => (Step::Read, Vec::new()),
            Known::Absent(sight) => self.next_on_absent(sight, moment),
            Known::Live(image, sight) => self.next_on_live(&image, sight, moment),
        }
    }

    /// What a cold look at the configuration brought along about the bucket. Writes in doubt are judged by a read of their
    /// own: this one may be from before them.
    pub(crate) fn saw(&mut self, found: Known) {
        if matches!(self.known, Known::Nothing) && self.unresolved.is_empty() {
            self.adopt(&found);
            self.known = found;
        }
    }

    /// The configuration as just read: it replaces what queued calls came with, except given limits.
    pub(crate) fn reloaded(&mut self, terms: &Arc<Terms>, found: &Known, moment: Moment) -> Vec<Completion> {
        self.terms = Some(terms.clone());
        for ticket in &mut self.queue {
            if let super::ticket::Work::Acquire {
                terms: held,
                given: false,
                ..
            } = &mut ticket.work
            {
                *held = terms.clone();
            }
        }
        let completions = self.reread(found, moment);
        if let Known::Live(image, _) = &self.known {
            self.reloaded = Some(Reloaded {
                etag: image.etag.clone(),
                terms: terms.clone(),
                at: moment.elapsed,
            });
        }
        completions
    }

    fn draw_incarnation(moment: Moment) -> Incarnation {
        Incarnation::from_random(u64::try_from(moment.chance >> 64).unwrap_or_default())
    }
}
