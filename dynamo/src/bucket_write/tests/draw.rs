//! Random items and writes.

use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketWrite, Decoded, Demand, Evaluation, Field, Incarnation,
    Params, Scalar, Slot, SlotBefore, SlotIndex, TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use super::{NOW, key};

const NAMES: [&str; 3] = ["rpm", "tpm", "per-day.v2"];

/// What an adjustment of the peer leaves where a bucket has expired.
pub(super) fn stub(item: &Attributes) -> Attributes {
    let mut stub = Attributes::default();
    for (attr, value) in item.iter() {
        if matches!(attr, Attr::Limit(_, Field::Tokens | Field::Consumed)) {
            stub.insert(attr.clone(), value.clone());
        }
    }
    stub
}

/// Random items and writes, the same for a seed.
pub(super) struct Draw(pub(super) fastrand::Rng);

impl Draw {
    pub(super) fn one_in(&mut self, parts: u32) -> bool {
        self.0.u32(0..parts) == 0
    }

    pub(super) fn number(&mut self, range: std::ops::RangeInclusive<i64>) -> i128 {
        i128::from(self.0.i64(range))
    }

    pub(super) fn limits(&mut self) -> Vec<Limit> {
        let count = self.0.usize(1..=NAMES.len());
        let limit = |draw: &mut Self, name| {
            let (capacity, extra) = (draw.0.u64(1..=20), draw.0.u64(0..=10));
            let period = draw.0.choice([1, 7, 60, 86_400]).unwrap_or(1);
            Limit::custom(name, capacity, capacity + extra, draw.0.u64(1..=30), period).unwrap()
        };
        NAMES
            .into_iter()
            .take(count)
            .map(|name| limit(self, name))
            .collect()
    }

    pub(super) fn terms(&mut self, limits: Vec<Limit>) -> BucketConfig {
        let parent = self.one_in(3).then(|| "org".parse().unwrap());
        let ttl = TtlRule::from_multiplier(if self.one_in(3) { 0 } else { 7 });
        let cascade = parent.is_some();
        BucketConfig::new(LimitSet::new(limits).unwrap(), parent, cascade, ttl)
    }

    /// A bucket with these parameters as a table may have it.
    pub(super) fn item(&mut self, terms: &BucketConfig) -> Attributes {
        let mut item = Attributes::default();
        let number = Scalar::Number;
        item.insert(
            Attr::RefilledAt,
            number(i128::from(NOW) - self.number(0..=90_000)),
        );
        let etag = self.0.u32(0..8);
        match etag {
            0 => {}
            1 => item.insert(Attr::Etag, Scalar::Text("ffffffffff1.AAAAAA".into())),
            _ => item.insert(Attr::Etag, Scalar::Text(terms.etag("BBBBBB").as_str().into())),
        }
        if let Some(parent) = terms.parent() {
            item.insert(Attr::Parent, Scalar::Text(parent.as_str().into()));
        }
        item.insert(Attr::Cascade, Scalar::Flag(terms.cascade()));
        for (slot, age) in [
            ("o_0", 5_000),
            ("o_a", 90_000),
            ("o_old0", 90_000),
            ("o_new0", 10_000),
        ] {
            if etag != 0 && self.one_in(2) {
                item.insert(Attr::parse(slot), number(i128::from(NOW) - age));
            }
        }
        if self.one_in(2) {
            item.insert(
                Attr::ExpiresAt,
                number(i128::from(NOW / 1000) + self.number(-100..=100_000)),
            );
        }
        if etag != 0 && self.one_in(2) {
            item.insert(Attr::Events, number(self.number(0..=1000)));
        }
        if self.one_in(8) {
            item.insert(Attr::Other("something".into()), Scalar::Text("else".into()));
        }
        for limit in terms.limits() {
            self.put_limit(&mut item, limit);
        }
        item
    }

    fn put_limit(&mut self, item: &mut Attributes, limit: &Limit) {
        let params = Params::from(limit.rate().unwrap());
        let burst = i64::try_from(params.burst()).unwrap();
        let tokens = match self.0.u32(0..6) {
            0 => params.burst(),
            1 => self.number(-burst..=0),
            2 => params.burst() + self.number(1..=5_000),
            _ => self.number(0..=burst),
        };
        let mut put =
            |field, value| item.insert(Attr::Limit(limit.name().clone(), field), Scalar::Number(value));
        put(Field::Tokens, tokens);
        put(Field::Capacity, params.capacity());
        put(Field::Burst, params.burst());
        put(Field::Amount, params.amount());
        put(Field::Period, params.period());
        put(Field::Consumed, i128::from(self.0.u32(0..50_000)));
        if self.0.bool() {
            put(Field::Remainder, i128::from(self.0.u32(0..900)));
        }
        // Sometimes without parameters, as the peer leaves limits.
        if self.one_in(8) {
            let params = [Field::Capacity, Field::Burst, Field::Amount, Field::Period];
            for field in params {
                item.remove(&Attr::Limit(limit.name().clone(), field));
            }
        }
    }

    /// The item as a client read it before others have changed it.
    pub(super) fn aged(&mut self, item: &Attributes) -> Attributes {
        let mut seen = item.clone();
        for (attr, value) in item.iter() {
            let Scalar::Number(number) = value else { continue };
            if matches!(
                attr,
                Attr::Limit(_, Field::Tokens) | Attr::RefilledAt | Attr::Slot(_)
            ) && self.one_in(4)
            {
                let before = number - self.number(0..=3_000);
                seen.insert(attr.clone(), Scalar::Number(before));
            }
        }
        seen
    }

    fn batch(&mut self, terms: &BucketConfig) -> Batch {
        let mut batch = Batch::default();
        for limit in terms.limits() {
            let mut part = |parts| {
                if self.one_in(parts) {
                    self.number(1..=9_000)
                } else {
                    0
                }
            };
            let demand = Demand {
                credit: part(3),
                adjust: part(3),
                debit: part(2),
                recount: -part(8),
                top_up: part(8),
            };
            batch.add(limit.name(), demand);
        }
        batch.acquires = self.0.u32(0..3);
        batch
    }

    fn slot(&mut self, seen: Option<&Attributes>) -> Slot {
        let me = SlotIndex::FIRST;
        let number = seen.and_then(|seen| seen.number(&Attr::Slot(me)));
        let before = match number {
            _ if self.one_in(3) => SlotBefore::Any,
            Some(number) => SlotBefore::Own(number),
            None => SlotBefore::Empty,
        };
        Slot {
            index: me,
            before,
            number: i128::from(NOW),
        }
    }

    /// A write that is made from what was seen, if the batch fits.
    pub(super) fn write(&mut self, seen: Option<&Attributes>, terms: &BucketConfig) -> Option<BucketWrite> {
        let now = Timestamp::from_millis(NOW);
        let (batch, slot) = (self.batch(terms), self.slot(seen));
        let decoded = seen.map(|seen| seen.decode().unwrap());
        let evaluation = match &decoded {
            Some(Decoded::Bucket(image)) if terms.matches(image) => Evaluation::live(image, terms, now),
            Some(Decoded::Bucket(image)) => Evaluation::parameters(image, terms, now),
            Some(Decoded::Stub) | None => Evaluation::create(terms, now),
        };
        evaluation.write(key(), &batch, slot, Incarnation::from_random(self.0.u64(..)))
    }
}
