//! Somebody tops up buckets while traffic runs. Requests and responses of the transaction are lost, late and repeated, and a
//! top-up whose response is lost is made again under the same key until there is one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use zae_limiter_schema::bucket::{BucketConfig, BucketKey, Decoded, Incarnation, TtlRule};
use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{AuditAction, IdempotencyRecord, Timestamp, Ulid};

use super::Mutation;
use super::world::{Shared, World, lock};
use crate::admin::{ChangeStore, Committed, Found, Plan, TopUpRequest, change_once};
use crate::error::Unavailable;
use crate::{Error, Result};

/// How long one transaction is waited for.
const PATIENCE: Duration = Duration::from_millis(100);

/// The idempotency records of the table.
pub(super) type Records = HashMap<Key, IdempotencyRecord>;

/// What a top-up adds to which limit, and when it was decided.
#[derive(Debug, Clone)]
pub(super) struct TopUp {
    pub(super) bucket: BucketKey,
    pub(super) limit: &'static str,
    pub(super) amount: u64,
    pub(super) decided_at: i64,
}

/// Tops up these limits of buckets that calls have made, one after the other.
pub(super) async fn top_up_buckets(
    world: Shared,
    limits: &'static [&'static str],
    mut random: fastrand::Rng,
) {
    for number in 0_u64.. {
        sleep(Duration::from_millis(random.u64(100..1_500))).await;
        let keys: Vec<_> = lock(&world).items.keys().cloned().collect();
        let Some(bucket) = random.choice(keys) else {
            continue;
        };
        let (limit, amount) = (limits[random.usize(..limits.len())], random.u64(1..=15));
        let table = SimulatedTable {
            world: world.clone(),
            bucket: bucket.clone(),
            limit,
            amount,
        };
        let request = TopUpRequest::new(limit.parse().unwrap(), amount).unwrap();
        let key = format!("top-up {number}");
        loop {
            match change_once(&table, &bucket, &key, None, &request).await {
                Ok(_) => break,
                Err(error) if error.is_unavailable() => sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{error}"),
            }
        }
        let made = lock(&world).oracle.top_ups.get(&key_of(&bucket, &key)).copied();
        if made != Some(1) {
            lock(&world).broken_promise(format!("a top-up was made {made:?} times"));
        }
    }
}

fn key_of(bucket: &BucketKey, key: &str) -> Key {
    zae_limiter_schema::keys::idempotency(&bucket.entity, key)
}

/// The table, for one top-up.
struct SimulatedTable {
    world: Shared,
    bucket: BucketKey,
    limit: &'static str,
    amount: u64,
}

fn no_response() -> Error {
    Error::Unavailable(Unavailable::NoResponse {
        operation: "TransactWriteItems",
        table: "simulated".to_owned(),
        reason: "simulated".to_owned(),
        within: PATIENCE,
    })
}

impl ChangeStore for SimulatedTable {
    async fn find(&self, bucket: &BucketKey, record: &Key) -> Result<Found> {
        let latency = lock(&self.world).between(1..=4);
        sleep(Duration::from_millis(latency)).await;
        let mut world = lock(&self.world);
        let failed = world.scenario.failed_reads;
        if world.random(failed) {
            return Err(no_response());
        }
        let item = world.items.get(bucket).map(|item| item.decode().unwrap());
        let Some(Decoded::Bucket(image)) = item else {
            // It is topped up when a call has made it again.
            return Err(no_response());
        };
        let limits = world.config.limits().clone();
        let unseen = world.scenario.mutation == Some(Mutation::TopUpWithoutRecord);
        Ok(Found {
            record: world.records.get(record).filter(|_| !unseen).cloned(),
            image: Some(image),
            config: Arc::new(BucketConfig::new(limits, None, false, TtlRule::Never)),
            now: Timestamp::from_millis(world.clock.millis()),
            incarnation: Incarnation::from_random(0),
        })
    }

    async fn commit(
        &self,
        bucket: &BucketKey,
        record: &Key,
        request: &str,
        _: AuditAction,
        plan: Plan,
    ) -> Result<Committed> {
        let made = IdempotencyRecord {
            entity: bucket.entity.clone(),
            request: request.to_owned(),
            event: Ulid::new(Timestamp::MIN, 0),
            details: plan.details.clone(),
            ttl: None,
        };
        let top_up = TopUp {
            bucket: self.bucket.clone(),
            limit: self.limit,
            amount: self.amount,
            decided_at: lock(&self.world).clock.millis(),
        };
        let (response, heard) = oneshot::channel();
        let mut response = Some(response);
        let copies = {
            let mut world = lock(&self.world);
            let scenario = world.scenario.clone();
            if world.random(scenario.lost_requests) {
                0
            } else {
                1 + u8::from(world.random(scenario.repeated))
            }
        };
        for _ in 0..copies {
            let (world, record, made, plan, top_up) = (
                self.world.clone(),
                record.clone(),
                made.clone(),
                plan.clone(),
                top_up.clone(),
            );
            let (there, lost) = {
                let mut world = lock(&world);
                let scenario = world.scenario.clone();
                let late = world.random(scenario.late);
                let there = if late {
                    world.between(80..=600)
                } else {
                    world.between(1..=4)
                };
                (there, world.random(scenario.lost_responses))
            };
            let response = response.take().filter(|_| !lost);
            tokio::spawn(async move {
                sleep(Duration::from_millis(there)).await;
                let committed = lock(&world).transact(&record, made, &plan, &top_up);
                if let Some(response) = response {
                    drop(response.send(committed));
                }
            });
        }
        let heard = timeout(PATIENCE, heard).await;
        heard.ok().and_then(Result::ok).ok_or_else(no_response)
    }

    async fn pause(&self, _: u32) -> Result<()> {
        sleep(Duration::from_millis(5)).await;
        Ok(())
    }
}

impl World {
    /// The transaction arrives: it is carried out whole, or not at all.
    fn transact(&mut self, record: &Key, made: IdempotencyRecord, plan: &Plan, top_up: &TopUp) -> Committed {
        let before = self.records.get(record);
        let checks = self.scenario.mutation != Some(Mutation::TopUpWithoutRecord);
        if let Some(before) = before.filter(|_| checks) {
            return Committed::Before(before.clone());
        }
        let statement = plan.statement.as_ref().unwrap();
        let item = self.items.get(&top_up.bucket).cloned().unwrap_or_default();
        let Ok(after) = item.apply(statement) else {
            return Committed::Changed;
        };
        self.items.insert(top_up.bucket.clone(), after.clone());
        self.records.insert(record.clone(), made.clone());
        let at = self.clock.millis();
        self.oracle.topped_up(record, top_up, &after, at);
        Committed::Done(made)
    }
}
