//! Many acquires, and what became of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;
use zae_limiter::{Admission, Consumed, EntityId, Error as Limiter, RateLimiter, Resource};

use super::percentiles::Percentiles;
use super::{Arguments, one};
use crate::answer::{Answer, Text};
use crate::connect::{self, explain};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{View, decimal, grouped};

/// How many different errors are told.
const MOST_MESSAGES: usize = 10;

#[derive(Debug, Serialize)]
struct Summary {
    entity_id: EntityId,
    resource: Resource,
    count: u32,
    concurrency: u32,
    admitted: u64,
    limited: u64,
    errors: u64,
    /// Of those admitted: let through because the table could not be reached.
    uncounted: u64,
    seconds: f64,
    per_second: f64,
    latency_ms: Option<Percentiles>,
    calls: u64,
    calls_per_acquire: f64,
    /// Capacity units; nothing where the endpoint does not tell.
    capacity_per_acquire: Option<PerAcquire>,
    messages: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct PerAcquire {
    read: f64,
    write: f64,
}

/// What one worker has seen.
#[derive(Debug, Default)]
struct Tally {
    admitted: u64,
    limited: u64,
    uncounted: u64,
    unavailable: u64,
    errors: BTreeMap<String, u64>,
    latencies: Vec<Duration>,
}

impl Tally {
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

    fn failed(&mut self, error: &Limiter) {
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

pub(super) async fn run(arguments: Arguments, count: u32, context: &Context) -> Result<Answer> {
    let (limiter, meter) = connect::metered_limiter(&context.place, &context.name()?).await?;
    let before = meter.consumed();
    let arguments = Arc::new(arguments);
    let next = Arc::new(AtomicU32::new(0));
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..arguments.concurrency.get().min(count) {
        workers.spawn(work(arguments.clone(), limiter.clone(), next.clone(), count));
    }
    let mut tally = Tally::default();
    while let Some(worked) = workers.join_next().await {
        tally.add(worked.map_err(|error| Error::Bug {
            what: "a worker ended early".to_owned(),
            source: error.into(),
        })?);
    }
    let took = started.elapsed();
    one::settle(&limiter).await?;
    let exit = tally.exit();
    let summary = Summary::of(&arguments, count, tally, took, before, meter.consumed());
    Ok(Answer::of(summary).with_exit(exit))
}

async fn work(arguments: Arc<Arguments>, limiter: RateLimiter, next: Arc<AtomicU32>, count: u32) -> Tally {
    let mut tally = Tally::default();
    while next.fetch_add(1, Ordering::Relaxed) < count {
        let asked = Instant::now();
        let answer = arguments.acquire(&limiter).await;
        tally.latencies.push(asked.elapsed());
        match answer {
            Ok(mut lease) => {
                tally.admitted += 1;
                tally.uncounted += u64::from(lease.admission() != Admission::Counted);
                arguments.adjust(&mut lease);
                if let Err(error) = lease.commit().await {
                    tally.failed(&error);
                }
            }
            Err(Limiter::RateLimitExceeded(_)) => tally.limited += 1,
            Err(error) => tally.failed(&error),
        }
    }
    tally
}

impl Summary {
    fn of(
        arguments: &Arguments,
        count: u32,
        tally: Tally,
        took: Duration,
        before: Consumed,
        after: Consumed,
    ) -> Self {
        let calls = after.calls - before.calls;
        let each = |total: f64| total / f64::from(count);
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let calls_per_acquire = each(calls as f64);
        let (read, write) = (
            after.read_units - before.read_units,
            after.write_units - before.write_units,
        );
        // Every answer of a table has cost something.
        let told = calls == 0 || read + write > 0.0;
        let capacity = told.then(|| PerAcquire {
            read: each(read),
            write: each(write),
        });
        Self {
            entity_id: arguments.entity.clone(),
            resource: arguments.resource.clone(),
            count,
            concurrency: arguments.concurrency.get(),
            admitted: tally.admitted,
            limited: tally.limited,
            errors: tally.errors.values().sum(),
            uncounted: tally.uncounted,
            seconds: took.as_secs_f64(),
            per_second: f64::from(count) / took.as_secs_f64().max(f64::EPSILON),
            latency_ms: Percentiles::of(tally.latencies),
            calls,
            calls_per_acquire,
            capacity_per_acquire: capacity,
            messages: tally.errors.into_iter().take(MOST_MESSAGES).collect(),
        }
    }
}

impl Text for Summary {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![
            format!(
                "{} acquires in {} s, {} a second",
                grouped(self.count),
                decimal(self.seconds, 2),
                decimal(self.per_second, 0)
            ),
            format!(
                "{} admitted, {} limited, {} errors",
                view.paint.good(&grouped(self.admitted)),
                grouped(self.limited),
                grouped(self.errors)
            ),
        ];
        if self.uncounted > 0 {
            lines.push(format!(
                "{} of those admitted were not counted: the table could not be reached",
                grouped(self.uncounted)
            ));
        }
        if let Some(latency) = self.latency_ms {
            let shown = [latency.p50, latency.p90, latency.p99, latency.max].map(|millis| decimal(millis, 2));
            let [p50, p90, p99, max] = shown;
            lines.push(format!(
                "latency in ms: half {p50}, 90 % {p90}, 99 % {p99}, longest {max}"
            ));
        }
        let mut cost = format!("{} calls an acquire", decimal(self.calls_per_acquire, 3));
        if let Some(capacity) = &self.capacity_per_acquire {
            let (write, read) = (decimal(capacity.write, 3), decimal(capacity.read, 3));
            cost = format!("{cost}, {write} write and {read} read units");
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
