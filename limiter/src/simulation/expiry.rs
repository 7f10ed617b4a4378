//! The table forgets buckets whose TTL has expired, and somebody deletes buckets.

use std::time::Duration;

use zae_limiter_schema::bucket::Attr;

use super::world::{Shared, lock};

/// Deletes what has expired, a while after it has, as DynamoDB does.
pub(super) async fn forget_expired(world: Shared) {
    loop {
        let pause = lock(&world).between(200..=2_000);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let mut world = lock(&world);
        let at = world.clock.millis();
        let expired: Vec<_> = world
            .items
            .iter()
            .filter(|(_, item)| {
                item.number(&Attr::ExpiresAt)
                    .is_some_and(|ttl| ttl < i128::from(at / 1000))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in expired {
            world.oracle.expired(&key, at);
            world.forget(&key);
        }
    }
}

/// Somebody deletes buckets, full or not; a process that goes on calling creates them again.
pub(super) async fn delete_buckets(world: Shared) {
    loop {
        let pause = lock(&world).between(500..=4_000);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let mut world = lock(&world);
        let last = world.items.len().saturating_sub(1) as u64;
        let number = usize::try_from(world.between(0..=last)).unwrap_or(0);
        if let Some(key) = world.items.keys().nth(number).cloned() {
            world.delete(&key);
        }
    }
}
