use std::cell::Cell;

use super::*;

const TOTAL: Duration = Duration::from_secs(10);

fn budget() -> Budget {
    Budget::starting_now(TOTAL, TOTAL / 2)
}

#[tokio::test(start_paused = true)]
async fn retries_go_on_while_there_is_time_and_end_within_the_budget() {
    let (started, calls) = (Instant::now(), Cell::new(0));
    let result: Result<(), _> = budget()
        .retry(&Entropy::seeded(1), || {
            calls.set(calls.get() + 1);
            async { Err(CallError::Throttled("slow down".to_owned())) }
        })
        .await;
    assert_eq!(result, Err(CallError::Throttled("slow down".to_owned())));
    assert!(started.elapsed() <= TOTAL && calls.get() > 10, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_an_answer_ends_and_is_repeated() {
    let calls = Cell::new(0);
    let result = budget()
        .retry(&Entropy::seeded(1), || {
            calls.set(calls.get() + 1);
            let hangs = calls.get() == 1;
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Ok(7)
            }
        })
        .await;
    assert_eq!((result, calls.get()), (Ok(7), 2));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_does_not_hide_what_an_earlier_attempt_was_answered() {
    let calls = Cell::new(0);
    let result: Result<(), _> = budget()
        .retry(&Entropy::seeded(1), || {
            calls.set(calls.get() + 1);
            let responds = calls.get() == 1;
            async move {
                if !responds {
                    std::future::pending::<()>().await;
                }
                Err(CallError::Conflict("busy".to_owned()))
            }
        })
        .await;
    assert_eq!(result, Err(CallError::Conflict("busy".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_succeed_is_called_once() {
    let calls = Cell::new(0);
    let result: Result<(), _> = budget()
        .retry(&Entropy::seeded(1), || {
            calls.set(calls.get() + 1);
            async { Err(CallError::TableMissing) }
        })
        .await;
    assert_eq!((result, calls.get()), (Err(CallError::TableMissing), 1));
}
