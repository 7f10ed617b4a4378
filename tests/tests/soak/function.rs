//! The function that counts usage, in processes that are killed in the middle of a batch and started again.

use std::io::{BufRead as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Aggregator, DynamoDb, SnapshotUpdate, Table, ThresholdMark, UpdateOutcome};
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report,
};
use zae_limiter_schema::WindowKind;

use crate::client::TABLE;
use crate::processes::Process;
use crate::usage::client;

/// The lines that a process prints.
const COUNTED: &str = "counted";
const IN_THE_MIDDLE: &str = "in the middle";

struct NoDeadLetters;

impl DeadLetters for NoDeadLetters {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        panic!("no record of this run is a dead letter: {}", letter.reason)
    }
}

/// The table, which says when a batch is half written and then never responds.
struct HaltingTable {
    table: DynamoDb,
    /// How many updates are left until then.
    left: AtomicUsize,
}

impl Table for HaltingTable {
    async fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        let updated = self.table.update(update).await;
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            say(IN_THE_MIDDLE);
            std::future::pending::<()>().await;
        }
        updated
    }

    async fn mark(&self, mark: &ThresholdMark) -> Result<bool, CallError> {
        self.table.mark(mark).await
    }
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").unwrap();
    output.flush().unwrap();
}

/// The main function of the process: counts the batch on each line, and halts after `halt_after` updates, or never if that is 0.
pub(crate) fn main(endpoint: &str, halt_after: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let left = if halt_after == 0 { usize::MAX } else { halt_after };
    let table = HaltingTable {
        table: DynamoDb::new(client(endpoint), TABLE),
        left: left.into(),
    };
    let aggregator = Aggregator::new(table, NoDeadLetters, vec![WindowKind::Hourly], 90);
    for line in std::io::stdin().lock().lines() {
        let batch: Batch = serde_json::from_str(&line.unwrap()).unwrap();
        let mut report = Report::new(Level::Info, &[]);
        let invocation = Invocation::within(Duration::from_mins(2));
        let response = runtime.block_on(aggregator.handle(&batch, &invocation, &mut report));
        assert!(
            response.unwrap().batch_item_failures.is_empty(),
            "{:?}",
            report.notes()
        );
        say(COUNTED);
    }
}

/// Counts batches in processes one after another.
pub(crate) struct Function {
    endpoint: String,
    process: Process,
    /// Processes that were killed after some of a batch's updates.
    pub(crate) killed: usize,
}

impl Function {
    pub(crate) fn start(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            process: process(endpoint, 0),
            killed: 0,
        }
    }

    /// Counts the batch to its end.
    pub(crate) fn count(&mut self, records: &[Json]) {
        assert_eq!(deliver(&mut self.process, records), COUNTED);
    }

    /// Kills a process after it has made `updates` updates of the batch, if the batch has that many.
    pub(crate) fn crash(&mut self, records: &[Json], updates: usize) {
        let mut process = process(&self.endpoint, updates);
        self.killed += usize::from(deliver(&mut process, records) == IN_THE_MIDDLE);
        process.kill();
    }
}

fn process(endpoint: &str, halt_after: usize) -> Process {
    Process::start(&["process-function", endpoint, &halt_after.to_string()])
}

fn deliver(process: &mut Process, records: &[Json]) -> String {
    process.write_line(&json!({ "Records": records }).to_string());
    process.read_line()
}
