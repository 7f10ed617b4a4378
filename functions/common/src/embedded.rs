//! A function in the process: an embedded table has changes as a stream has them, and no Lambda that delivers them.

use std::marker::PhantomData;
use std::thread;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{mpsc, oneshot};
use zae_limiter_dynamo::{EmbeddedStream, Error};

use crate::{Batch, CallError, DeadLetter, DeadLetters, Function, Invocation, Level, Report};

/// How often new changes are delivered.
const INTERVAL: Duration = Duration::from_secs(2);
/// The pause after changes that could not be processed.
const PAUSE: Duration = Duration::from_secs(30);
/// The time for one batch, of which the last seconds are reserved.
const INVOCATION: Duration = Duration::from_secs(10);
/// Callers that wait for the function to catch up. Further ones wait to be added.
const MAX_WAITING: usize = 16;

/// A function that gets the changes of an embedded table every two seconds, in order and each at least once, for as long as this
/// exists. It has a thread of its own.
#[derive(Debug)]
pub struct EmbeddedMapping<F> {
    requests: mpsc::Sender<Request>,
    function: PhantomData<fn() -> F>,
}

/// Wants to know when all changes have been delivered, and how many there were.
type Request = oneshot::Sender<Result<u64, Error>>;

impl<F: Function + Send + 'static> EmbeddedMapping<F> {
    /// Starts to deliver these changes to the function.
    pub fn start(stream: EmbeddedStream, function: F) -> Result<Self, Error> {
        let (requests, received) = mpsc::channel(MAX_WAITING);
        let worker = Worker { stream, function };
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let started = runtime.and_then(|runtime| {
            thread::Builder::new()
                .name("zae-limiter-stream".to_owned())
                .spawn(move || runtime.block_on(worker.run(received)))
        });
        started.map_err(|error| failed(&error.to_string()))?;
        Ok(Self {
            requests,
            function: PhantomData,
        })
    }

    /// Delivers changes now, until there are no more. Returns how many. After an error, the next delivery goes on where this one
    /// failed.
    pub async fn catch_up(&self) -> Result<u64, Error> {
        let (request, response) = oneshot::channel();
        let ended = || failed("its thread has ended");
        self.requests.send(request).await.map_err(|_| ended())?;
        response.await.map_err(|_| ended())?
    }
}

fn failed(reason: &str) -> Error {
    Error::Store {
        place: "embedded table".to_owned(),
        reason: format!("has changes that are not processed: {reason}"),
    }
}

/// Delivers changes, one batch after the other.
struct Worker<F> {
    stream: EmbeddedStream,
    function: F,
}

impl<F: Function> Worker<F> {
    /// Until nobody can ask for anything.
    async fn run(self, mut requests: mpsc::Receiver<Request>) {
        let mut pause = INTERVAL;
        loop {
            tokio::select! {
                request = requests.recv() => {
                    let Some(request) = request else { return };
                    // A caller may have gone.
                    let _ = request.send(self.catch_up().await);
                }
                () = tokio::time::sleep(pause) => {
                    pause = match self.catch_up().await {
                        Ok(_) => INTERVAL,
                        Err(error) => {
                            tracing::warn!(%error, "changes of the embedded table are processed later");
                            PAUSE
                        }
                    };
                }
            }
        }
    }

    async fn catch_up(&self) -> Result<u64, Error> {
        let mut delivered = 0;
        loop {
            let changes = self.stream.next().await?;
            if changes.is_empty() {
                return Ok(delivered);
            }
            let batch: Batch =
                serde_json::from_str(changes.event()).map_err(|error| failed(&error.to_string()))?;
            let (done, problem) = self.invoke(&batch).await;
            self.stream.read_through(&changes, done).await?;
            delivered += done as u64;
            if done < batch.len() {
                return Err(failed(&problem));
            }
        }
    }

    /// How many changes of the batch are processed, from the first on, and why not all.
    async fn invoke(&self, batch: &Batch) -> (usize, String) {
        let mut report = Report::new(Level::Warn, F::METRICS);
        let response = self
            .function
            .handle(batch, &Invocation::within(INVOCATION), &mut report)
            .await;
        for note in report.notes() {
            tracing::warn!(level = ?note.level, "{}", note.message);
        }
        let problem = report.notes().last().map(|note| note.message.clone());
        match response {
            Ok(response) => {
                let failed = response
                    .batch_item_failures
                    .iter()
                    .map(|failure| &failure.item_identifier);
                let failed: Vec<_> = failed.collect();
                let is_failed = |number: Option<String>| failed.contains(&&number);
                let first = batch
                    .records()
                    .position(|record| is_failed(record.sequence_number()));
                (first.unwrap_or(batch.len()), problem.unwrap_or_default())
            }
            Err(error) => (0, error.to_string()),
        }
    }
}

/// Without a queue, a dead letter is a line of the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoggedDeadLetters;

impl DeadLetters for LoggedDeadLetters {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        tracing::error!(letter = letter.to_message(), "a change cannot be processed");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::sync::{Arc, Mutex};

    use aws_sdk_dynamodb::Client;
    use aws_sdk_dynamodb::types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    };
    use zae_limiter_dynamo::EmbeddedStore;

    use super::*;
    use crate::{DynamoDbEventResponse, Failures, Unreportable};

    /// Fails at the key that it is told to, and notes the others.
    #[derive(Default, Clone)]
    struct Noting(Arc<Notes>);

    #[derive(Default)]
    struct Notes {
        seen: Mutex<Vec<String>>,
        fails_at: Mutex<Option<&'static str>>,
    }

    impl Function for Noting {
        const METRICS: &'static [&'static str] = &[];

        async fn handle(
            &self,
            batch: &Batch,
            _: &Invocation,
            report: &mut Report,
        ) -> Result<DynamoDbEventResponse, Unreportable> {
            let mut failures = Failures::default();
            for (index, record) in batch.records().enumerate() {
                let key = match record.decode().unwrap().change.keys.get("PK") {
                    Some(serde_dynamo::AttributeValue::S(key)) => key.clone(),
                    other => panic!("{other:?}"),
                };
                if self.0.fails_at.lock().unwrap().is_some_and(|fails| fails == key) {
                    failures.add(index);
                    report.note(Level::Warn, format!("{key} fails"));
                    break;
                }
                self.0.seen.lock().unwrap().push(key);
            }
            failures.to_response(batch)
        }
    }

    async fn store() -> (EmbeddedStore, Client) {
        let store = EmbeddedStore::memory().unwrap();
        let client = Client::from_conf(store.sdk_config().build());
        let key = KeySchemaElement::builder()
            .attribute_name("PK")
            .key_type(KeyType::Hash);
        let attribute = AttributeDefinition::builder()
            .attribute_name("PK")
            .attribute_type(ScalarAttributeType::S);
        let table = client
            .create_table()
            .table_name("table")
            .billing_mode(BillingMode::PayPerRequest);
        let table = table.key_schema(key.build().unwrap());
        table
            .attribute_definitions(attribute.build().unwrap())
            .send()
            .await
            .unwrap();
        (store, client)
    }

    #[tokio::test]
    async fn changes_are_delivered_in_order_and_a_failed_one_again() {
        let (store, client) = store().await;
        let function = Noting::default();
        let stream = store.stream("table", "test").await.unwrap();
        let mapping = EmbeddedMapping::start(stream, function.clone()).unwrap();
        assert_eq!(mapping.catch_up().await.unwrap(), 0);
        for key in ["a", "b", "c"] {
            let put = client.put_item().table_name("table");
            put.item("PK", AttributeValue::S(key.to_owned()))
                .send()
                .await
                .unwrap();
        }
        *function.0.fails_at.lock().unwrap() = Some("b");
        let error = mapping.catch_up().await.unwrap_err().to_string();
        assert!(error.contains("b fails"), "{error}");
        *function.0.fails_at.lock().unwrap() = None;
        assert_eq!(mapping.catch_up().await.unwrap(), 2);
        assert_eq!(*function.0.seen.lock().unwrap(), ["a", "b", "c"]);
    }
}
