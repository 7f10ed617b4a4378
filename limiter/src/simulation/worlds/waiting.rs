//! Calls that wait for tokens: what they cost, and that they are served in order.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::outages::Process;
use crate::simulation::clock::block_on;

/// As many as find a bucket at the same time.
const CALLS: u64 = 500;
const PATIENCE: Duration = Duration::from_secs(60);

/// What calls at the same time came to.
#[derive(Debug, PartialEq, Eq)]
struct Served {
    writes: u64,
    took: Duration,
}

/// Calls for one token each, all at once, on a bucket with plenty of them.
fn all_at_once(patience: Option<Duration>) -> Served {
    block_on(async move {
        let process = Process::new((1_000, 1_000, 60));
        process.take("a", 1).await.unwrap();
        let (writes, start) = (process.writes(), Instant::now());
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let call = process.acquire("a", 1);
            let call = match patience {
                Some(patience) => call.wait_up_to(patience),
                None => call,
            };
            calls.spawn(async move { call.await?.commit().await });
        }
        calls.join_all().await.into_iter().for_each(|call| call.unwrap());
        Served {
            writes: process.writes() - writes,
            took: start.elapsed(),
        }
    })
}

#[test]
fn patient_calls_on_a_full_bucket_cost_what_impatient_ones_cost() {
    let (patient, impatient) = (all_at_once(Some(PATIENCE)), all_at_once(None));
    eprintln!("{CALLS} calls at once on a full bucket: patient {patient:?}, impatient {impatient:?}");
    assert!(patient.writes <= 5, "{patient:?}");
    assert_eq!(patient, impatient);
}

/// Calls wait for a bucket that one lease has emptied; then the lease gives everything back.
fn after_a_refund() -> u64 {
    block_on(async move {
        let process = Process::new((100, 60, 60));
        let lease = process.acquire("a", 100).await.unwrap();
        let mut calls = JoinSet::new();
        for _ in 0..50 {
            let call = process.acquire("a", 1).wait_up_to(PATIENCE);
            calls.spawn(async move { call.await?.commit().await });
        }
        sleep(Duration::from_millis(500)).await;
        lease.rollback().await.unwrap();
        let writes = process.writes();
        calls.join_all().await.into_iter().for_each(|call| call.unwrap());
        process.writes() - writes
    })
}

#[test]
fn calls_that_wait_are_combined_into_one_write_when_their_tokens_are_due() {
    let combined = after_a_refund();
    eprintln!("50 waiting calls whose tokens are due: {combined} writes");
    assert!(combined <= 2, "{combined}");
}

/// The most writes that arrive within 10 ms when the tokens of many processes are due at the same time.
fn at_the_same_time() -> u64 {
    block_on(async move {
        let process = Process::new((100, 6, 60));
        process.take("a", 100).await.unwrap();
        let mut calls = JoinSet::new();
        for seed in 0..20 {
            let call = process.beside(seed).acquire("a", 1).wait_up_to(PATIENCE);
            calls.spawn(async move { call.await?.commit().await });
        }
        // The first token comes back after ten seconds.
        sleep(Duration::from_secs(9)).await;
        let mut most = 0;
        for _ in 0..200 {
            let before = process.writes();
            sleep(Duration::from_millis(10)).await;
            most = most.max(process.writes() - before);
        }
        calls.abort_all();
        most
    })
}

#[test]
fn processes_whose_tokens_are_due_at_the_same_time_do_not_ask_together() {
    let apart = at_the_same_time();
    eprintln!("20 processes whose tokens are due: at most {apart} writes in 10 ms");
    assert!(apart <= 5, "{apart}");
}

/// The order in which waiting calls are served: the first wants much, those behind it little.
fn order() -> Vec<u64> {
    block_on(async move {
        let process = Process::new((10, 10, 1));
        process.take("a", 10).await.unwrap();
        let served = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut calls = JoinSet::new();
        for (number, tokens) in [8, 1, 1, 5, 1].into_iter().enumerate() {
            sleep(Duration::from_millis(1)).await;
            let call = process.acquire("a", tokens).wait_up_to(PATIENCE);
            let served = served.clone();
            calls.spawn(async move {
                call.await.unwrap().commit().await.unwrap();
                served.lock().unwrap().push(number as u64);
            });
        }
        calls.join_all().await;
        Arc::into_inner(served).unwrap().into_inner().unwrap()
    })
}

#[test]
fn waiting_calls_are_served_in_order_of_arrival() {
    assert_eq!(order(), [0, 1, 2, 3, 4]);
}
