//! Processes that make one call and end: how large the item becomes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use zae_limiter_schema::bucket::{Attributes, Scalar};
use zae_limiter_schema::{Limit, LimitSet};

use crate::acquire::Acquire;
use crate::builder::Settings;
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::faults::Scenario;
use crate::simulation::is_long;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{Shared, World, lock};

/// A process that makes one call and ends, as a Lambda does.
async fn call_once(world: &Shared, clock: SimClock, seed: u64) -> crate::Result<()> {
    let port = Port::new(world);
    let buckets = connect(&port, clock, Settings::default(), seed);
    let acquire = Acquire::new(buckets, "shared", RESOURCE);
    acquire.consume("rpm", 1).await?.commit().await
}

#[test]
fn one_call_processes_leave_an_item_of_at_most_one_kilobyte() {
    let calls = if is_long() { 100_000 } else { 2_000 };
    let (bytes, failed) = block_on(async {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let limits = ["rpm", "tpm", "rpd", "tpd"].map(|name| Limit::per_day(name, 1_000_000_000));
        let limits = LimitSet::new(limits.into_iter().flatten()).unwrap_or_default();
        let world = Arc::new(Mutex::new(World::new(Scenario::calm(1), clock, limits)));
        let mut failed = 0;
        for seed in 0..calls {
            sleep(Duration::from_millis(100)).await;
            failed += u64::from(call_once(&world, clock, seed).await.is_err());
        }
        let world = lock(&world);
        (world.items.values().map(item_bytes).max().unwrap_or(0), failed)
    });
    // The key and the four attributes that repeat entity and resource, with UUIDs instead of the short names here.
    let with_uuids = bytes + 3 * 36;
    eprintln!("{calls} one-call processes: {bytes} bytes, {with_uuids} with UUIDs, {failed} failed");
    assert_eq!(failed, 0);
    assert!(with_uuids <= 1_024, "{with_uuids}");
}

/// The size of an item as DynamoDB counts it: names, text and flags by byte, numbers by two digits a byte and one more.
fn item_bytes(item: &Attributes) -> usize {
    let value = |value: &Scalar| match value {
        Scalar::Number(number) => number.unsigned_abs().to_string().len().div_ceil(2) + 1,
        Scalar::Text(text) => text.len(),
        Scalar::Flag(_) | Scalar::Other(_) => 1,
    };
    let own: usize = item
        .iter()
        .map(|(attr, scalar)| attr.to_string().len() + value(scalar))
        .sum();
    own + "PK".len() + "SK".len() + "ENTITY#shared".len() + "BUCKET#model".len()
}
