//! The decisions about one bucket. Pure: no I/O, no waiting, no clock.
//!
//! [`Core`] is a value. Every method that changes it is an event: a call or a change [arrived](arrival), the table
//! [responded](response) to a write or did not, a [read](read) came back, time passed. An event returns what callers
//! must be told. [`Core::next`] then says what to do: write, read, wait, or nothing.

mod arrival;
pub(super) mod chunks;
mod combine;
mod contention;
mod permits;
mod read;
mod refusal;
pub(super) mod request;
mod response;
mod slots;
#[cfg(test)]
mod tests;
mod unconfirmed;
mod write_pace;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{
    BucketConfig, BucketKey, BucketWrite, ClientTag, Etag, Held, Image, Incarnation,
};
use zae_limiter_schema::{LimitName, Timestamp};

pub(crate) use self::arrival::{Arrival, BucketCall};
use self::chunks::Chunks;
use self::contention::Contention;
use self::permits::{Permits, Renewal};
use self::request::{Outcome, Request, RequestKind, Taken};
use self::slots::Ownership;
use self::unconfirmed::Unconfirmed;
use self::write_pace::WritePace;
use super::amounts::Amounts;
use super::origin::Origin;
use crate::Error;

/// At most this often a client sets the last refill of a bucket back.
const BETWEEN_SET_BACKS: Duration = Duration::from_mins(10);

/// One reading of everything that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// The calendar, corrected by the server's.
    pub(crate) calendar: Timestamp,
    /// The latest time that it can be, if that is known for certain.
    pub(crate) latest: Option<Timestamp>,
    /// The clock's time scale that never goes back.
    pub(crate) elapsed: Duration,
    /// Random bits, for a new incarnation, the choice of a slot and, after a collision, a new tag.
    pub(crate) random: u128,
}

/// The bucket as last seen.
#[derive(Debug, Clone)]
pub(crate) enum LastSeen {
    /// It was never read.
    Nothing,
    /// There is none, or only what the Python peer leaves of one.
    Absent(Seen),
    /// It looked like this.
    Live(Arc<Image>, Seen),
}

/// When the bucket was seen, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// On the clock's time scale.
    pub(crate) at: Duration,
    /// In the response to a write, or by a consistent read. Any other read may be behind.
    pub(crate) consistent: bool,
}

/// What to do next.
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
    /// Wait this long, or until something arrives.
    Later(Duration),
    /// Ask for the next step: calls were decided without a request.
    Again,
}

/// Something to tell a caller once the bucket is unlocked.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The outcome of an acquire.
    Decided(Request, Outcome<Taken>),
    /// A change was written.
    Written(Request),
    /// A change could not be written yet and stays in the queue; its caller gets the error.
    Postponed(oneshot::Sender<Result<(), Error>>, Error),
    /// A change could not be written and never will be.
    Unwritten(Request, Error),
    /// There is no bucket left to write a change to. Its next incarnation owes nothing, so this is no failure.
    Gone(Request),
}

/// A write that was sent.
#[derive(Debug)]
struct SentWrite {
    write: Arc<BucketWrite>,
    requests: Vec<Request>,
    renewals: Vec<Renewal>,
    /// A copy of it may be on its way, or applied without a response.
    lost: bool,
}

impl SentWrite {
    /// What its calls hold by it.
    fn held(&self) -> Vec<(LimitName, Held)> {
        let rows = self.write.rows.iter();
        rows.filter_map(|row| Some((row.limit().clone(), row.held()?)))
            .collect()
    }
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
    /// The write in flight is such a guess.
    under_way: bool,
    /// When one was last wrong, on the clock's time scale.
    wrong_at: Option<Duration>,
    /// The bucket was read since the last write, or could not be.
    just_read: bool,
    /// The read in flight only spares a guess: the write can do without it.
    optional_read: bool,
}

/// What is the same for all buckets of a limiter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoreSettings {
    /// Identifies the limiter in the slots.
    pub(crate) client: ClientTag,
    /// How long a consistent image may refuse.
    pub(crate) refusal_cache_ttl: Duration,
    /// How long a call is retried when other clients keep changing the bucket.
    pub(crate) patience: Duration,
    /// Whether tokens may be taken ahead of the calls.
    pub(crate) takes_chunks: bool,
    /// How old the configuration of a call may be.
    pub(crate) config_ttl: Duration,
}

/// Everything that one client knows about one bucket.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Core {
    key: BucketKey,
    client: ClientTag,
    known: LastSeen,
    /// The config of the last acquire, for writes that carry none.
    config: Option<Arc<BucketConfig>>,
    /// Which slot is ours.
    ownership: Ownership,
    last_sequence: i128,
    /// The sequence numbers that were sent last.
    sent: VecDeque<i128>,
    queue: VecDeque<Request>,
    current: Option<SentWrite>,
    unconfirmed: VecDeque<Unconfirmed>,
    /// The list was full and its oldest entries were dropped.
    unconfirmed_overflowed: bool,
    /// The last consistent read of the configuration, so that it is read once per etag.
    reloaded: Option<Box<Reloaded>>,
    next_request: u64,
    /// Unconfirmed writes were searched for once in vain, or cannot be: they are searched for again when a call arrives.
    search_stopped: bool,
    refusal_cache_ttl: Duration,
    patience: Duration,
    config_ttl: Duration,
    contention: Contention,
    guess: RefillGuess,
    pace: WritePace,
    /// Tokens taken ahead of the calls, where they are allowed.
    chunks: Option<Box<Chunks>>,
    /// Permits that calls of this process hold.
    permits: Permits,
    /// Something was written since the bucket's expiry was last checked.
    check_expiry: bool,
    /// When the bucket's last refill was last set back, on the clock's time scale.
    refill_set_back_at: Option<Duration>,
    /// The limiter is shutting down: no more tokens are taken ahead.
    closing: bool,
}

impl Core {
    pub(crate) fn new(key: BucketKey, settings: CoreSettings, closing: bool) -> Self {
        Self {
            key,
            client: settings.client,
            known: LastSeen::Nothing,
            config: None,
            ownership: Ownership::None,
            last_sequence: 0,
            sent: VecDeque::new(),
            queue: VecDeque::new(),
            current: None,
            unconfirmed: VecDeque::new(),
            unconfirmed_overflowed: false,
            reloaded: None,
            next_request: 0,
            search_stopped: false,
            refusal_cache_ttl: settings.refusal_cache_ttl,
            patience: settings.patience,
            config_ttl: settings.config_ttl,
            contention: Contention::default(),
            guess: RefillGuess::default(),
            pace: WritePace::default(),
            chunks: settings.takes_chunks.then(|| Box::new(Chunks::new())),
            permits: Permits::default(),
            check_expiry: false,
            refill_set_back_at: None,
            closing,
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

    /// True if there is nothing to do until something arrives.
    pub(crate) fn is_idle(&self) -> bool {
        let has_chunk = self.chunks.as_ref().is_some_and(|chunks| chunks.is_held());
        self.has_nothing_to_do() && !has_chunk && (self.closing || !self.permits.is_held())
    }

    /// The same, except for tokens taken ahead and permits to renew. A creation without a response is not searched for.
    pub(crate) fn has_nothing_to_do(&self) -> bool {
        let nothing_to_search = self.searched().all(|write| write.creates);
        self.queue.is_empty() && self.current.is_none() && (nothing_to_search || self.search_stopped)
    }

    /// True if forgetting it loses nothing but the image.
    pub(crate) fn can_be_forgotten(&self) -> bool {
        let has_chunks = self.chunks.as_ref().is_some_and(|chunks| !chunks.is_settled());
        self.is_idle()
            && self.unconfirmed.is_empty()
            && !has_chunks
            && !self.permits.is_held()
            && !self.check_expiry
            && self.pace.is_free()
    }

    /// The number of the last request that arrived.
    pub(crate) fn last_request(&self) -> u64 {
        self.next_request
    }

    /// True if the requests up to this one are completed and, unless more have arrived, nothing is left to do.
    pub(crate) fn is_settled(&self, last: u64) -> bool {
        let has_older = self.requests().any(|request| request.id <= last);
        let has_newer = self.requests().any(|request| request.id > last);
        !has_older && (has_newer || self.has_nothing_to_do())
    }

    /// True if there is nothing to do but to search for unconfirmed writes.
    pub(crate) fn only_searches(&self) -> bool {
        self.queue.is_empty() && self.current.is_none()
    }

    /// True if there is a change of a caller that is not written yet.
    pub(crate) fn has_changes(&self) -> bool {
        let is_change = |request: &Request| !request.is_acquire() && request.by_caller;
        self.requests().any(is_change)
    }

    /// True if a caller waits for an acquire.
    pub(crate) fn has_callers(&self) -> bool {
        self.requests().any(Request::has_caller)
    }

    fn requests(&self) -> impl Iterator<Item = &Request> {
        let carried = self.current.iter().flat_map(|current| &current.requests);
        carried.chain(&self.queue)
    }

    /// Searches for unconfirmed writes once more.
    pub(crate) fn search_again(&mut self) {
        self.search_stopped = false;
    }

    /// Stops searching for unconfirmed writes if there is nothing else to do, until a call arrives. They are not
    /// forgotten: one of them may be what the bucket shows then.
    pub(crate) fn stop_searching(&mut self) {
        self.search_stopped |= self.queue.is_empty();
    }

    fn enqueue(&mut self, kind: RequestKind, calls: u32, by_caller: bool, elapsed: Duration) {
        if let RequestKind::Acquire { config, .. } = &kind {
            self.config = Some(config.clone());
        }
        self.next_request += 1;
        self.search_stopped = false;
        self.queue.push_back(Request {
            id: self.next_request,
            kind,
            calls,
            by_caller,
            since: elapsed,
            passed_over: false,
            conflicts: 0,
            maybe_written: false,
        });
    }

    /// Takes requests out of the queue; the others keep their order.
    fn take_out(&mut self, wanted: impl Fn(&Request) -> bool) -> Vec<Request> {
        let (taken, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queue).into_iter().partition(wanted);
        self.queue = kept;
        taken.into()
    }

    /// What to do now. [`Step::Idle`] means that nothing is left.
    pub(crate) fn next(&mut self, now: Now) -> (Step, Vec<Completion>) {
        self.return_unused_chunk(now.elapsed);
        let (mut step, mut completions) = self.plan(now);
        if matches!(step, Step::Idle) && self.expires_too_early(now) {
            // A write that carries nothing lets the bucket live until it is full.
            let nothing = RequestKind::Adjust {
                changes: Amounts::new(),
                origin: Origin::of_bucket(""),
                done: None,
            };
            self.enqueue(nothing, 0, false, now.elapsed);
            let (next, more) = self.plan(now);
            step = next;
            completions.extend(more);
        }
        let returns_chunk = self.chunks.as_ref().and_then(|chunks| chunks.idle_at());
        if let (Step::Idle, Some(at)) = (&step, returns_chunk) {
            step = Step::Later(at.saturating_sub(now.elapsed));
        }
        if let (Step::Idle | Step::Later(_), Some(wait)) = (&step, self.until_renewal(now.calendar)) {
            step = match step {
                Step::Later(sooner) => Step::Later(sooner.min(wait)),
                _ => Step::Later(wait),
            };
        }
        (step, completions)
    }

    fn plan(&mut self, now: Now) -> (Step, Vec<Completion>) {
        debug_assert!(self.current.is_none(), "one write at a time");
        self.guess.optional_read = false;
        self.queue.retain(Request::is_wanted);
        let renews = self.renewal_is_due(now.calendar);
        if self.has_nothing_to_do() && !renews {
            self.guess.just_read = false;
            return (Step::Idle, Vec::new());
        }
        match self.known.clone() {
            LastSeen::Nothing => (Step::Read, Vec::new()),
            LastSeen::Absent(seen) => self.plan_on_absent(seen, now),
            LastSeen::Live(image, seen) => self.plan_on_live(&image, seen, now),
        }
    }

    /// True, once, if the bucket would expire before it has paid off what was written last. A write computes the expiry
    /// from the image that it was made from; only the bucket afterwards shows what others have taken meanwhile.
    fn expires_too_early(&mut self, now: Now) -> bool {
        let check = std::mem::take(&mut self.check_expiry);
        check
            && self
                .image()
                .is_some_and(|image| image.expires_before_full(now.calendar))
    }

    /// What the bucket's last refill must be set back to, if a wrong clock has left it in the future: nothing would come back until
    /// then. Not often: each time the wrong clock writes the bucket again, it books a refill for the time that was set back.
    fn refill_set_back(&self, image: &Image, now: Now) -> Option<Timestamp> {
        let set_back = self.refill_set_back_at;
        if set_back.is_some_and(|at| now.elapsed.saturating_sub(at) < BETWEEN_SET_BACKS) {
            return None;
        }
        // Not to a time that may have passed: what has come back since has been booked.
        let latest = now.latest.filter(|latest| image.is_ahead_of(*latest))?;
        let time = latest.max(now.calendar);
        (time < image.refilled_at).then_some(time)
    }

    /// How long the next write waits for more calls to carry. Calls that need no write for their refusal do not wait.
    pub(crate) fn pause_before_write(&mut self, now: Now) -> (Duration, Vec<Completion>) {
        let pause = self.pace.wait(now.elapsed);
        if pause.is_zero() {
            return (pause, Vec::new());
        }
        (pause, self.refuse_in_advance(now))
    }

    fn draw_incarnation(now: Now) -> Incarnation {
        Incarnation::from_random(u64::try_from(now.random >> 64).unwrap_or_default())
    }

    /// The bucket, in the words of an error message.
    fn what(&self) -> String {
        format!("the bucket of {} on {}", self.key.entity, self.key.resource)
    }
}
