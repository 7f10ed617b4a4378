//! What a queue knows about its bucket, and what it does next. Pure: no I/O, no waiting, no clock.

mod at_once;
mod idle;
mod in_doubt;
mod next_write;
mod outcome;
mod read;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::{BucketConfig, BucketKey, BucketWrite, ClientTag, Etag, Image, Incarnation};

use self::at_once::LastRefusal;
pub(crate) use self::idle::IdleBucket;
use self::in_doubt::Unresolved;
use self::slots::Ownership;
use super::request::{Outcome, Request, RequestKind};
use crate::Error;

/// One reading of everything that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The calendar, corrected by the server's.
    pub(crate) now: Timestamp,
    /// The clock's time scale that never goes back.
    pub(crate) elapsed: Duration,
    /// Drawn numbers, for a new incarnation and, after a collision, a new id.
    pub(crate) random: u128,
}

/// The bucket as last seen.
#[derive(Debug, Clone)]
pub(crate) enum LastSeen {
    /// Never looked.
    Nothing,
    /// There is none, or only what the Python peer leaves of one.
    Absent(Sighting),
    /// It was like this.
    Live(Arc<Image>, Sighting),
}

/// When and how well it was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sighting {
    /// On the clock's time scale.
    pub(crate) at: Duration,
    /// By a write's answer or a consistent read; another read may be behind.
    pub(crate) proven: bool,
}

/// What the queue does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing is left to do.
    Idle,
    /// Send this write.
    Send(Arc<BucketWrite>),
    /// Read the bucket, consistently.
    Read,
    /// Read the configuration and the bucket, consistently: the bucket has other parameters than expected.
    Reload,
    /// Nothing is left to do for this time, unless somebody asks before.
    Later(Duration),
    /// Look again: something was answered without asking anybody.
    Again,
}

/// Something to tell a caller once the queue is unlocked.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The answer to an acquire.
    Answer(Request, Outcome<Arc<Image>>),
    /// A change was booked.
    Booked(Request),
    /// A change could not be booked yet and stays in the queue; its caller is told.
    Postponed(oneshot::Sender<Result<(), Error>>, Error),
    /// A change could not be booked and never will be.
    Unwritten(Request, Error),
    /// There is no bucket left to book a change on. Its next incarnation owes nothing, so this is no failure.
    Gone(Request),
}

/// A write that was sent.
#[derive(Debug)]
struct SentWrite {
    write: Arc<BucketWrite>,
    requests: Vec<Request>,
    /// When a copy of it was last sent that may be under way or applied without an answer, on the clock's time scale.
    lost: Option<Duration>,
}

/// The last consistent read of the configuration.
#[derive(Debug)]
struct Reloaded {
    /// The etag of the bucket that it was read for; none on a bucket that only the peer has written.
    etag: Option<Etag>,
    config: Arc<BucketConfig>,
    /// On the clock's time scale.
    at: Duration,
}

/// How well the refill time of a bucket is guessed from old images.
#[derive(Debug, Default)]
struct RefillGuess {
    /// The write under way is such a guess.
    under_way: bool,
    /// When one was last wrong, on the clock's time scale.
    wrong_at: Option<Duration>,
    /// The bucket was read since the last write, or could not be.
    just_read: bool,
    /// The read under way spares a guess and nothing else: the write can do without it.
    optional_read: bool,
}

/// The state of one bucket at one client.
#[derive(Debug)]
pub(crate) struct QueueState {
    key: BucketKey,
    client: ClientTag,
    known: LastSeen,
    /// The config of the last acquire, for writes that carry none.
    config: Option<Arc<BucketConfig>>,
    /// Which slot is ours.
    ownership: Ownership,
    /// When another client was last found in our slot.
    crowded_at: Option<Duration>,
    last_sequence: i128,
    queue: VecDeque<Request>,
    current: Option<SentWrite>,
    unresolved: VecDeque<Unresolved>,
    /// The list was full and its oldest entries were dropped.
    unresolved_overflowed: bool,
    /// The last consistent read of the configuration, so that it is read once per etag.
    reloaded: Option<Reloaded>,
    next_request: u64,
    /// Writes in doubt were looked for once in vain, or cannot be: they are looked for when somebody asks for the bucket
    /// again.
    resting: bool,
    /// How long an image that is proven may refuse.
    memory: Duration,
    /// How long a call is tried before it is told that the bucket is contended.
    patience: Duration,
    /// When a write was last refused though its image was current as far as we knew: somebody else writes too.
    refused_at: Option<Duration>,
    guess: RefillGuess,
    /// The last refusal that nothing was sent for.
    last_refusal: Option<Box<LastRefusal>>,
    #[cfg(test)]
    pub(crate) mutation: Option<crate::simulation::Mutation>,
    /// For the rule that is broken by [`EightTries`](crate::simulation::Mutation::EightTries).
    #[cfg(test)]
    refused_in_a_row: u32,
}

impl QueueState {
    pub(crate) fn new(key: BucketKey, client: ClientTag, memory: Duration, patience: Duration) -> Self {
        Self {
            key,
            client,
            known: LastSeen::Nothing,
            config: None,
            ownership: Ownership::None,
            crowded_at: None,
            last_sequence: 0,
            queue: VecDeque::new(),
            current: None,
            unresolved: VecDeque::new(),
            unresolved_overflowed: false,
            reloaded: None,
            next_request: 0,
            resting: false,
            memory,
            patience,
            refused_at: None,
            guess: RefillGuess::default(),
            last_refusal: None,
            #[cfg(test)]
            mutation: None,
            #[cfg(test)]
            refused_in_a_row: 0,
        }
    }

    /// The last image, however old.
    pub(crate) fn image(&self) -> Option<&Arc<Image>> {
        match &self.known {
            LastSeen::Live(image, _) => Some(image),
            LastSeen::Nothing | LastSeen::Absent(_) => None,
        }
    }

    pub(crate) fn knows_nothing(&self) -> bool {
        matches!(self.known, LastSeen::Nothing)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// True if there is nothing to do until somebody asks for the bucket. Forgetting this state then loses nothing but
    /// the image and what could not be found out about writes in doubt. A creation in doubt is not looked for.
    pub(crate) fn is_idle(&self) -> bool {
        let nothing_in_doubt = self.unresolved.iter().all(|one| one.creates);
        let rests = self.resting && !breaks!(self.mutation, LooksForever);
        self.queue.is_empty() && self.current.is_none() && (nothing_in_doubt || rests)
    }

    /// True if there is nothing to do but to look for writes in doubt.
    pub(crate) fn has_only_doubt(&self) -> bool {
        self.queue.is_empty() && self.current.is_none()
    }

    /// True if there is a change of a caller that is not booked yet.
    pub(crate) fn has_changes(&self) -> bool {
        let carried = self.current.iter().flat_map(|current| &current.requests);
        carried
            .chain(&self.queue)
            .any(|request| !request.is_acquire() && request.by_caller)
    }

    /// Looks for writes in doubt once more.
    pub(crate) fn look_again(&mut self) {
        self.resting = false;
    }

    /// True if somebody waits for an acquire.
    pub(crate) fn has_callers(&self) -> bool {
        let carried = self.current.iter().flat_map(|current| &current.requests);
        carried.chain(&self.queue).any(Request::has_caller)
    }

    /// Queues what a caller asks for.
    pub(crate) fn push(&mut self, work: RequestKind, elapsed: Duration) {
        let calls = u32::from(matches!(work, RequestKind::Acquire { .. }));
        self.enqueue(work, calls, true, elapsed);
    }

    /// Queues something that no caller has asked for and that counts as this many acquires.
    pub(crate) fn push_counting(&mut self, work: RequestKind, calls: u32, elapsed: Duration) {
        self.enqueue(work, calls, false, elapsed);
    }

    fn enqueue(&mut self, work: RequestKind, calls: u32, by_caller: bool, elapsed: Duration) {
        if let RequestKind::Acquire { config, .. } = &work {
            self.config = Some(config.clone());
        }
        self.next_request += 1;
        self.resting = false;
        self.queue.push_back(Request {
            id: self.next_request,
            work,
            calls,
            by_caller,
            since: elapsed,
            passed_over: false,
            in_doubt: false,
        });
    }

    /// Takes calls out of the queue; the others keep their order.
    fn take_out(&mut self, wanted: impl Fn(&Request) -> bool) -> Vec<Request> {
        let (taken, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queue).into_iter().partition(wanted);
        self.queue = kept;
        taken.into()
    }

    /// What to do now.
    pub(crate) fn next(&mut self, moment: Moment) -> (Step, Vec<Completion>) {
        debug_assert!(self.current.is_none(), "one write at a time");
        self.guess.optional_read = false;
        self.queue.retain(Request::is_wanted);
        if self.is_idle() {
            self.guess.just_read = false;
            return (Step::Idle, Vec::new());
        }
        match self.known.clone() {
            LastSeen::Nothing => (Step::Read, Vec::new()),
            LastSeen::Absent(sighting) => self.next_on_absent(sighting, moment),
            LastSeen::Live(image, sighting) => self.next_on_live(&image, sighting, moment),
        }
    }

    /// What a cold look at the configuration brought along about the bucket. Writes in doubt are judged by a read of their
    /// own: this one may be from before them.
    pub(crate) fn saw(&mut self, found: LastSeen) {
        if matches!(self.known, LastSeen::Nothing) && self.unresolved.is_empty() {
            self.adopt(&found);
            self.known = found;
        }
    }

    /// The configuration as just read: it replaces what queued calls came with, except given limits.
    pub(crate) fn reloaded(
        &mut self,
        config: &Arc<BucketConfig>,
        found: &LastSeen,
        moment: Moment,
    ) -> Vec<Completion> {
        self.config = Some(config.clone());
        for request in &mut self.queue {
            if let RequestKind::Acquire {
                config: held,
                given: false,
                ..
            } = &mut request.work
            {
                *held = config.clone();
            }
        }
        let completions = self.reread(found, moment);
        if let LastSeen::Live(image, _) = &self.known {
            self.reloaded = Some(Reloaded {
                etag: image.etag.clone(),
                config: config.clone(),
                at: moment.elapsed,
            });
        }
        completions
    }

    fn draw_incarnation(moment: Moment) -> Incarnation {
        Incarnation::from_random(u64::try_from(moment.random >> 64).unwrap_or_default())
    }
}
