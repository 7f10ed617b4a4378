//! A state over an item that the test keeps, and a clock that it sets.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{
    Attributes, BucketConfig, BucketKey, BucketWrite, ClientTag, Decoded, Image, Refused, TtlRule,
};
use zae_limiter_schema::{EntityId, Limit, LimitName, LimitSet, Resource, Timestamp};

use crate::Error;
use crate::bucket::Grant;
use crate::bucket::deltas::Deltas;
use crate::bucket::request::{Outcome, Reply, RequestKind};
use crate::bucket::state::{Completion, LastSeen, Moment, QueueState, Sighting, Step};
use crate::error::Unavailable;

const START: i64 = 1_700_000_000_000;

/// A state, its bucket, and a clock.
pub(super) struct Bench {
    pub(super) state: QueueState,
    pub(super) item: Option<Attributes>,
    pub(super) elapsed: u64,
    pub(super) config: Arc<BucketConfig>,
}

pub(super) fn parsed<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn rpm() -> LimitName {
    parsed(LimitName::parse("rpm"))
}

impl Bench {
    /// A bucket of 10 that fills in a minute, seen and proven.
    pub(super) fn new() -> Self {
        Self::remembering(Duration::from_secs(3600))
    }

    pub(super) fn remembering(memory: Duration) -> Self {
        let limits = parsed(LimitSet::new(vec![parsed(Limit::per_minute("rpm", 10))]));
        let key = BucketKey {
            entity: parsed(EntityId::parse("u")),
            resource: parsed(Resource::parse("m")),
        };
        Self {
            state: QueueState::new(key, ClientTag::from_random(1), memory, Duration::from_millis(900)),
            item: None,
            elapsed: 0,
            config: Arc::new(BucketConfig::new(limits, None, false, TtlRule::Never)),
        }
    }

    pub(super) fn moment(&self) -> Moment {
        Moment {
            now: Timestamp::from_millis(START + i64::try_from(self.elapsed).unwrap_or(0)),
            elapsed: Duration::from_millis(self.elapsed),
            random: u128::from(self.elapsed) << 64,
        }
    }

    pub(super) fn ask(&mut self, tokens: i128) -> oneshot::Receiver<Outcome<Grant>> {
        let (reply, answer) = oneshot::channel();
        let work = RequestKind::Acquire {
            amounts: smallvec::smallvec![(rpm(), tokens * 1000)],
            config: self.config.clone(),
            given: false,
            anew: false,
            reply: Reply::Caller(reply),
        };
        self.state.push(work, self.moment().elapsed);
        answer
    }

    pub(super) fn adjust(&mut self, changes: Deltas) {
        drop(self.adjust_and_wait(changes));
    }

    pub(super) fn adjust_and_wait(&mut self, changes: Deltas) -> oneshot::Receiver<Result<(), Error>> {
        let incarnation = self.state.image().map_or("", |image| image.incarnation()).into();
        let (done, booked) = oneshot::channel();
        let work = RequestKind::Adjust {
            changes,
            incarnation,
            done: Some(done),
        };
        self.state.push(work, self.moment().elapsed);
        booked
    }

    pub(super) fn give_back(&mut self, tokens: i128) {
        self.adjust(smallvec::smallvec![(rpm(), -tokens * 1000)]);
    }

    pub(super) fn next(&mut self) -> (Step, Vec<Completion>) {
        self.state.next(self.moment())
    }

    /// The next step is a write.
    pub(super) fn write(&mut self) -> BucketWrite {
        match self.next() {
            (Step::Send(write), _) => Arc::unwrap_or_clone(write),
            (step, _) => panic!("{step:?}"),
        }
    }

    /// The write arrives at the table.
    pub(super) fn arrive(&mut self, write: &BucketWrite) -> bool {
        let before = self.item.clone().unwrap_or_default();
        match before.apply(&write.statement()) {
            Ok(after) => {
                self.item = Some(after);
                true
            }
            Err(Refused::Condition) => false,
            Err(Refused::NotANumber) => panic!("no number"),
        }
    }

    pub(super) fn decoded(&self) -> Option<Decoded> {
        self.item.as_ref().map(|item| parsed(item.decode()))
    }

    pub(super) fn known(&self) -> LastSeen {
        let sighting = Sighting {
            at: self.moment().elapsed,
            proven: true,
        };
        match self.decoded() {
            Some(Decoded::Bucket(image)) => LastSeen::Live(Arc::new(image), sighting),
            Some(Decoded::Stub) | None => LastSeen::Absent(sighting),
        }
    }

    /// The write arrives and is answered.
    pub(super) fn answer(&mut self, write: &BucketWrite) -> Vec<Completion> {
        let moment = self.moment();
        if self.arrive(write) {
            match self.decoded() {
                Some(decoded) => self.state.done(decoded, moment),
                None => panic!("nothing there"),
            }
        } else {
            self.state.refused(self.decoded(), moment)
        }
    }

    /// The next step is a write, and it is answered.
    pub(super) fn pass(&mut self) -> Vec<Completion> {
        let write = self.write();
        self.answer(&write)
    }

    /// Nobody answers; the callers are told, and it is remembered.
    pub(super) fn lose(&mut self) -> Vec<Completion> {
        let elapsed = self.moment().elapsed;
        self.state.lost(elapsed);
        self.give_up()
    }

    /// The write is turned away, and the callers are told.
    pub(super) fn give_up(&mut self) -> Vec<Completion> {
        self.state.give_up_current(&unavailable())
    }

    /// The answer is an error that is not transient.
    pub(super) fn postpone(&mut self) -> Vec<Completion> {
        self.state.postpone(&unavailable())
    }

    /// Everything is given up.
    pub(super) fn fail(&mut self) -> Vec<Completion> {
        self.state.failed(&unavailable())
    }

    /// A pause of an outage, as the worker makes them.
    pub(super) fn outlast(&mut self, millis: u64) {
        self.elapsed += millis;
    }

    pub(super) fn read(&mut self) -> Vec<Completion> {
        let (known, moment) = (self.known(), self.moment());
        self.state.reread(&known, moment)
    }

    /// The bucket in the table.
    pub(super) fn bucket(&self) -> Image {
        match self.decoded() {
            Some(Decoded::Bucket(image)) => image,
            other => panic!("{other:?} is no bucket"),
        }
    }

    /// What is in the bucket, in tokens.
    pub(super) fn level(&self) -> i128 {
        let image = self.bucket();
        let elapsed = image.elapsed(self.moment().now);
        image.limits[&rpm()].token_bucket.available(elapsed) / 1000
    }

    /// Another process writes the bucket and takes this much.
    pub(super) fn elsewhere(&mut self, tokens: i128) {
        self.elsewhere_by(77, tokens);
    }

    /// The process with this tag writes the bucket and takes this much.
    pub(super) fn elsewhere_by(&mut self, tag: u128, tokens: i128) {
        let key = self.state.key.clone();
        let mut other = Self {
            state: QueueState::new(
                key,
                ClientTag::from_random(tag),
                Duration::from_secs(3600),
                Duration::from_millis(900),
            ),
            item: self.item.clone(),
            elapsed: self.elapsed,
            config: self.config.clone(),
        };
        other.read();
        let _answer = other.ask(tokens);
        let write = other.write();
        assert!(other.arrive(&write), "{write:?}");
        self.item = other.item;
    }
}

fn unavailable() -> Error {
    Error::Unavailable(Unavailable::NoResponse {
        operation: "UpdateItem",
        table: "t".to_owned(),
        reason: "no answer".to_owned(),
        within: Duration::ZERO,
    })
}
