//! The table forgets buckets whose time to live is over.

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
