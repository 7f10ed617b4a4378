//! `acquire --count`: many acquires and their summary.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;
use zae_limiter::{Admission, ConsumedCapacity, EntityId, Error as Limiter, RateLimiter, Resource};

use super::percentiles::Percentiles;
use super::{Arguments, single};
use crate::command_output::{CommandOutput, Text};
use crate::connect::{self, explain};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{View, decimal, grouped};

/// The maximum number of different error messages in the summary.
const MAX_MESSAGES: usize = 10;

#[derive(Debug, Serialize)]
struct Summary {
    entity_id: EntityId,
    resource: Resource,
    count: u32,
    concurrency: u32,
    admitted: u64,
    limited: u64,
    errors: u64,
    /// Admitted without being counted, because the table was unavailable.
    uncounted: u64,
    seconds: f64,
    per_second: f64,
    latency_ms: Option<Percentiles>,
    calls: u64,
    calls_per_acquire: f64,
    /// Capacity units, or null if the endpoint does not report them.
    capacity_per_acquire: Option<PerAcquire>,
    messages: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct PerAcquire {
    read: f64,
    write: f64,
}

/// The results of one worker.
#[derive(Debug, Default)]
struct WorkerResults {
    admitted: u64,
    limited: u64,
    uncounted: u64,
    unavailable: u64,
    errors: BTreeMap<String, u64>,
    latencies: Vec<Duration>,
}

impl WorkerResults {
    fn add(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.limited += other.limited;
        self.uncounted += other.uncounted;
        self.unavailable += other.unavailable;
        for (message, count) in other.errors {
            *self.errors.entry(message).or_default() += count;
        }
        self.latencies.extend(other.latencies);
    }

    fn record_error(&mut self, error: &Limiter) {
        self.unavailable += u64::from(connect::is_unavailable(error));
        *self.errors.entry(explain(error)).or_default() += 1;
    }

    fn exit(&self) -> Exit {
        let errors: u64 = self.errors.values().sum();
        match errors {
            0 => Exit::Success,
            errors if errors == self.unavailable => Exit::Unavailable,
            _ => Exit::Error,
        }
    }
}

pub(super) async fn run(arguments: Arguments, count: u32, context: &Context) -> Result<CommandOutput> {
    let (limiter, meter) = connect::metered_limiter(&context.location, &context.name()?).await?;
    let before = meter.consumed();
    let arguments = Arc::new(arguments);
    let next = Arc::new(AtomicU32::new(0));
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..arguments.concurrency.get().min(count) {
        workers.spawn(work(arguments.clone(), limiter.clone(), next.clone(), count));
    }
    let mut results = WorkerResults::default();
    while let Some(joined) = workers.join_next().await {
        results.add(joined.map_err(|error| Error::Internal {
            what: "a worker task failed".to_owned(),
            source: error.into(),
        })?);
    }
    let took = started.elapsed();
    single::finish_writes(&limiter).await?;
    let exit = results.exit();
    let summary = Summary::new(&arguments, count, results, took, before, meter.consumed());
    Ok(CommandOutput::new(summary).with_exit(exit))
}

async fn work(
    arguments: Arc<Arguments>,
    limiter: RateLimiter,
    next: Arc<AtomicU32>,
    count: u32,
) -> WorkerResults {
    let mut results = WorkerResults::default();
    while next.fetch_add(1, Ordering::Relaxed) < count {
        let started = Instant::now();
        let acquired = arguments.acquire(&limiter).await;
        results.latencies.push(started.elapsed());
        match acquired {
            Ok(mut lease) => {
                results.admitted += 1;
                results.uncounted += u64::from(lease.admission() != Admission::Counted);
                arguments.adjust(&mut lease);
                if let Err(error) = lease.commit().await {
                    results.record_error(&error);
                }
            }
            Err(Limiter::Refused(_)) => results.limited += 1,
            Err(error) => results.record_error(&error),
        }
    }
    results
}

impl Summary {
    fn new(
        arguments: &Arguments,
        count: u32,
        results: WorkerResults,
        took: Duration,
        before: ConsumedCapacity,
        after: ConsumedCapacity,
    ) -> Self {
        let calls = after.calls - before.calls;
        let each = |total: f64| total / f64::from(count);
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let calls_per_acquire = each(calls as f64);
        let (read, write) = (
            after.read_units - before.read_units,
            after.write_units - before.write_units,
        );
        // A response that reports capacity never reports zero.
        let reported = calls == 0 || read + write > 0.0;
        let capacity = reported.then(|| PerAcquire {
            read: each(read),
            write: each(write),
        });
        Self {
            entity_id: arguments.entity.clone(),
            resource: arguments.resource.clone(),
            count,
            concurrency: arguments.concurrency.get(),
            admitted: results.admitted,
            limited: results.limited,
            errors: results.errors.values().sum(),
            uncounted: results.uncounted,
            seconds: took.as_secs_f64(),
            per_second: f64::from(count) / took.as_secs_f64().max(f64::EPSILON),
            latency_ms: Percentiles::of(results.latencies),
            calls,
            calls_per_acquire,
            capacity_per_acquire: capacity,
            messages: results.errors.into_iter().take(MAX_MESSAGES).collect(),
        }
    }
}

impl Text for Summary {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![
            format!(
                "{} acquires in {} s, {} per second",
                grouped(self.count),
                decimal(self.seconds, 2),
                decimal(self.per_second, 0)
            ),
            format!(
                "{} admitted, {} rate limited, {} errors",
                view.paint.good(&grouped(self.admitted)),
                grouped(self.limited),
                grouped(self.errors)
            ),
        ];
        if self.uncounted > 0 {
            lines.push(format!(
                "{} were admitted without being counted: the table was unavailable",
                grouped(self.uncounted)
            ));
        }
        if let Some(latency) = self.latency_ms {
            let shown = [latency.p50, latency.p90, latency.p99, latency.max].map(|millis| decimal(millis, 2));
            let [p50, p90, p99, max] = shown;
            lines.push(format!(
                "latency in ms: p50 {p50}, p90 {p90}, p99 {p99}, max {max}"
            ));
        }
        let mut cost = format!(
            "{} DynamoDB calls per acquire",
            decimal(self.calls_per_acquire, 3)
        );
        if let Some(capacity) = &self.capacity_per_acquire {
            let (write, read) = (decimal(capacity.write, 3), decimal(capacity.read, 3));
            cost = format!("{cost}, {write} write units, {read} read units");
        }
        lines.push(cost);
        for (message, count) in &self.messages {
            lines.push(format!(
                "{} {message}",
                view.paint.bad(&format!("{} times:", grouped(*count)))
            ));
        }
        lines.join("\n")
    }
}
