//! Buckets that are used by our clients and by the peer's, as a stream and as a ledger.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use zae_limiter_schema::Timestamp;

use super::{ItemChange, Ledger, Stream};

/// What was written, and what must come of it.
#[derive(Debug)]
pub struct Workload {
    /// The stream, and a second one from when it was disabled and enabled, with numbers that the first one has passed.
    pub streams: Vec<Stream>,
    /// What the totals must be.
    pub ledger: Ledger,
    /// How many records can never be counted.
    pub malformed: usize,
    /// The thresholds of quotas that were reached, each once.
    pub crossings: BTreeSet<QuotaCrossing>,
}

/// A threshold of a quota that was reached in a period.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaCrossing {
    /// Whose quota.
    pub entity: String,
    /// Of what.
    pub resource: String,
    /// The threshold in percent.
    pub percent: i64,
    /// What may be used in the period.
    pub amount: i64,
    /// When the period ends, in epoch milliseconds.
    pub period_end: i64,
}

/// The name of the quota that every third bucket has.
const QUOTA: &str = "spend";
/// The quota's thresholds in percent.
const THRESHOLDS: [i64; 3] = [50, 80, 100];
/// The length of its periods.
const PERIOD_MILLIS: i64 = 7_200_000;

const LIMITS: [&str; 5] = ["rpm", "tpm", "in-put.tokens", "b_tc", "o_x"];

struct Bucket {
    entity: String,
    resource: String,
    has_quota: bool,
    item: Option<Item>,
    image: Option<String>,
}

#[derive(Default)]
struct Item {
    consumed: BTreeMap<&'static str, i64>,
    events: i64,
    slots: BTreeMap<&'static str, i64>,
    quota: Option<Quota>,
}

#[derive(Clone, Copy)]
struct Quota {
    used: i64,
    amount: i64,
    period_end: i64,
}

impl Quota {
    fn reached(&self) -> impl Iterator<Item = i64> {
        let Self { used, amount, .. } = *self;
        THRESHOLDS
            .into_iter()
            .filter(move |percent| used * 100 >= amount * percent)
    }
}

/// This many changes of this many buckets over some hours, into the next day and month.
pub fn bucket_changes(seed: u64, changes: usize, buckets: usize) -> Workload {
    fastrand::seed(seed);
    let mut writer = Writer {
        random: Rng::with_seed(seed),
        quota_random: Rng::with_seed(!seed),
        crossings: BTreeSet::new(),
        streams: vec![stream(0)],
        ledger: Ledger::default(),
        // 2026-01-31T20:00:00Z.
        at: 1_769_889_600,
    };
    let mut all: Vec<_> = (0..buckets).map(Bucket::new).collect();
    let mut malformed = 0;
    for change in 0..changes {
        writer.pass_time(changes);
        if change % (changes / 5).max(1) == changes / 10 {
            let chance = writer.random.usize(..);
            writer.open().split(chance);
        }
        if change == changes * 7 / 10 {
            writer.streams.push(stream(1));
        }
        // Some buckets are hot for a while, the rest is hit now and then.
        let hot = change * buckets / changes.max(1) + writer.random.usize(..20);
        let place = if writer.random.u8(..20) < 19 {
            hot % buckets
        } else {
            writer.random.usize(..buckets)
        };
        writer.change(&mut all[place]);
        if change % 5_000 == 1_234 {
            writer.malformed(change);
            malformed += 1;
        }
        if change % 50 == 7 {
            writer.noise(place);
        }
    }
    Workload {
        streams: writer.streams,
        ledger: writer.ledger,
        malformed,
        crossings: writer.crossings,
    }
}

/// The second stream is later and starts with a number that the first one has passed.
fn stream(which: i64) -> Stream {
    let made = Timestamp::parse("2026-01-30T08:15:00Z")
        .unwrap()
        .plus_millis(which * 86_400_000);
    let first = [9_999_999_999_999_999_990_000, 15_000_000_000_000_000_000_000];
    Stream::new(made, first[usize::try_from(which).unwrap()])
}

impl Bucket {
    fn new(place: usize) -> Self {
        Self {
            entity: format!("user-{}", place % 100),
            resource: format!("model/{}.x-{}", place / 100, place % 3),
            has_quota: place.is_multiple_of(3),
            item: None,
            image: None,
        }
    }
}

struct Writer {
    random: Rng,
    quota_random: Rng,
    crossings: BTreeSet<QuotaCrossing>,
    streams: Vec<Stream>,
    ledger: Ledger,
    at: i64,
}

impl Writer {
    fn open(&mut self) -> &mut Stream {
        self.streams.last_mut().unwrap()
    }

    /// Seven hours in all.
    fn pass_time(&mut self, changes: usize) {
        let seconds = 25_200 / changes.max(1);
        let rest = usize::from(self.random.usize(..changes.max(1)) < 25_200 % changes.max(1));
        self.at += i64::try_from(seconds + rest).unwrap();
    }

    fn change(&mut self, bucket: &mut Bucket) {
        match self.random.u8(..100) {
            0..50 => self.acquire(bucket),
            50..65 => self.adjust(bucket, None),
            65..80 => {
                // There and back: a sum of nothing that must still be remembered.
                let tokens = self.random.i64(1..500);
                self.adjust(bucket, Some(tokens));
                self.adjust(bucket, Some(-tokens));
            }
            80..90 => self.peer(bucket),
            90..93 => self.touch(bucket),
            93..97 => self.drop_limit(bucket),
            _ => self.delete(bucket),
        }
    }

    fn limit(&mut self) -> &'static str {
        LIMITS[self.random.usize(..LIMITS.len())]
    }

    /// Our client: one write for several acquires.
    fn acquire(&mut self, bucket: &mut Bucket) {
        let events = self.random.i64(1..4);
        let tokens = [("rpm", events), (self.limit(), self.random.i64(0..2_000))];
        self.write(bucket, &tokens, events, true);
    }

    /// Our client: a lease's correction, which is no acquire and never creates a bucket.
    fn adjust(&mut self, bucket: &mut Bucket, tokens: Option<i64>) {
        let tokens = tokens.unwrap_or_else(|| self.random.i64(-900..900));
        if bucket.item.is_some() {
            self.write(bucket, &[("tpm", tokens)], 0, true);
        }
    }

    /// The peer: counts no events, moves no slot of ours; what it consumes is one acquire, what it gives back none.
    fn peer(&mut self, bucket: &mut Bucket) {
        let (rpm, tpm) = (self.random.i64(-1..3), self.random.i64(0..50));
        let consumes = rpm > 0 || tpm > 0;
        self.write_as(
            bucket,
            &[("rpm", rpm), ("tpm", tpm)],
            0,
            false,
            i64::from(consumes),
        );
    }

    /// Our client: a change of parameters that consumes nothing.
    fn touch(&mut self, bucket: &mut Bucket) {
        self.write(bucket, &[], 0, true);
    }

    /// A config change drops a limit: nothing is consumed or given back; later it counts from zero again.
    fn drop_limit(&mut self, bucket: &mut Bucket) {
        if let Some(item) = &mut bucket.item {
            item.consumed.pop_last();
            self.write(bucket, &[], 0, true);
        }
    }

    fn delete(&mut self, bucket: &mut Bucket) {
        bucket.item = None;
        if let Some(old) = bucket.image.take() {
            self.push(bucket, "REMOVE", Some(&old), None);
        }
    }

    fn write(&mut self, bucket: &mut Bucket, tokens: &[(&'static str, i64)], events: i64, ours: bool) {
        self.write_as(bucket, tokens, events, ours, events);
    }

    fn write_as(
        &mut self,
        bucket: &mut Bucket,
        tokens: &[(&'static str, i64)],
        events: i64,
        ours: bool,
        booked: i64,
    ) {
        let mut merged = BTreeMap::new();
        for (limit, tokens) in tokens {
            *merged.entry(*limit).or_insert(0) += tokens;
        }
        let merged: Vec<_> = merged.into_iter().collect();
        let item = bucket.item.get_or_insert_default();
        for (limit, tokens) in &merged {
            *item.consumed.entry(limit).or_insert(0) += tokens * 1_000;
        }
        item.events += events;
        if ours {
            let client = ["ab12", "zz9x", "q000"][self.random.usize(..3)];
            *item.slots.entry(client).or_insert(self.at * 1_000) += 1;
        }
        self.use_quota(bucket);
        let item = bucket.item.get_or_insert_default();
        let image = item.image(&bucket.entity, &bucket.resource);
        let old = bucket.image.replace(image.clone());
        let kind = if old.is_some() { "MODIFY" } else { "INSERT" };
        self.push(bucket, kind, old.as_deref(), Some(&image));
        self.ledger
            .book(&bucket.entity, &bucket.resource, self.at, &merged, booked);
    }

    /// Adds to what is used of the quota, or gives some of it back; begins a period where none runs; and changes the amount now
    /// and then.
    fn use_quota(&mut self, bucket: &mut Bucket) {
        let Some(item) = bucket.item.as_mut().filter(|_| bucket.has_quota) else {
            return;
        };
        let (random, now) = (&mut self.quota_random, self.at * 1_000);
        let before = item.quota.filter(|quota| now < quota.period_end);
        let amount = item.quota.map_or(500, |quota| quota.amount);
        let after = Quota {
            used: match before {
                Some(quota) => (quota.used + random.i64(-120..150)).max(0),
                None => random.i64(0..300),
            },
            amount: if random.u8(..50) == 0 {
                random.i64(400..700)
            } else {
                amount
            },
            period_end: before.map_or(now + PERIOD_MILLIS, |quota| quota.period_end),
        };
        item.quota = Some(after);
        let before: Vec<i64> = before.iter().flat_map(Quota::reached).collect();
        for percent in after.reached().filter(|percent| !before.contains(percent)) {
            let threshold = format!("{QUOTA} {percent}");
            self.ledger
                .reach(&bucket.entity, &bucket.resource, self.at, &threshold);
            self.crossings.insert(QuotaCrossing {
                entity: bucket.entity.clone(),
                resource: bucket.resource.clone(),
                percent,
                amount: after.amount,
                period_end: after.period_end,
            });
        }
    }

    fn push(&mut self, bucket: &Bucket, kind: &'static str, old: Option<&str>, new: Option<&str>) {
        let (pk, sk) = (
            format!("ENTITY#{}", bucket.entity),
            format!("#BUCKET#{}", bucket.resource),
        );
        let at = self.at;
        self.open().push(&ItemChange {
            kind,
            pk: &pk,
            sk: &sk,
            at,
            old,
            new,
        });
    }

    /// A record that can never be counted, of a bucket of its own.
    fn malformed(&mut self, which: usize) {
        let at = self.at;
        let (pk, new) = (format!("ENTITY#broken-{which}"), r#"{"b_rpm_tc":{"N":"1500"}}"#);
        self.open().push(&ItemChange {
            kind: "INSERT",
            pk: &pk,
            sk: "#BUCKET#x",
            at,
            old: None,
            new: Some(new),
        });
    }

    /// Other items of the table, which the filter leaves out.
    fn noise(&mut self, which: usize) {
        let (at, pk) = (self.at, format!("ENTITY#user-{which}"));
        let new = Some(r#"{"rpm":{"N":"5"}}"#);
        for (kind, sk) in [("MODIFY", "#USAGE#x#2026-01"), ("INSERT", "#META")] {
            self.open().push(&ItemChange {
                kind,
                pk: &pk,
                sk,
                at,
                old: new,
                new,
            });
        }
    }
}

impl Item {
    fn image(&self, entity: &str, resource: &str) -> String {
        let mut attributes = vec![
            format!(r#""PK":{{"S":"ENTITY#{entity}"}}"#),
            format!(r##""SK":{{"S":"#BUCKET#{resource}"}}"##),
            r#""rf":{"N":"1769889600000"},"cascade":{"BOOL":false},"cf":{"S":"3f9a"}"#.to_owned(),
        ];
        for (limit, consumed) in &self.consumed {
            attributes.push(format!(
                r#""b_{limit}_tk":{{"N":"{}"}},"b_{limit}_ra":{{"N":"100000"}},"b_{limit}_tc":{{"N":"{consumed}"}}"#,
                500_000 - consumed
            ));
        }
        if let Some(quota) = self.quota {
            let percentages = THRESHOLDS.map(|percent| percent.to_string()).join(" ");
            attributes.push(format!(
                r#""q_{QUOTA}_us":{{"N":"{}"}},"q_{QUOTA}_cp":{{"N":"{}"}},"q_{QUOTA}_pe":{{"N":"{}"}}"#,
                quota.used * 1_000,
                quota.amount * 1_000,
                quota.period_end
            ));
            attributes.push(format!(r#""q_{QUOTA}_al":{{"S":"{percentages}"}}"#));
        }
        if self.events > 0 {
            attributes.push(format!(r#""ev":{{"N":"{}"}}"#, self.events));
        }
        attributes.extend(
            self.slots
                .iter()
                .map(|(client, number)| format!(r#""o_{client}":{{"N":"{number}"}}"#)),
        );
        format!("{{{}}}", attributes.join(","))
    }
}
