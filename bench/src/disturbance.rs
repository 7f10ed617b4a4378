//! Detects rounds that lost CPU time to other virtual machines, and repeats them.

use std::time::{Duration, Instant};

/// A round is repeated if more than this share of CPU time was stolen.
const MOST_STOLEN: f64 = 0.03;
/// No round is repeated after repetitions have taken this long.
const MOST_TIME: Duration = Duration::from_mins(2);

/// Repeats disturbed rounds of every contestant.
#[derive(Debug, Default)]
pub struct Disturbance {
    /// Rounds that do not count.
    pub repeated: u32,
    /// Disturbed rounds that count, because there was no time left.
    pub kept: u32,
    took: Duration,
}

impl Disturbance {
    /// Runs a round until one is undisturbed, or the time for repetitions is used up.
    pub fn undisturbed<T>(&mut self, mut round: impl FnMut() -> T) -> T {
        loop {
            let (started, before) = (Instant::now(), ProcessorTime::now());
            let result = round();
            let stolen = before
                .zip(ProcessorTime::now())
                .map(|(before, after)| after.stolen_since(before));
            if stolen.is_none_or(|stolen| stolen <= MOST_STOLEN) {
                return result;
            }
            if self.took > MOST_TIME {
                self.kept += 1;
                return result;
            }
            self.repeated += 1;
            self.took += started.elapsed();
        }
    }
}

/// Time of all processors since the machine started.
#[derive(Debug, Clone, Copy)]
struct ProcessorTime {
    all: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// Nothing where the system does not count it.
    fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of the first two.
        let times: Vec<u64> = stat
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .take(8)
            .map_while(|time| time.parse().ok())
            .collect();
        Some(Self {
            all: times.iter().sum(),
            stolen: *times.get(7)?,
        })
    }

    fn stolen_since(self, before: Self) -> f64 {
        let (all, stolen) = (
            self.all.saturating_sub(before.all),
            self.stolen.saturating_sub(before.stolen),
        );
        #[allow(clippy::cast_precision_loss, reason = "a share needs no more precision")]
        let share = stolen as f64 / all.max(1) as f64;
        share
    }
}
