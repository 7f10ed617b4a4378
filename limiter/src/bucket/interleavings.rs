//! Callers, the actor of their bucket and a shutdown, in random orders.
//!
//! Shuttle runs its threads in turns on one thread of the machine. Actors are tasks of a tokio runtime that one of shuttle's
//! threads drives, and every request to the table lets the other threads come in between.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::{Arc, Mutex, MutexGuard};

use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use shuttle::thread;
use zae_limiter_schema::bucket::{Attr, Attributes, BucketKey, BucketWrite, Field};

use super::Buckets;
use super::test_buckets::{BURST, buckets};
use crate::acquire::Acquire;
use crate::store::{BoxFuture, ConfigSource, ItemsRead, ItemsWanted, Store, WriteOutcome};
use crate::{Error, Result};

const SCHEDULES: usize = 500;
/// Two of these callers keep their tokens and the others give them back, if they get any.
const CALLERS: usize = 5;

/// A table with one bucket.
#[derive(Debug, Default)]
struct Table(Mutex<Option<Attributes>>);

impl Table {
    fn item(&self) -> MutexGuard<'_, Option<Attributes>> {
        self.0.lock().unwrap()
    }

    fn number(&self, field: Field) -> i128 {
        let attr = Attr::Limit("rpm".parse().unwrap(), field);
        self.item().as_ref().unwrap().number(&attr).unwrap()
    }

    fn write(&self, write: &BucketWrite) -> WriteOutcome {
        let mut item = self.item();
        match item.clone().unwrap_or_default().apply(&write.statement()) {
            Ok(after) => WriteOutcome::Done(item.insert(after).clone()),
            Err(_) => WriteOutcome::Refused(item.clone()),
        }
    }
}

impl ConfigSource for Table {
    fn read_items<'a>(&'a self, _: &'a ItemsWanted) -> BoxFuture<'a, Result<ItemsRead>> {
        Box::pin(async {
            thread::yield_now();
            Ok(ItemsRead::default())
        })
    }
}

impl Store for Table {
    fn read_bucket<'a>(&'a self, _: &'a BucketKey, _: bool) -> BoxFuture<'a, Result<Option<Attributes>>> {
        Box::pin(async {
            thread::yield_now();
            let item = self.item().clone();
            thread::yield_now();
            Ok(item)
        })
    }

    fn write_bucket<'a>(&'a self, write: &'a BucketWrite) -> BoxFuture<'a, WriteOutcome> {
        Box::pin(async move {
            thread::yield_now();
            let outcome = self.write(write);
            thread::yield_now();
            outcome
        })
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// A call that keeps its token or drops it. True if it got one and keeps it.
async fn call(buckets: Arc<Buckets>, keeps: bool) -> bool {
    let acquire = Acquire::new(buckets, "user-1", "gpt-4").consume("rpm", 1);
    match acquire.await {
        Ok(lease) if keeps => {
            lease.commit().await.unwrap();
            true
        }
        Ok(_) | Err(Error::Refused(_) | Error::ShutDown { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Callers at the same time and, if it is to be `early`, a shutdown meanwhile; in any case one at the end.
fn run(early: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = Arc::new(runtime.unwrap());
    let context = runtime.enter();
    let table = Arc::new(Table::default());
    let buckets = buckets(&table);
    let over = shuttle::sync::Arc::new(AtomicBool::new(false));
    let kept = shuttle::sync::Arc::new(AtomicI64::new(0));
    let driver = thread::spawn({
        let (runtime, over) = (runtime.clone(), over.clone());
        move || {
            while !over.load(Ordering::SeqCst) {
                runtime.block_on(tokio::task::yield_now());
                thread::yield_now();
            }
        }
    });
    let mut threads: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (buckets, kept) = (buckets.clone(), kept.clone());
            thread::spawn(move || {
                if block_on(call(buckets, caller < 2)) {
                    kept.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    if early {
        let buckets = buckets.clone();
        threads.push(thread::spawn(move || {
            assert!(block_on(buckets.shut_down()).unwritten.is_empty());
            assert!(buckets.check_open().is_err());
        }));
    }
    for one in threads {
        one.join().unwrap();
    }
    let closed = block_on(buckets.shut_down());
    assert!(closed.unwritten.is_empty(), "{closed:?}");
    over.store(true, Ordering::SeqCst);
    driver.join().unwrap();
    let kept = i128::from(kept.load(Ordering::SeqCst));
    if table.item().is_some() {
        assert_eq!(table.number(Field::Consumed), kept * 1_000);
        assert_eq!(
            table.number(Field::Tokens),
            (i128::from(BURST) - kept) * 1_000,
            "what was not kept is back"
        );
    }
    assert!(early || table.item().is_some(), "nobody asked");
    drop(context);
}

/// Runs in many orders, the same in every run. A call whose wakeup is lost never ends: the scheduler gives up after a million
/// steps.
fn in_every_order(early: bool) {
    let mut config = shuttle::Config::new();
    // Futures of calls are large in a debug build.
    config.stack_size = 4 << 20;
    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(2_026, SCHEDULES);
    shuttle::Runner::new(scheduler, config).run(move || run(early));
}

#[test]
fn in_every_order_the_actor_serves_every_caller_and_ends() {
    in_every_order(false);
}

#[test]
fn in_every_order_a_shutdown_waits_for_what_is_under_way() {
    in_every_order(true);
}
