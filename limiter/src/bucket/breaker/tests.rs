#![allow(clippy::unwrap_used)]

use super::*;

fn key(entity: &str) -> BucketKey {
    BucketKey {
        entity: entity.parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    }
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn breaker() -> Breaker {
    Breaker::new(millis(1_000))
}

/// A request on the entity's bucket that was sent and failed then.
fn fail(breaker: &mut Breaker, entity: &str, sent: u64, now: u64) -> bool {
    let key = key(entity);
    let request = FailedRequest {
        bucket: Some(&key),
        sent: millis(sent),
        reason: "no response in time",
    };
    breaker.failed(request, millis(now), Timestamp::MIN, |most| most)
}

/// A call that began and found the table unavailable then.
fn suspect(breaker: &mut Breaker, sent: u64, now: u64) -> Suspicion {
    let request = FailedRequest {
        bucket: None,
        sent: millis(sent),
        reason: "no response in time",
    };
    breaker.suspects(request, millis(now), Timestamp::MIN, |most| most)
}

fn open() -> Breaker {
    let mut breaker = breaker();
    assert!(!fail(&mut breaker, "a", 0, 500));
    assert!(fail(&mut breaker, "a", 510, 1_010));
    breaker
}

#[test]
fn failures_in_a_row_on_different_buckets_open_it() {
    let mut breaker = breaker();
    for number in 0..4 {
        assert!(!fail(&mut breaker, ["a", "b"][number % 2], 0, 150));
    }
    assert!(fail(&mut breaker, "a", 0, 150));
    let open = breaker.open().unwrap();
    assert_eq!(open.reason, "no response in time");
    assert!(!fail(&mut breaker, "b", 0, 151), "it is open already");
    assert_eq!(breaker.opened(), 1);
}

#[test]
fn many_failures_on_one_bucket_do_not_open_it_within_a_second() {
    let mut breaker = breaker();
    for at in 0..99 {
        assert!(!fail(&mut breaker, "a", at * 10, at * 10 + 9), "{at}");
    }
    assert!(fail(&mut breaker, "a", 990, 1_000), "a second of silence does");
}

#[test]
fn connections_that_are_closed_all_at_once_are_no_outage() {
    let mut breaker = breaker();
    for entity in ["a", "b", "c", "d", "e", "f", "g"] {
        assert!(!fail(&mut breaker, entity, 0, 5));
    }
    assert!(
        !breaker.responded(Operation::Write, millis(20)),
        "it was not open"
    );
    assert!(!fail(&mut breaker, "a", 25, 200));
}

#[test]
fn any_response_ends_the_row() {
    let mut breaker = breaker();
    for round in 0..50 {
        let at = round * 400;
        for entity in ["a", "b", "c", "d"] {
            assert!(!fail(&mut breaker, entity, at, at + 300));
        }
        breaker.responded(Operation::Write, millis(at + 350));
    }
}

#[test]
fn one_failure_after_a_long_time_does_not_open_it() {
    let mut breaker = breaker();
    assert!(
        !fail(&mut breaker, "a", 0, 3_600_000),
        "the process was suspended"
    );
    assert!(!fail(&mut breaker, "a", 7_200_000, 7_200_500), "another row");
    assert!(fail(&mut breaker, "a", 7_200_510, 7_201_010));
}

#[test]
fn a_longer_time_budget_allows_longer_silence() {
    let mut breaker = Breaker::new(millis(10_000));
    for at in [0, 3_000, 6_000] {
        assert!(!fail(&mut breaker, "a", at, at + 3_000));
    }
    assert!(fail(&mut breaker, "a", 9_000, 12_000));
}

#[test]
fn the_first_response_closes_it() {
    let mut breaker = open();
    assert!(breaker.responded(Operation::Write, millis(1_020)));
    assert!(breaker.open().is_none());
    assert!(!fail(&mut breaker, "a", 1_030, 1_530), "and the row starts again");
}

#[test]
fn there_is_one_probe_at_a_time_after_pauses_that_grow() {
    let mut breaker = open();
    let mut now = millis(1_010);
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let pause = breaker.until_probe(now).unwrap();
        pauses.push(pause.as_millis());
        assert!(!breaker.claims_probe(now, now + millis(500)), "not due yet");
        now += pause;
        assert!(breaker.claims_probe(now, now + millis(500)));
        assert!(!breaker.claims_probe(now, now + millis(500)), "one at a time");
        breaker.probed(false, now, |most| most);
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
}

#[test]
fn a_probe_that_is_never_reported_counts_as_lost() {
    let mut breaker = open();
    let now = millis(2_000);
    assert!(breaker.claims_probe(now, now + millis(500)));
    assert_eq!(breaker.until_probe(now), Some(millis(500)));
    assert!(!breaker.claims_probe(now + millis(499), now + millis(999)));
    assert!(breaker.claims_probe(now + millis(500), now + millis(1_000)));
}

#[test]
fn whoever_cannot_wait_makes_a_probe_due() {
    let mut breaker = open();
    for _ in 0..8 {
        breaker.probed(false, millis(2_000), |most| most);
    }
    breaker.probe_now(millis(2_000));
    assert!(breaker.claims_probe(millis(2_000), millis(2_500)));
    breaker.probed(false, millis(2_500), |most| most);
    assert_eq!(breaker.until_probe(millis(2_500)), Some(millis(200)));
}

#[test]
fn a_call_without_a_response_for_a_second_asks_for_a_probe() {
    let mut breaker = breaker();
    assert_eq!(suspect(&mut breaker, 0, 900), Suspicion::None, "too early");
    assert_eq!(suspect(&mut breaker, 0, 1_000), Suspicion::Probe);
    assert_eq!(suspect(&mut breaker, 0, 1_001), Suspicion::None, "one at a time");
    breaker.probed(false, millis(1_200), |most| most);
    assert!(fail(&mut breaker, "a", 0, 1_200), "the probe failed as well");
}

#[test]
fn a_call_without_a_response_for_a_second_opens_it_if_a_request_failed() {
    let mut breaker = breaker();
    fail(&mut breaker, "a", 0, 500);
    assert_eq!(suspect(&mut breaker, 0, 1_000), Suspicion::Opened);
    assert!(breaker.open().is_some());
    assert_eq!(
        suspect(&mut breaker, 0, 1_000),
        Suspicion::None,
        "it is open already"
    );
}

#[test]
fn a_call_that_saw_a_response_asks_for_no_probe() {
    let mut breaker = breaker();
    breaker.responded(Operation::Write, millis(10));
    assert_eq!(suspect(&mut breaker, 5, 1_500), Suspicion::None);
    assert_eq!(suspect(&mut breaker, 11, 1_500), Suspicion::Probe);
}

/// The breaker is shared behind a lock; what can go wrong is the order of what its users do.
#[test]
fn in_every_order_at_most_one_probe_is_under_way_and_a_response_closes_it() {
    use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use shuttle::sync::{Arc, Mutex};

    let run = || {
        let breaker = Arc::new(Mutex::new(breaker()));
        let (clock, probes) = (Arc::new(AtomicU64::new(10_000)), Arc::new(AtomicUsize::new(0)));
        for (entity, at) in [
            ("a", 8_000),
            ("b", 8_100),
            ("a", 8_200),
            ("b", 8_300),
            ("a", 8_400),
        ] {
            fail(&mut breaker.lock().unwrap(), entity, at - 50, at);
        }
        assert!(breaker.lock().unwrap().open().is_some());
        let users: Vec<_> = (0..4)
            .map(|user| {
                let (breaker, clock, probes) = (breaker.clone(), clock.clone(), probes.clone());
                shuttle::thread::spawn(move || {
                    for _ in 0..3 {
                        let now = millis(clock.fetch_add(10, Ordering::SeqCst));
                        if !breaker.lock().unwrap().claims_probe(now, now + millis(60_000)) {
                            continue;
                        }
                        assert_eq!(probes.fetch_add(1, Ordering::SeqCst), 0, "two probes at a time");
                        shuttle::thread::yield_now();
                        probes.fetch_sub(1, Ordering::SeqCst);
                        let now = millis(clock.fetch_add(6_000, Ordering::SeqCst));
                        let mut breaker = breaker.lock().unwrap();
                        breaker.probed(user == 0, now, |most| most);
                        if user == 0 {
                            breaker.responded(Operation::Write, now);
                        }
                    }
                })
            })
            .collect();
        for user in users {
            user.join().unwrap();
        }
        let mut breaker = breaker.lock().unwrap();
        let now = millis(clock.load(Ordering::SeqCst) + 60_000);
        // Whichever was last: the next probe is due, and its response closes the breaker.
        if breaker.open().is_some() {
            assert!(
                breaker.claims_probe(now, now + millis(1)),
                "a probe was left under way"
            );
            assert!(breaker.responded(Operation::Write, now));
        }
        assert!(breaker.open().is_none());
    };
    shuttle::check_random_with_seed(run, 2_026, 2_000);
}

#[test]
fn one_that_opens_again_soon_takes_more_responses_in_a_row_to_close() {
    let mut breaker = open();
    let mut now = 1_010;
    let mut needed = Vec::new();
    for _ in 0..5 {
        let mut responses = 1;
        while !breaker.responded(Operation::Write, millis(now)) {
            breaker.probed(true, millis(now), |most| most);
            assert_eq!(breaker.until_probe(millis(now)), Some(Duration::ZERO));
            responses += 1;
        }
        needed.push(responses);
        fail(&mut breaker, "a", now, now + 500);
        now += 1_000;
        assert!(fail(&mut breaker, "a", now - 490, now));
    }
    assert_eq!(needed, [1, 2, 4, 4, 4]);
    assert!(!breaker.responded(Operation::Write, millis(now)));
    breaker.probed(false, millis(now), |most| most);
    let again = (0..4).map(|_| breaker.responded(Operation::Write, millis(now)));
    assert_eq!(
        again.collect::<Vec<_>>(),
        [false, false, false, true],
        "a failure ends the row"
    );
    now += 11_000;
    fail(&mut breaker, "a", now, now + 500);
    assert!(fail(&mut breaker, "a", now + 510, now + 1_010));
    assert!(
        breaker.responded(Operation::Write, millis(now)),
        "long after the last time, one is enough"
    );
}
