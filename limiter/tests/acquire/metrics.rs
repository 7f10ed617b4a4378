//! The metrics, by a recorder that remembers everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit, with_local_recorder,
};
use zae_limiter::metrics::{METRICS, MetricKind};
use zae_limiter::{BreakerState, CapacityMeter, ConfigLevel, Mode, OnUnavailable};

use crate::acquire::support::*;

/// A metric's kind, name and labels, and what was recorded: a counter's sum, a gauge's last value, a histogram's values.
type Samples = Arc<Mutex<BTreeMap<Sample, Vec<f64>>>>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sample {
    name: String,
    kind: &'static str,
    labels: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default)]
struct Memory {
    samples: Samples,
    described: Arc<Mutex<BTreeSet<String>>>,
}

/// One series.
struct Series {
    sample: Sample,
    samples: Samples,
}

impl Series {
    fn record(&self, change: impl FnOnce(&mut Vec<f64>)) {
        change(
            self.samples
                .lock()
                .unwrap()
                .entry(self.sample.clone())
                .or_default(),
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
impl CounterFn for Series {
    fn increment(&self, value: u64) {
        self.record(|values| {
            let sum = values.pop().unwrap_or(0.0);
            values.push(sum + value as f64);
        });
    }

    fn absolute(&self, value: u64) {
        self.record(|values| *values = vec![value as f64]);
    }
}

impl GaugeFn for Series {
    fn increment(&self, _: f64) {
        panic!("a gauge that is not set")
    }

    fn decrement(&self, _: f64) {
        panic!("a gauge that is not set")
    }

    fn set(&self, value: f64) {
        self.record(|values| *values = vec![value]);
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        Series::record(self, |values| values.push(value));
    }
}

impl Memory {
    fn series(&self, kind: &'static str, key: &Key) -> Arc<Series> {
        let labels = key
            .labels()
            .map(|label| (label.key().to_owned(), label.value().to_owned()));
        Arc::new(Series {
            sample: Sample {
                name: key.name().to_owned(),
                kind,
                labels: labels.collect(),
            },
            samples: self.samples.clone(),
        })
    }

    fn describe(&self, name: &KeyName) {
        self.described.lock().unwrap().insert(name.as_str().to_owned());
    }

    /// What was recorded under a name and these values of labels.
    fn values(&self, name: &str, labels: &[&str]) -> Vec<f64> {
        let samples = self.samples.lock().unwrap();
        let found = samples.iter().find(|(sample, _)| {
            let values = sample.labels.iter().map(|(_, value)| value.as_str());
            sample.name == format!("zae_limiter_{name}") && values.eq(labels.iter().copied())
        });
        found.map(|(_, values)| values.clone()).unwrap_or_default()
    }
}

impl Recorder for Memory {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series("counter", key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.series("gauge", key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series("histogram", key))
    }
}

/// Runs a test with a recorder of its own.
fn recorded(test: impl AsyncFnOnce()) -> Memory {
    let memory = Memory::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    with_local_recorder(&memory, || runtime.block_on(test()));
    memory
}

/// A grant of two, two refusals, a retry, a call in each other mode, and 20 admissions during an outage.
async fn story() {
    let stage = Stage::new();
    let builder = stage.builder().default_limits(limits(&["rpm:2", "tpm:100"]));
    let limiter = builder
        .on_unavailable(OnUnavailable::Allow)
        .meter(CapacityMeter::new())
        .await
        .unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let one = take(&limiter, "user-1", "tpm", 1);
    let other = take(&limiter, "user-1", "tpm", 1);
    let (one, other) = tokio::join!(one, other);
    one.and(other).unwrap();
    exceeded(take(&limiter, "user-1", "rpm", 5).await.unwrap_err());
    exceeded(take(&limiter, "user-2", "tpm", 101).await.unwrap_err());
    stage.wire.plan("UpdateItem", [Fault::Conflict]);
    take(&limiter, "user-1", "tpm", 1).await.unwrap();
    let mode = async |resource: &str, mode| {
        let level = ConfigLevel::Resource(resource.parse().unwrap());
        limiter.repository().set_mode(&level, mode).await.unwrap();
        drop(
            limiter
                .acquire("user-1", resource)
                .consume("rpm", 5)
                .commit()
                .await,
        );
    };
    mode("observed", Mode::Observe).await;
    mode("bypassed", Mode::Bypass).await;
    mode("disabled", Mode::Disabled).await;
    stage.wire.always(Fault::LostRequest);
    for _ in 0..20 {
        take(&limiter, "user-1", "tpm", 1).await.unwrap();
    }
    assert_eq!(limiter.stats().breaker, BreakerState::Open);
    limiter.publish_metrics();
}

#[test]
fn a_refusal_is_recorded_for_the_resource_that_refused() {
    let memory = recorded(async || {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:2"]).await;
        let call = limiter.acquire("user-1", GPT).consume("rpm", 1);
        exceeded(call.and("budget").consume("rpm", 3).await.unwrap_err());
    });
    assert_eq!(memory.values("refusals_total", &["budget", "rpm"]), [1.0]);
    assert!(memory.values("refusals_total", &[GPT, "rpm"]).is_empty());
    assert_eq!(memory.values("acquires_total", &[GPT, "refused"]), [1.0]);
}

#[test]
fn the_list_has_every_metric_with_its_kind_and_labels() {
    let memory = recorded(story);
    let recorded: BTreeSet<_> = memory
        .samples
        .lock()
        .unwrap()
        .keys()
        .map(|sample| {
            let labels: Vec<_> = sample.labels.iter().map(|(name, _)| name.clone()).collect();
            (sample.name.clone(), sample.kind, labels)
        })
        .collect();
    let listed: BTreeSet<_> = METRICS
        .iter()
        .map(|metric| {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
                other => panic!("{other:?}"),
            };
            let labels = metric.labels.iter().map(ToString::to_string).collect();
            (metric.name.to_owned(), kind, labels)
        })
        .collect();
    assert_eq!(recorded, listed);
}

#[test]
fn metrics_say_what_happened_and_never_who() {
    let memory = recorded(story);
    assert_eq!(memory.values("acquires_total", &[GPT, "granted"]), [4.0]);
    assert_eq!(memory.values("acquires_total", &[GPT, "refused"]), [2.0]);
    assert_eq!(memory.values("acquires_total", &[GPT, "uncounted"]), [20.0]);
    assert_eq!(memory.values("refusals_total", &[GPT, "rpm"]), [1.0]);
    assert_eq!(memory.values("refusals_total", &[GPT, "tpm"]), [1.0]);
    for outcome in ["observed", "bypassed", "disabled"] {
        assert_eq!(
            memory.values("acquires_total", &[outcome, outcome]),
            [1.0],
            "{outcome}"
        );
    }
    assert_eq!(
        memory.values("observed_refusals_total", &["observed", "rpm"]),
        [1.0]
    );
    let admission = "allowed_while_unavailable";
    assert_eq!(memory.values("degraded_admissions_total", &[admission]), [20.0]);
    assert_eq!(memory.values("acquire_duration_seconds", &["granted"]).len(), 4);
    let waited = memory.values("acquire_duration_seconds", &["uncounted"]);
    assert!(waited[0] > 0.0 && waited[0] < 1.1, "{waited:?} s");
    assert_eq!(memory.values("acquires_per_write", &[]), [1.0, 2.0, 1.0]);
    assert_eq!(memory.values("bucket_writes_total", &["done"]), [3.0]);
    assert_eq!(memory.values("bucket_writes_total", &["conflict"]), [1.0]);
    assert!(memory.values("write_retries_total", &[])[0] >= 1.0);
    assert_eq!(memory.values("breaker_open", &[TABLE]), [1.0]);
    assert_eq!(memory.values("breaker_opened_total", &[]), [1.0]);
    assert_eq!(memory.values("buckets", &[TABLE]), [5.0]);
    assert!(memory.values("table_calls_total", &[])[0] > 3.0);
    assert!(memory.values("config_cache_hits_total", &[])[0] > 0.0);
    for sample in memory.samples.lock().unwrap().keys() {
        let values = sample.labels.iter().map(|(_, value)| value);
        assert!(values.clone().all(|value| !value.contains("user")), "{sample:?}");
    }
}

#[test]
fn states_are_recorded_once_a_second_while_there_are_acquires() {
    let memory = Memory::default();
    let seen = memory.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    with_local_recorder(&memory, || {
        runtime.block_on(async {
            let stage = Stage::new();
            let limiter = stage.limiter(&["rpm:10"]).await;
            take(&limiter, "user-1", "rpm", 1).await.unwrap();
            assert_eq!(seen.values("buckets", &[TABLE]), [1.0]);
            take(&limiter, "user-2", "rpm", 1).await.unwrap();
            assert_eq!(seen.values("buckets", &[TABLE]), [1.0], "not yet");
            advance(secs(1)).await;
            take(&limiter, "user-3", "rpm", 1).await.unwrap();
            assert_eq!(seen.values("buckets", &[TABLE]), [3.0]);
            assert!(
                seen.values("table_calls_total", &[]).is_empty(),
                "without a meter"
            );
        });
    });
}

#[test]
fn every_metric_is_described() {
    let memory = Memory::default();
    with_local_recorder(&memory, zae_limiter::metrics::describe);
    let names = METRICS.iter().map(|metric| metric.name.to_owned());
    assert_eq!(*memory.described.lock().unwrap(), names.collect());
}
