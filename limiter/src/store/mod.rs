//! What an acquire needs of a store: the table, an embedded store, or a simulation.

pub(crate) mod connect;
mod table_store;

pub(crate) use table_store::TableStore;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use zae_limiter_dynamo::{TimedOut, attempt};
use zae_limiter_schema::bucket::{Attributes, BucketKey, BucketWrite};
use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{Item, Timestamp};

use crate::bucket::RefusalCount;
use crate::{Error, Result};

/// The future of a call of a trait object.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Items to read together.
#[derive(Debug, Clone, Default)]
pub(crate) struct ItemsWanted {
    /// Requested until they are read or the time is over.
    pub(crate) required: Vec<Key>,
    /// Left unread rather than waited for: an older value of them is known.
    pub(crate) optional: Vec<Key>,
    /// Whether the read must see every write that came before it.
    pub(crate) consistent: bool,
}

/// Items as they were read.
#[derive(Debug, Default)]
pub(crate) struct ItemsRead {
    /// Those that exist.
    pub(crate) found: HashMap<Key, Item>,
    /// Optional ones that were not read, and why.
    pub(crate) unread: HashMap<Key, Error>,
}

/// What became of a bucket write.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    /// It happened; the bucket is like this now.
    Done(Attributes),
    /// Its condition did not hold; the bucket is like this, if there is one.
    Refused(Option<Attributes>),
    /// There was no response: it may have happened, or happen yet.
    Lost(String),
    /// It never left the process: there was no connection.
    NotSent(String),
    /// It was throttled: too many requests.
    Throttled(String),
    /// It was refused because a transaction is at work on the item, or because its signature had a wrong time.
    Conflict(String),
    /// It cannot be carried out, and trying again does not help.
    Failed(Error),
}

/// A write that may be sent. Held until it has a response.
#[derive(Debug, Default)]
pub(crate) struct WriteSlot {
    _permit: Option<OwnedSemaphorePermit>,
}

impl WriteSlot {
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: Some(permit),
        }
    }
}

/// The writes of this process wait for each other: how many are sent at the same time, and how many have got a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteQueue {
    pub(crate) at_a_time: usize,
    pub(crate) responses: u64,
}

/// Where configuration comes from.
pub(crate) trait ConfigSource: Send + Sync + fmt::Debug + 'static {
    /// Reads configurations, entity records and buckets in one round trip.
    fn read_items<'a>(&'a self, wanted: &'a ItemsWanted) -> BoxFuture<'a, Result<ItemsRead>>;

    /// What must be added to this machine's time to get the store's, in milliseconds. A store without a time of its own has
    /// no offset.
    fn clock_offset(&self) -> i64 {
        0
    }
}

/// A store of configurations and buckets.
pub(crate) trait Store: ConfigSource {
    /// Reads a bucket.
    fn read_bucket<'a>(
        &'a self,
        key: &'a BucketKey,
        consistent: bool,
    ) -> BoxFuture<'a, Result<Option<Attributes>>>;

    /// Waits until a write can be sent: credentials are loaded, and there is a slot. A failed wait is the outcome of the write
    /// that it was for.
    fn ready(&self) -> BoxFuture<'_, Result<WriteSlot, WriteOutcome>> {
        Box::pin(async { Ok(WriteSlot::default()) })
    }

    /// Why no request can be sent, if credentials were asked for and there are none. A call whose time is over meanwhile has not
    /// met an outage.
    fn denial(&self) -> Option<Error> {
        None
    }

    /// The queue of writes, if they wait for each other.
    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    /// Sends a bucket write once. Callers use [`send_write`](dyn Store::send_write).
    fn write_bucket<'a>(&'a self, write: &'a BucketWrite) -> BoxFuture<'a, WriteOutcome>;

    /// Whether refusals are worth writing: an aggregator adds them up.
    fn counts_refusals(&self) -> bool {
        false
    }

    /// Adds refused and observed acquires to the counts of a bucket, unless there is no such bucket. Sent once.
    fn count_refusals<'a>(&'a self, _: &'a BucketKey, _: RefusalCount) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Asks the store for something small.
    fn ping(&self) -> BoxFuture<'_, Result<()>>;

    /// Sends a write that changes nothing: true if there was any response, an error or throttling included.
    fn accepts_writes(&self) -> BoxFuture<'_, bool> {
        self.responds()
    }

    /// Asks the store for something small: true if there was any response, an error or throttling included.
    fn responds(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            match self.ping().await {
                Ok(()) => true,
                Err(error) => !error.is_unavailable(),
            }
        })
    }

    /// The latest time that it can be now, where that is known for certain. What is later was written by a wrong clock.
    fn latest_time(&self) -> Option<Timestamp> {
        None
    }
}

impl dyn Store {
    /// Sends a bucket write once and waits for the response up to `timeout`. The caller has waited until the store is
    /// [ready](Store::ready): loading credentials, waiting for other writes and connecting are not part of that time, so that
    /// they are not begun again by each attempt, nor taken for a lost write.
    pub(crate) async fn send_write(&self, write: &BucketWrite, timeout: Duration) -> WriteOutcome {
        let connected_by = Instant::now() + timeout * 2;
        match attempt(timeout, connected_by, self.write_bucket(write)).await {
            Ok(outcome) => outcome,
            Err(TimedOut::Sent) => WriteOutcome::Lost("no response in time".to_owned()),
            Err(TimedOut::NotSent) => WriteOutcome::NotSent("no connection in time".to_owned()),
        }
    }
}
