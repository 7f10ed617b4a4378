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
use crate::bucket::amounts::Amounts;
use crate::bucket::core::request::Outcome;
use crate::bucket::core::{Arrival, BucketCall, Completion, Core, CoreSettings, LastSeen, Now, Seen, Step};
use crate::error::Unavailable;

const START: i64 = 1_700_000_000_000;

/// A state, its bucket, and a clock.
pub(in crate::bucket::core) struct Bench {
    pub(super) core: Core,
    pub(super) item: Option<Attributes>,
    pub(super) elapsed: u64,
    /// By how much the latest time that it can be is after the calendar, where it is known.
    pub(super) latest_after: Option<i64>,
    pub(super) config: Arc<BucketConfig>,
    /// What makes its random numbers differ from those of other processes.
    pub(super) salt: u128,
}

pub(super) fn parsed<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn rpm() -> LimitName {
    parsed(LimitName::parse("rpm"))
}

impl Bench {
    /// A bucket of 10 that fills in a minute, seen and consistent.
    pub(in crate::bucket::core) fn new() -> Self {
        Self::remembering(Duration::from_secs(3600))
    }

    pub(super) fn remembering(memory: Duration) -> Self {
        let limits = parsed(LimitSet::new(vec![parsed(Limit::per_minute("rpm", 10))]));
        let key = BucketKey {
            entity: parsed(EntityId::parse("u")),
            resource: parsed(Resource::parse("m")),
        };
        Self {
            core: core(key, 1, memory),
            item: None,
            elapsed: 0,
            latest_after: None,
            config: Arc::new(BucketConfig::new(limits, None, false, TtlRule::Never)),
            salt: 0,
        }
    }

    /// A copy of this process, on the same bucket at the same time.
    pub(super) fn copy(&self) -> Self {
        Self {
            core: self.core.copy(),
            item: self.item.clone(),
            elapsed: self.elapsed,
            latest_after: self.latest_after,
            config: self.config.clone(),
            salt: self.salt + 1,
        }
    }

    pub(super) fn now(&self) -> Now {
        let calendar = Timestamp::from_millis(START + i64::try_from(self.elapsed).unwrap_or(0));
        Now {
            calendar,
            latest: self.latest_after.map(|after| calendar.plus_millis(after)),
            elapsed: Duration::from_millis(self.elapsed),
            random: (u128::from(self.elapsed) << 64) + (self.salt << 32),
        }
    }

    pub(in crate::bucket::core) fn ask(&mut self, tokens: i128) -> oneshot::Receiver<Outcome<Grant>> {
        let call = BucketCall {
            amounts: smallvec::smallvec![(rpm(), tokens * 1000)],
            config: self.config.clone(),
            call_limits: false,
            fresh: false,
        };
        let now = self.now();
        match self.core.call_arrived(call, false, now) {
            Arrival::Queued(outcome) => outcome,
            decided => panic!("{decided:?}"),
        }
    }

    pub(super) fn adjust(&mut self, changes: Amounts) {
        drop(self.adjust_and_wait(changes));
    }

    pub(super) fn adjust_and_wait(&mut self, changes: Amounts) -> oneshot::Receiver<Result<(), Error>> {
        let incarnation = self.core.image().map_or("", |image| image.incarnation());
        let origin = crate::bucket::Origin::of_bucket(incarnation);
        let (done, written) = oneshot::channel();
        let elapsed = self.now().elapsed;
        self.core.change_arrived(changes, origin, done, elapsed);
        written
    }

    pub(super) fn give_back(&mut self, tokens: i128) {
        self.adjust(smallvec::smallvec![(rpm(), -tokens * 1000)]);
    }

    pub(super) fn next(&mut self) -> (Step, Vec<Completion>) {
        self.core.next(self.now())
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
        let seen = Seen {
            at: self.now().elapsed,
            consistent: true,
        };
        match self.decoded() {
            Some(Decoded::Bucket(image)) => LastSeen::Live(Arc::new(image), seen),
            Some(Decoded::Stub) | None => LastSeen::Absent(seen),
        }
    }

    /// The write arrives, and its response too.
    pub(super) fn respond(&mut self, write: &BucketWrite) -> Vec<Completion> {
        let now = self.now();
        if self.arrive(write) {
            match self.decoded() {
                Some(decoded) => self.core.done(decoded, now),
                None => panic!("nothing there"),
            }
        } else {
            self.core.refused(self.decoded(), now)
        }
    }

    /// The next step is a write, which gets a response.
    pub(in crate::bucket::core) fn pass(&mut self) -> Vec<Completion> {
        let write = self.write();
        self.respond(&write)
    }

    /// There is no response; the callers are told, and it is remembered.
    pub(super) fn lose(&mut self) -> Vec<Completion> {
        self.core.lost();
        self.give_up()
    }

    /// The write is throttled, and the callers get the error.
    pub(super) fn give_up(&mut self) -> Vec<Completion> {
        self.core.give_up_current(&unavailable())
    }

    /// The response is an error that is not transient.
    pub(super) fn postpone(&mut self) -> Vec<Completion> {
        self.core.postpone(&unavailable())
    }

    /// Everything is given up.
    pub(super) fn fail(&mut self) -> Vec<Completion> {
        self.core.failed(&unavailable())
    }

    /// A pause of an outage, as the worker makes them.
    pub(super) fn outlast(&mut self, millis: u64) {
        self.elapsed += millis;
    }

    pub(in crate::bucket::core) fn read(&mut self) -> Vec<Completion> {
        let (known, now) = (self.known(), self.now());
        self.core.reread(&known, now)
    }

    /// The bucket in the table.
    pub(in crate::bucket::core) fn bucket(&self) -> Image {
        match self.decoded() {
            Some(Decoded::Bucket(image)) => image,
            other => panic!("{other:?} is no bucket"),
        }
    }

    /// What is in the bucket, in tokens.
    pub(super) fn level(&self) -> i128 {
        let image = self.bucket();
        let elapsed = image.elapsed(self.now().calendar);
        image.limits[&rpm()].token_bucket.available(elapsed) / 1000
    }

    /// Another process writes the bucket and takes this much.
    pub(super) fn elsewhere(&mut self, tokens: i128) {
        self.elsewhere_by(77, tokens);
    }

    /// The process with this tag writes the bucket and takes this much.
    pub(super) fn elsewhere_by(&mut self, tag: u128, tokens: i128) {
        let key = self.core.key.clone();
        let mut other = Self {
            core: core(key, tag, Duration::from_secs(3600)),
            item: self.item.clone(),
            elapsed: self.elapsed,
            latest_after: self.latest_after,
            config: self.config.clone(),
            salt: 100,
        };
        other.read();
        let _answer = other.ask(tokens);
        let write = other.write();
        assert!(other.arrive(&write), "{write:?}");
        self.item = other.item;
    }
}

fn core(key: BucketKey, tag: u128, refusal_cache_ttl: Duration) -> Core {
    let settings = CoreSettings {
        client: ClientTag::from_random(tag),
        refusal_cache_ttl,
        patience: Duration::from_millis(900),
        takes_chunks: false,
        config_ttl: Duration::from_secs(60),
    };
    Core::new(key, settings, false)
}

fn unavailable() -> Error {
    Error::Unavailable(Unavailable::NoResponse {
        operation: "UpdateItem",
        table: "t".to_owned(),
        reason: "no response".to_owned(),
        within: Duration::ZERO,
    })
}
