//! Dead letters that are redriven.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{NoAlerts, Redriven, Settings, redrive};
use zae_limiter_function::{CallError, DeadLetterMessage, DeadLetterSource, Invocation};
use zae_limiter_schema::WindowKind;

use super::support::{Script, good, returning};

/// A queue of dead letters, named by their index.
struct Messages {
    waiting: RefCell<Vec<DeadLetterMessage>>,
    deleted: RefCell<Vec<String>>,
    released: RefCell<Vec<String>>,
}

impl DeadLetterSource for Messages {
    async fn receive(&self) -> Result<Vec<DeadLetterMessage>, CallError> {
        Ok(self.waiting.take())
    }

    async fn release(&self, message: &DeadLetterMessage) -> Result<(), CallError> {
        self.released.borrow_mut().push(message.id.clone());
        Ok(())
    }

    async fn delete(&self, message: &DeadLetterMessage) -> Result<(), CallError> {
        self.deleted.borrow_mut().push(message.id.clone());
        Ok(())
    }
}

/// Redrives messages with these bodies. Returns what was done, and the queue.
async fn redriven(table: Script, bodies: &[Json]) -> (Redriven, Messages) {
    let message = |(id, body): (usize, &Json)| DeadLetterMessage {
        id: id.to_string(),
        receipt: String::new(),
        body: body.to_string(),
    };
    let queue = Messages {
        waiting: RefCell::new(bodies.iter().enumerate().map(message).collect()),
        deleted: RefCell::default(),
        released: RefCell::default(),
    };
    let settings = Settings {
        table: "t".to_owned(),
        dead_letters: "q".to_owned(),
        windows: vec![WindowKind::Daily],
        retention_days: 30,
        event_bus: None,
    };
    let invocation = Invocation::within(Duration::from_secs(20));
    let done = redrive(table, &queue, None::<NoAlerts>, &settings, &invocation)
        .await
        .unwrap();
    (done, queue)
}

fn letter(function: &str, record: &Json) -> Json {
    json!({"function": function, "reason": "because", "sequenceNumber": "1", "record": record})
}

#[tokio::test(start_paused = true)]
async fn a_redrive_deletes_only_letters_whose_records_it_has_counted() {
    let bodies = [
        letter("aggregator", &good(1, "a")),
        letter("archiver", &good(2, "a")),
        json!({"requestContext": {"condition": "RetryAttemptsExhausted"}}),
        json!({"function": "aggregator", "reason": "because", "sequenceNumber": "4"}),
    ];
    let (done, queue) = redriven(Script::default(), &bodies).await;
    assert_eq!((done.done, done.snapshots), (1, 1), "{done:?}");
    assert_eq!(*queue.deleted.borrow(), ["0"]);
    assert_eq!(*queue.released.borrow(), ["1", "2", "3"]);
    let expected = [
        "message 1: it is a dead letter of the archiver",
        "message 2: it is not a dead letter of the aggregator",
        "message 3: its record was too large for a message",
    ];
    for (kept, expected) in done.kept.iter().zip(expected) {
        assert!(kept.starts_with(expected), "{kept}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_redrive_keeps_every_letter_from_the_first_failure_on() {
    let letters =
        [(1, "a"), (2, "b"), (3, "c")].map(|(number, entity)| letter("aggregator", &good(number, entity)));
    let table = returning("b", Err(CallError::Throttled("slow down".to_owned())));
    let (done, queue) = redriven(table, &letters).await;
    assert_eq!((done.done, done.kept.len()), (1, 2), "{done:?}");
    assert_eq!(*queue.deleted.borrow(), ["0"]);
    assert_eq!(*queue.released.borrow(), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_redrive_whose_failure_cannot_be_reported_keeps_every_letter() {
    let letters = [
        letter("aggregator", &json!({"x": 1})),
        letter("aggregator", &good(2, "b")),
    ];
    let table = returning("b", Err(CallError::Denied("AccessDeniedException".to_owned())));
    let (done, queue) = redriven(table, &letters).await;
    assert_eq!((done.done, done.kept.len()), (0, 2), "{done:?}");
    assert!(queue.deleted.borrow().is_empty());
}
