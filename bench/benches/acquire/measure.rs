//! Running an operation for a while and counting what it takes. Clients run on one thread, so that CPU time and allocations are
//! theirs alone; servers have threads of their own.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How long one round runs.
const ROUND: Duration = Duration::from_millis(400);
/// Rounds of all contestants in turn; the median counts, and their spread is the noise.
pub(crate) const ROUNDS: usize = 3;

/// One operation, by the number of its task and of its call in that task.
pub(crate) trait Operation: Clone + Send + 'static {
    fn call(&self, task: usize, call: u64) -> impl Future<Output = ()> + Send;
}

impl<F, Made> Operation for F
where
    F: Fn(usize, u64) -> Made + Clone + Send + 'static,
    Made: Future<Output = ()> + Send,
{
    fn call(&self, task: usize, call: u64) -> impl Future<Output = ()> + Send {
        self(task, call)
    }
}

/// What one operation takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// Per second.
    pub(crate) rate: f64,
    /// In microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// CPU time in microseconds, of the client's thread.
    pub(crate) cpu: Option<f64>,
    pub(crate) allocations: Option<f64>,
    pub(crate) instructions: Option<f64>,
    pub(crate) calls: Option<f64>,
    pub(crate) rcu: Option<f64>,
    pub(crate) wcu: Option<f64>,
    /// The spread of the rounds' rates, as a part of their median.
    pub(crate) noise: f64,
}

impl Figures {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "rate": round(self.rate), "p50_us": round(self.p50), "p99_us": round(self.p99), "cpu_us": self.cpu.map(round),
            "allocations": self.allocations.map(round), "instructions": self.instructions.map(round),
            "calls": self.calls.map(round), "rcu": self.rcu.map(round), "wcu": self.wcu.map(round), "noise": round(self.noise),
        })
    }

    /// Combines rounds: medians, and the spread of the rates.
    pub(crate) fn of(rounds: &[Self]) -> Self {
        let of = |field: fn(&Self) -> f64| median(rounds.iter().map(field).collect());
        let any = |field: fn(&Self) -> Option<f64>| {
            let all: Vec<f64> = rounds.iter().filter_map(field).collect();
            (!all.is_empty()).then(|| median(all))
        };
        let rate = of(|figures| figures.rate);
        let rates = || rounds.iter().map(|figures| figures.rate);
        let spread = rates().fold(0.0, f64::max) - rates().fold(f64::INFINITY, f64::min);
        Self {
            rate,
            p50: of(|figures| figures.p50),
            p99: of(|figures| figures.p99),
            cpu: any(|figures| figures.cpu),
            allocations: any(|figures| figures.allocations),
            instructions: any(|figures| figures.instructions),
            calls: any(|figures| figures.calls),
            rcu: any(|figures| figures.rcu),
            wcu: any(|figures| figures.wcu),
            noise: if rate > 0.0 { spread / rate } else { 0.0 },
        }
    }
}

pub(crate) fn round(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// One round of an operation by `tasks` concurrent tasks. Operations that take less than a microsecond are timed in groups.
pub(crate) fn one_round(runtime: &Runtime, tasks: usize, group: u32, operation: &impl Operation) -> Figures {
    let mut times = Vec::new();
    let (cpu, started) = (cpu_time(), Instant::now());
    let allocated = allocation_counter::measure(|| {
        times = runtime.block_on(drive(tasks, group, operation));
    });
    let (cpu, took) = (cpu_time().saturating_sub(cpu), started.elapsed());
    times.sort_unstable();
    let operations = (times.len() as f64 * f64::from(group)).max(1.0);
    let at = |part: f64| {
        let index = (times.len() as f64 * part) as usize;
        let time = times.get(index.min(times.len().saturating_sub(1)));
        time.map_or(0.0, |nanos| *nanos as f64 / 1_000.0 / f64::from(group))
    };
    Figures {
        rate: operations / took.as_secs_f64(),
        p50: at(0.5),
        p99: at(0.99),
        cpu: Some(cpu.as_secs_f64() * 1e6 / operations),
        allocations: Some(allocated.count_total as f64 / operations),
        ..Figures::default()
    }
}

async fn drive(tasks: usize, group: u32, operation: &impl Operation) -> Vec<u64> {
    let end = Instant::now() + ROUND;
    let mut running = Vec::new();
    for task in 0..tasks {
        let operation = operation.clone();
        running.push(tokio::spawn(async move {
            let (mut times, mut call) = (Vec::with_capacity(1 << 14), 0);
            loop {
                let started = Instant::now();
                if started >= end {
                    return times;
                }
                for _ in 0..group {
                    operation.call(task, call).await;
                    call += 1;
                }
                times.push(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
        }));
    }
    let mut times = Vec::new();
    for task in running {
        times.extend(task.await.unwrap());
    }
    times
}
