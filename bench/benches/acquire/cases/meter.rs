//! Calls and capacity per operation.

use tokio::runtime::Runtime;
use zae_limiter::CapacityMeter;

use super::list::OnLimiter;
use super::on_memory::{Quick, warm_up_chunks};
use super::{DYNAMODB, OURS};
use crate::results::Results;

/// The number of metered calls. As many unmetered calls warm up first.
const METERED: u64 = 200;
/// The number of metered chunk hits: many, because only one call in thousands takes the next chunk.
const METERED_HITS: u64 = 100_000;

/// Adds calls and capacity per operation to a row: measured apart, because asking for it makes requests larger.
pub(super) fn meter(
    runtime: &Runtime,
    results: &mut Results,
    case: &str,
    builder: zae_limiter::RateLimiterBuilder,
    operation: OnLimiter,
    quick: Option<Quick>,
) {
    let meter = CapacityMeter::new();
    let consumed = runtime.block_on(async {
        let limiter = builder.meter(meter.clone()).await.unwrap();
        let calls = if let Some(Quick::ChunkHit) = quick {
            warm_up_chunks(&limiter).await;
            METERED_HITS
        } else {
            for call in 0..METERED {
                operation(limiter.clone(), 0, call).await;
            }
            METERED
        };
        let before = meter.consumed();
        for call in 0..calls {
            operation(limiter.clone(), 0, METERED + call).await;
        }
        let after = meter.consumed();
        let per_call = |sum: f64| sum / calls as f64;
        (
            per_call((after.calls - before.calls) as f64),
            per_call(after.read_units - before.read_units),
            per_call(after.write_units - before.write_units),
        )
    });
    if let Some(figures) = results.find_mut(DYNAMODB, case, OURS) {
        (figures.calls, figures.rcu, figures.wcu) = (Some(consumed.0), Some(consumed.1), Some(consumed.2));
    }
}
