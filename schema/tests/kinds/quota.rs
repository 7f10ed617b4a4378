//! Quotas: what is admitted in a recorded period, and when the next one begins.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zae_limiter_schema::bucket::{
    Action, Attr, Batch, BucketKey, BucketWrite, Condition, Demand, Evaluation, Held, Image, Incarnation,
    QuotaField, ResetLimits, Slot, SlotBefore, SlotIndex, Statement,
};
use zae_limiter_schema::{QuotaPeriod, Timestamp};

use super::world::{Events, Random, SKEW, Table};
use crate::common::{config, entity, name, resource};

const AMOUNT: i128 = 60_000;
const CLIENTS: usize = 12;

/// A rule that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// A write does not ask how much is used.
    NoAmount,
    /// The next period begins whatever the period on the item is.
    BeginUnseen,
    /// A refund does not ask for its period.
    RefundAnywhere,
    /// A top-up counts in every later period.
    TopUpStays,
    /// A reset does not begin another period.
    ResetInPlace,
}

struct Client {
    skew: i64,
    image: Option<Image>,
}

#[derive(Clone)]
struct Lease {
    client: usize,
    tokens: i128,
    held: Option<Held>,
    incarnation: String,
    taken_at: i64,
}

enum Purpose {
    Acquire { tokens: i128 },
    Settle { lease: Lease, change: i128 },
}

struct Sent {
    client: usize,
    tries: u8,
    purpose: Purpose,
    write: BucketWrite,
    statement: Statement,
    lost: bool,
    arrived_at: i64,
}

#[expect(clippy::large_enum_variant, reason = "there are few events at a time")]
enum Event {
    Call(usize),
    Arrive(Sent),
    Response(Sent, bool, Option<Image>),
    Settle(Lease),
    Expire,
    Operate,
    ByHand(ByHand),
}

/// A change by hand that is under way.
struct ByHand {
    statement: Statement,
    /// What it adds; none for a reset.
    top_up: Option<i128>,
}

/// What happened in one period.
#[derive(Default)]
struct Recorded {
    admitted: i128,
    adjusted: i128,
    topped_up: i128,
}

struct World {
    random: Random,
    events: Events<Event>,
    table: Table,
    clients: Vec<Client>,
    period: QuotaPeriod,
    broken: Option<Broken>,
    recorded: BTreeMap<Timestamp, Recorded>,
    consumed: i128,
    last_end: Option<Timestamp>,
    periods: u32,
    refunds: u32,
    refused: u32,
    top_ups: u32,
    resets: u32,
    reset_at: i64,
}

impl World {
    fn run(seed: u64, limits: &[&str], start: &str, broken: Option<Broken>) -> Self {
        let table = Table::new(limits);
        let limit = table.config.limits().named("spend").unwrap().clone();
        let zae_limiter_schema::LimitKind::Quota(quota) = limit.kind() else {
            panic!("{limit}")
        };
        let mut random = Random::new(seed);
        let clients = (0..CLIENTS).map(|_| Client {
            skew: random.between(-SKEW, SKEW),
            image: None,
        });
        let clients = clients.collect();
        let start = Timestamp::parse(start).unwrap();
        let mut world = Self {
            clients,
            random,
            events: Events::new(start.millis()),
            period: quota.period().clone(),
            table,
            broken,
            recorded: BTreeMap::new(),
            consumed: 0,
            last_end: None,
            periods: 0,
            refunds: 0,
            refused: 0,
            top_ups: 0,
            resets: 0,
            reset_at: 0,
        };
        for client in 0..CLIENTS {
            let first = world.random.between(0, 2_000);
            world.events.after(first, Event::Call(client));
        }
        world.events.after(0, Event::Expire);
        let first = world.length() / 4;
        world.events.after(first, Event::Operate);
        let until = start.millis() + 4 * world.length();
        while let Some(event) = world.events.next(until) {
            world.handle(event);
        }
        world
    }

    /// About how long a period is, in milliseconds.
    fn length(&self) -> i64 {
        let now = Timestamp::from_millis(self.events.now);
        i64::try_from(self.period.length_seconds(now)).unwrap() * 1000
    }

    fn clock(&self, client: usize) -> Timestamp {
        Timestamp::from_millis(self.events.now + self.clients[client].skew)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Call(client) => {
                let tokens = i128::from(self.random.between(1, 3)) * 1_000;
                self.acquire(client, tokens, 0);
                let next = self.next_call();
                self.events.after(next, Event::Call(client));
            }
            Event::Arrive(sent) => self.arrive(sent),
            Event::Response(sent, happened, image) => self.respond(sent, happened, image),
            Event::Settle(lease) => {
                let change = if self.random.percent(80) {
                    -i128::from(self.random.between(1, i64::try_from(lease.tokens).unwrap()))
                } else {
                    i128::from(self.random.between(1, 2_000))
                };
                self.settle(lease, change, 0);
            }
            Event::Expire => self.expire(),
            Event::Operate => self.operate(),
            Event::ByHand(change) => self.by_hand(&change),
        }
    }

    /// Somebody tops the quota up or resets it, by the bucket as it is.
    fn operate(&mut self) {
        let (least, most) = (self.length() / 4, self.length());
        let next = self.random.between(least, most);
        self.events.after(next, Event::Operate);
        let Some(image) = self.table.image() else { return };
        let (config, now) = (self.table.config.clone(), self.clock(0));
        let incarnation = Incarnation::from_random(1);
        let change = if self.random.percent(60) {
            let amount = i128::from(self.random.between(1, 20)) * 1_000;
            let evaluation = Evaluation::as_it_is(&image, &config, now);
            let mut batch = Batch::default();
            assert!(evaluation.top_up(&mut batch, &name("spend"), amount));
            let key = BucketKey {
                entity: entity("user-1"),
                resource: resource("gpt-4"),
            };
            let slot = Slot {
                index: SlotIndex::FIRST,
                before: SlotBefore::Any,
                number: 0,
            };
            let write = evaluation.write(key, &batch, slot, incarnation).unwrap();
            ByHand {
                statement: write.statement_without_slot(),
                top_up: Some(amount),
            }
        } else {
            let reset = ResetLimits::of(&image, |limit| *limit == name("spend"), now, incarnation);
            let mut statement = reset.statement;
            if self.broken == Some(Broken::ResetInPlace) {
                let end = Attr::Quota(name("spend"), QuotaField::PeriodEnd);
                statement
                    .actions
                    .retain(|action| !matches!(action, Action::Set(attr, _) if *attr == end));
            }
            ByHand {
                statement,
                top_up: None,
            }
        };
        let latency = self.random.latency();
        self.events.after(latency, Event::ByHand(change));
    }

    /// It arrives once. One that is refused is given up.
    fn by_hand(&mut self, change: &ByHand) {
        let Ok(after) = self.table.item.apply(&change.statement) else {
            return;
        };
        let before = self.table.image().unwrap().quotas[&name("spend")].clone();
        self.table.item = after;
        let quota = self.table.image().unwrap().quotas[&name("spend")].clone();
        if let Some(amount) = change.top_up {
            self.top_ups += 1;
            let end = quota.topped_up_until.unwrap();
            self.recorded.entry(end).or_default().topped_up += amount;
            self.check();
        } else {
            self.resets += 1;
            self.reset_at = self.events.now;
            self.last_end = quota.period_end;
            let now = self.events.now;
            if (quota.used, quota.topped_up_until) != (0, None) {
                self.table.problem(now, "something is used after a reset");
            }
            if before.period_end == quota.period_end {
                self.recorded
                    .insert(quota.period_end.unwrap(), Recorded::default());
            }
        }
    }

    /// Often close to the end of the period, where it matters.
    fn next_call(&mut self) -> i64 {
        let end = self
            .table
            .image()
            .and_then(|image| image.quotas[&name("spend")].period_end);
        let to_end = end.map_or(0, |end| end.millis() - self.events.now);
        if to_end > SKEW && self.random.percent(30) {
            to_end + self.random.between(-SKEW - 500, SKEW + 500)
        } else {
            let most = self.length() / 15;
            self.random.between(1, most)
        }
    }

    fn acquire(&mut self, client: usize, tokens: i128, tries: u8) {
        let mut batch = Batch {
            acquires: 1,
            ..Batch::default()
        };
        for limit in self.table.config.limits().clone().names() {
            batch.add(limit, Demand::debit(tokens));
        }
        // Some ask the table before they refuse.
        let (config, now) = (self.table.config.clone(), self.clock(client));
        let evaluation = Evaluation::by_image(self.clients[client].image.as_ref(), &config, now);
        let mut write = self.table.plan(client, &evaluation, &batch);
        if write.is_none() && self.random.percent(50) {
            self.clients[client].image = self.table.image();
            let evaluation = Evaluation::by_image(self.clients[client].image.as_ref(), &config, now);
            write = self.table.plan(client, &evaluation, &batch);
        }
        match write {
            Some(write) => self.send(client, Purpose::Acquire { tokens }, write, tries),
            None => self.refused += 1,
        }
    }

    fn settle(&mut self, lease: Lease, change: i128, tries: u8) {
        let config = self.table.config.clone();
        let Some(image) = self.clients[lease.client].image.clone() else {
            return;
        };
        let evaluation = Evaluation::by_image(Some(&image), &config, self.clock(lease.client));
        let same_bucket = image.incarnation() == lease.incarnation;
        let mut batch = Batch::default();
        if self.broken == Some(Broken::RefundAnywhere) && change < 0 {
            batch.add(&name("spend"), Demand::credit(-change));
        } else {
            evaluation.book(&mut batch, &name("spend"), change, lease.held, same_bucket);
        }
        let client = lease.client;
        if let Some(write) = self.table.plan(client, &evaluation, &batch) {
            self.send(client, Purpose::Settle { lease, change }, write, tries);
        }
    }

    fn send(&mut self, client: usize, purpose: Purpose, write: BucketWrite, tries: u8) {
        let mut statement = write.statement();
        let is = |condition: &Condition, field: QuotaField| {
            let attr = Attr::Quota(name("spend"), field);
            match condition {
                Condition::Is(found, _) | Condition::AtMost(found, _) | Condition::Missing(found) => {
                    *found == attr
                }
                _ => false,
            }
        };
        let settles = matches!(purpose, Purpose::Settle { .. });
        match self.broken {
            Some(Broken::NoAmount) => statement.conditions.retain(|one| !is(one, QuotaField::Used)),
            Some(Broken::BeginUnseen) if !settles => {
                statement.conditions.retain(|one| !is(one, QuotaField::PeriodEnd));
            }
            Some(Broken::RefundAnywhere) if settles => {
                statement.conditions.retain(|one| !is(one, QuotaField::PeriodEnd));
            }
            _ => {}
        }
        let lost = self.random.percent(10);
        let latency = self.random.latency();
        let sent = Sent {
            client,
            tries,
            purpose,
            write,
            statement,
            lost,
            arrived_at: 0,
        };
        self.events.after(latency, Event::Arrive(sent));
    }

    fn arrive(&mut self, mut sent: Sent) {
        sent.arrived_at = self.events.now;
        let happened = self.table.send(&sent.statement);
        let image = self.table.image();
        if happened {
            self.consumed += sent.write.batch.demand(&name("spend")).consumption();
            self.record(&sent);
            self.check();
        }
        let latency = self.random.latency();
        self.events.after(latency, Event::Response(sent, happened, image));
    }

    fn record(&mut self, sent: &Sent) {
        let now = self.events.now;
        let period_end = |held| match held {
            Some(Held::Period(end)) => end,
            other => panic!("{other:?}"),
        };
        match &sent.purpose {
            // Nobody uses an admission whose response is lost; it stays counted on the item.
            Purpose::Acquire { .. } if sent.lost => {}
            Purpose::Acquire { tokens } => {
                let end = period_end(sent.write.held(&name("spend")));
                let recorded = self.recorded.entry(end).or_default();
                recorded.admitted += tokens;
                if recorded.admitted > AMOUNT + recorded.topped_up {
                    let text = format!("{} admitted in the period until {end}", recorded.admitted);
                    self.table.problem(now, &text);
                }
            }
            Purpose::Settle { lease, change } if *change < 0 => {
                let credit = sent.write.batch.demand(&name("spend")).credit;
                if credit > 0 && lease.incarnation == sent.write.incarnation() {
                    self.refunds += 1;
                    if lease.taken_at < self.reset_at {
                        self.table.problem(now, "what was taken before a reset came back");
                    }
                    let end = period_end(lease.held);
                    self.recorded.entry(end).or_default().admitted -= credit;
                }
            }
            Purpose::Settle { change, .. } => {
                let end = period_end(sent.write.held(&name("spend")));
                self.recorded.entry(end).or_default().adjusted += change;
            }
        }
    }

    fn check(&mut self) {
        let now = self.events.now;
        let quota = self.table.image().unwrap().quotas[&name("spend")].clone();
        let end = quota.period_end.unwrap();
        let counted = self
            .recorded
            .get(&end)
            .map_or(0, |recorded| recorded.admitted + recorded.adjusted);
        if quota.used < counted {
            let text = format!("{} on the item, {counted} used until {end}", quota.used);
            self.table.problem(now, &text);
        }
        if quota.consumed != self.consumed {
            let text = format!("{} counted, {} consumed", quota.consumed, self.consumed);
            self.table.problem(now, &text);
        }
        if let Some(last) = self.last_end.filter(|last| *last != end) {
            self.periods += 1;
            if end < last {
                self.table
                    .problem(now, &format!("the period until {last} became one until {end}"));
            }
            if now + SKEW < last.millis() {
                self.table
                    .problem(now, &format!("the period until {last} ended early"));
            }
        }
        self.last_end = Some(end);
    }

    /// Half of the calls settle, some time later.
    fn settle_later(&mut self, sent: &Sent, tokens: i128) {
        if !self.random.percent(50) {
            return;
        }
        let lease = Lease {
            client: sent.client,
            tokens,
            held: sent.write.held(&name("spend")),
            incarnation: sent.write.incarnation().to_owned(),
            taken_at: sent.arrived_at,
        };
        let most = self.length() / 3;
        let later = self.random.between(100, most);
        self.events.after(later, Event::Settle(lease));
    }

    fn respond(&mut self, sent: Sent, happened: bool, image: Option<Image>) {
        if sent.lost {
            // Only debits are out: too much is counted, never too little.
            return;
        }
        self.clients[sent.client].image = image.map(|mut image| {
            if self.broken == Some(Broken::TopUpStays)
                && let Some(quota) = image.quotas.get_mut(&name("spend"))
            {
                quota.topped_up_until = quota.period_end;
            }
            image
        });
        match sent.purpose {
            Purpose::Acquire { tokens } if happened => self.settle_later(&sent, tokens),
            Purpose::Acquire { tokens } if sent.tries < 6 => {
                self.acquire(sent.client, tokens, sent.tries + 1);
            }
            Purpose::Settle { lease, change } if !happened && sent.tries < 6 => {
                self.settle(lease, change, sent.tries + 1);
            }
            _ => {}
        }
    }

    fn expire(&mut self) {
        let now = self.events.now;
        if let Some(image) = self.table.expire(now) {
            let (used, end) = image.quotas[&name("spend")].at(Timestamp::from_millis(now));
            if used > 0 || image.quotas[&name("spend")].topped_up_at(Timestamp::from_millis(now)) > 0 {
                let text = format!("it was deleted with {used} used in a period until {end:?}");
                self.table.problem(now, &text);
            }
            self.consumed = 0;
            self.last_end = None;
        }
        let next = self.length() / 50;
        self.events.after(next, Event::Expire);
    }
}

/// Limits and where the simulation starts: roll-overs at midnight, on days of both changes of the clock, and at leisure.
const CASES: [(&[&str], &str); 6] = [
    (&["spend:60 per 60s from first use"], "2026-05-01T10:00:00Z"),
    (&["spend:60 per hour in Asia/Kolkata"], "2026-05-01T10:25:00Z"),
    (&["rpm:1000", "spend:60 per hour"], "2026-05-01T10:59:00Z"),
    (&["spend:60 per day in Europe/Berlin"], "2026-10-23T21:59:00Z"),
    (
        &["spend:60 per day at 02:00 in America/New_York"],
        "2026-03-07T06:00:00Z",
    ),
    (
        &["spend:60 per month from day 31 in Australia/Lord_Howe"],
        "2026-01-30T00:00:00Z",
    ),
];

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn no_more_than_the_amount_is_admitted_in_a_recorded_period(
        seed in any::<u64>(), (limits, start) in proptest::sample::select(CASES.to_vec()),
    ) {
        let world = World::run(seed, limits, start, None);
        prop_assert_eq!(&world.table.problems, &Vec::<String>::new());
        prop_assert!(world.periods >= 2, "{} periods", world.periods);
        prop_assert!(world.refunds > 0 || world.refused > 0);
        prop_assert!(world.top_ups + world.resets > 0);
    }
}

#[test]
fn each_rule_of_a_quota_that_is_broken_on_purpose_is_noticed() {
    for broken in [
        Broken::NoAmount,
        Broken::BeginUnseen,
        Broken::RefundAnywhere,
        Broken::TopUpStays,
        Broken::ResetInPlace,
    ] {
        let noticed = CASES.iter().cycle().zip(0..60).any(|((limits, start), seed)| {
            let world = World::run(seed, limits, start, Some(broken));
            !world.table.problems.is_empty()
        });
        assert!(noticed, "{broken:?}");
    }
}
