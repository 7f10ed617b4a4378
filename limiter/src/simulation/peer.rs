//! The Python peer on the same bucket: speculative write, slow path, unclamped refunds.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::sleep;
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Attr, Attributes, BucketKey, Decoded, Field, Image, Scalar};

use super::world::{Shared, lock};

pub(super) struct Peer {
    pub(super) world: Shared,
    pub(super) key: BucketKey,
    pub(super) random: fastrand::Rng,
}

type Amounts = BTreeMap<LimitName, i128>;

impl Peer {
    pub(super) async fn run(mut self) {
        loop {
            let think = self.random.u64(20..=120);
            sleep(Duration::from_millis(think)).await;
            let amounts: Amounts = [
                ("rpm", 1_000),
                ("tpm", i128::from(self.random.u32(1..=8)) * 1_000),
            ]
            .into_iter()
            .filter_map(|(limit, amount)| Some((LimitName::parse(limit).ok()?, amount)))
            .collect();
            if self.acquire(&amounts).await && self.random.u32(0..3) == 0 {
                let back: Amounts = amounts
                    .iter()
                    .map(|(limit, amount)| (limit.clone(), -amount))
                    .collect();
                self.at_the_table(|item| add(item, &back)).await;
            }
        }
    }

    async fn latency(&mut self) {
        let millis = self.random.u64(1..=4);
        sleep(Duration::from_millis(millis)).await;
    }

    /// Amounts the item if the function does; the oracle hears of it.
    async fn at_the_table(&mut self, change: impl FnOnce(&Attributes) -> Option<Attributes>) -> bool {
        self.latency().await;
        let changed = {
            let mut world = lock(&self.world);
            let at = world.clock.millis();
            let before = world.items.get(&self.key).cloned();
            let after = before.as_ref().and_then(change);
            if let Some(after) = &after {
                world.oracle.peer_applied(&self.key, before.as_ref(), after, at);
                world.items.insert(self.key.clone(), after.clone());
            }
            after.is_some()
        };
        self.latency().await;
        changed
    }

    async fn acquire(&mut self, amounts: &Amounts) -> bool {
        let speculative = |item: &Attributes| enough(item, amounts).then(|| add(item, amounts)).flatten();
        if self.at_the_table(speculative).await {
            return true;
        }
        self.latency().await;
        let Some(seen) = lock(&self.world).items.get(&self.key).and_then(image) else {
            return false;
        };
        let read_at = lock(&self.world).clock.millis();
        let elapsed = i128::from(read_at - seen.refilled_at.millis()).max(0);
        let mut refills = Amounts::new();
        for (limit, on_item) in &seen.limits {
            let params = on_item.token_bucket.params;
            let earned = elapsed * params.amount() / params.period();
            let level = if earned > 0 {
                params.burst().min(on_item.token_bucket.tokens + earned)
            } else {
                on_item.token_bucket.tokens
            };
            if level < amounts.get(limit).copied().unwrap_or(0) {
                return false;
            }
            refills.insert(limit.clone(), level - on_item.token_bucket.tokens);
        }
        let commit_at = lock(&self.world).clock.millis();
        let rf = i128::from(seen.refilled_at.millis());
        let normal = |item: &Attributes| {
            let floors = refills.iter().all(|(limit, refill)| {
                let floor = amounts.get(limit).copied().unwrap_or(0) - refill;
                floor <= 0 || tokens(item, limit) >= floor
            });
            if item.number(&Attr::RefilledAt) != Some(rf) || !floors {
                return None;
            }
            let mut after = add(item, amounts)?;
            for (limit, refill) in &refills {
                let level = tokens(&after, limit) + refill;
                after.insert(Attr::Limit(limit.clone(), Field::Tokens), Scalar::Number(level));
            }
            after.insert(Attr::RefilledAt, Scalar::Number(i128::from(commit_at)));
            Some(after)
        };
        if self.at_the_table(normal).await {
            return true;
        }
        self.at_the_table(|item| enough(item, amounts).then(|| add(item, amounts)).flatten())
            .await
    }
}

fn tokens(item: &Attributes, limit: &LimitName) -> i128 {
    item.number(&Attr::Limit(limit.clone(), Field::Tokens))
        .unwrap_or(i128::MIN / 2)
}

fn enough(item: &Attributes, amounts: &Amounts) -> bool {
    amounts
        .iter()
        .all(|(limit, amount)| tokens(item, limit) >= *amount)
}

fn add(item: &Attributes, amounts: &Amounts) -> Option<Attributes> {
    let mut after = item.clone();
    for (limit, amount) in amounts {
        let consumed = Attr::Limit(limit.clone(), Field::Consumed);
        let total = item.number(&consumed)? + amount;
        after.insert(
            Attr::Limit(limit.clone(), Field::Tokens),
            Scalar::Number(tokens(item, limit) - amount),
        );
        after.insert(consumed, Scalar::Number(total));
    }
    Some(after)
}

fn image(item: &Attributes) -> Option<Image> {
    match item.decode() {
        Ok(Decoded::Bucket(image)) => Some(image),
        _ => None,
    }
}
