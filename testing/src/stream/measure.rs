//! What a function's packed binary takes: time, memory, calls.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Cloud, Invoke as _, Lambda};

/// The binary that `make functions` has packed for this machine, or the one that `{FUNCTION}_BINARY` names.
///
/// Never one of this build, which is not what Lambda runs.
pub fn packed(function: &str) -> PathBuf {
    let variable = format!("{}_BINARY", function.to_uppercase());
    let architecture = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x86_64"
    };
    let packed = crate::workspace().join(format!(
        "target/functions/{architecture}/built/zae-limiter-{function}/bootstrap"
    ));
    let binary = std::env::var_os(&variable).map_or(packed, PathBuf::from);
    assert!(
        binary.is_file(),
        "{} is not there: run make functions, or set {variable}",
        binary.display()
    );
    binary.canonicalize().unwrap()
}

/// What some batches took.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Records a second, with this process playing every service.
    pub records_per_second: f64,
    /// Processor time of the function alone for one batch.
    pub processor_time: Duration,
    /// The most memory it has had resident, in bytes.
    pub peak_memory: u64,
    /// Calls to services for one batch, rounded up.
    pub calls: usize,
}

impl Measured {
    /// What every invocation must stay below, in bytes.
    pub const MAX_MEMORY: u64 = 64_000_000;

    /// Delivers the batches one by one to a process that has started, each of which must succeed whole.
    ///
    /// Panics if one does not, and if the process needs [`MAX_MEMORY`](Self::MAX_MEMORY).
    pub async fn of(lambda: &Lambda<'_>, cloud: &Cloud, records: u32, batches: &[String]) -> Self {
        let whole = r#"{"batchItemFailures":[]}"#;
        lambda.invoke(r#"{"Records":[]}"#).await.unwrap();
        let (calls, processor) = (cloud.calls(), lambda.processor_time());
        let started = Instant::now();
        for batch in batches {
            assert_eq!(lambda.invoke(batch).await.unwrap(), whole);
        }
        let took = started.elapsed();
        let count = u32::try_from(batches.len()).unwrap();
        let measured = Self {
            records_per_second: f64::from(records * count) / took.as_secs_f64(),
            processor_time: (lambda.processor_time() - processor) / count,
            peak_memory: lambda.peak_memory(),
            calls: (cloud.calls() - calls).div_ceil(batches.len()),
        };
        assert!(
            measured.peak_memory > 0,
            "this system tells how much memory a process has"
        );
        assert!(
            measured.peak_memory < Self::MAX_MEMORY,
            "the function had {} bytes resident, and may have no more than {}",
            measured.peak_memory,
            Self::MAX_MEMORY
        );
        measured
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.0} records/s, {} ms of processor time a batch, peak {:.1} MB, {} calls",
            self.records_per_second,
            self.processor_time.as_millis(),
            f64::from(u32::try_from(self.peak_memory / 1_000).unwrap_or(u32::MAX)) / 1_000.0,
            self.calls
        )
    }
}

/// Restarts the function `times` times. Returns the time from each start to the first poll, shortest first.
pub async fn starts(lambda: &Lambda<'_>, times: usize) -> Vec<Duration> {
    for _ in 0..times {
        lambda.recycle();
        lambda.invoke(r#"{"Records":[]}"#).await.unwrap();
    }
    let mut starts = lambda.starts();
    starts.sort();
    starts
}
