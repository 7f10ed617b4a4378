//! One item, its clients, and the events between them.

use std::collections::BTreeMap;

use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketConfig, BucketKey, BucketWrite, ClientTag, Decoded, Evaluation, Image,
    Incarnation, Slot, SlotBefore, SlotIndex, Statement, TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use crate::common::{entity, resource};

/// Clocks differ from the true time by at most this many milliseconds, either way.
pub(super) const SKEW: i64 = 1_000;

/// Numbers that follow from a seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From `least` to `most`.
    pub(super) fn between(&mut self, least: i64, most: i64) -> i64 {
        let width = u64::try_from(most - least + 1).unwrap();
        least + i64::try_from(self.next() % width).unwrap()
    }

    pub(super) fn percent(&mut self, chance: i64) -> bool {
        self.between(1, 100) <= chance
    }

    pub(super) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(len).unwrap()).unwrap()
    }

    /// How long a message is under way. A few are late.
    pub(super) fn latency(&mut self) -> i64 {
        if self.percent(2) {
            self.between(100, 5_000)
        } else {
            self.between(1, 30)
        }
    }
}

/// Events by time, in the order in which they were added.
pub(super) struct Events<E> {
    queue: BTreeMap<(i64, u64), E>,
    added: u64,
    pub(super) now: i64,
}

impl<E> Events<E> {
    pub(super) const fn new(now: i64) -> Self {
        Self {
            queue: BTreeMap::new(),
            added: 0,
            now,
        }
    }

    pub(super) fn after(&mut self, millis: i64, event: E) {
        self.added += 1;
        self.queue.insert((self.now + millis.max(0), self.added), event);
    }

    pub(super) fn next(&mut self, until: i64) -> Option<E> {
        let ((at, _), event) = self.queue.pop_first()?;
        self.now = at;
        (at <= until).then_some(event)
    }
}

fn key() -> BucketKey {
    BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    }
}

/// The item as the server has it.
pub(super) struct Table {
    pub(super) config: BucketConfig,
    pub(super) item: Attributes,
    writes: u32,
    pub(super) problems: Vec<String>,
}

impl Table {
    pub(super) fn new(limits: &[&str]) -> Self {
        let limits = limits.iter().map(|text| text.parse::<Limit>().unwrap());
        let limits = LimitSet::new(limits).unwrap();
        Self {
            config: BucketConfig::new(limits, None, false, TtlRule::from_multiplier(7)),
            item: Attributes::default(),
            writes: 0,
            problems: Vec::new(),
        }
    }

    pub(super) fn image(&self) -> Option<Image> {
        self.item.iter().next()?;
        match self.item.decode().unwrap() {
            Decoded::Bucket(image) => Some(image),
            Decoded::Stub => panic!("nobody leaves a stub"),
        }
    }

    /// What a client decides by the image that it has.
    pub(super) fn plan(
        &mut self,
        client: usize,
        evaluation: &Evaluation<'_>,
        batch: &Batch,
    ) -> Option<BucketWrite> {
        let slot = self.slot(client);
        evaluation.write(
            key(),
            batch,
            slot,
            Incarnation::from_random(u64::from(self.writes)),
        )
    }

    /// The write of a client that only removes limits.
    pub(super) fn removal(&mut self, client: usize, evaluation: &Evaluation<'_>) -> Option<BucketWrite> {
        evaluation.removal(key(), self.slot(client))
    }

    fn slot(&mut self, client: usize) -> Slot {
        self.writes += 1;
        Slot {
            index: SlotIndex::new(u8::try_from(client % 16).unwrap()),
            before: SlotBefore::Any,
            number: ClientTag::from_random(u128::try_from(client).unwrap())
                .number(i128::from(self.writes), 0),
        }
    }

    /// True if the write happened. The same statement can never happen again.
    pub(super) fn send(&mut self, statement: &Statement) -> bool {
        match self.item.apply(statement) {
            Ok(after) => {
                if after.apply(statement).is_ok() {
                    self.problems.push("a write happened twice".to_owned());
                }
                self.item = after;
                true
            }
            Err(_) => false,
        }
    }

    /// Deletes the item if it has expired.
    pub(super) fn expire(&mut self, now: i64) -> Option<Image> {
        let image = self.image()?;
        let expired = image.expires_at.is_some_and(|seconds| seconds < now / 1000);
        expired.then(|| {
            self.item = Attributes::default();
            image
        })
    }

    pub(super) fn problem(&mut self, at: i64, text: &str) {
        self.problems
            .push(format!("{}: {text}", Timestamp::from_millis(at)));
    }
}
