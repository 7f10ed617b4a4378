//! Limits on calls in flight: how many permits that have not expired are held by the true time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::{
    Action, Attr, Batch, BucketConfig, BucketWrite, Condition, Demand, Epoch, Evaluation, Held, Image,
    PermitField, Scalar, Statement,
};

use super::world::{Events, Random, SKEW, Table};
use crate::common::{config, name};

const PERMITS: i128 = 8_000;
const CLIENTS: usize = 10;
/// The most epochs that an item ever has.
const MAX_EPOCHS: usize = 8;

/// A rule that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// Epochs are taken back before they have ended.
    ReclaimEarly,
    /// A release does not ask whether its epoch still has the permits.
    ReleaseWithoutEpoch,
    /// A release whose response is lost is planned and sent again.
    ReleaseAgain,
}

struct Client {
    skew: i64,
    image: Option<Image>,
    dead: bool,
}

/// Permits of one call.
struct Lease {
    client: usize,
    permits: i128,
    epoch: Epoch,
    incarnation: String,
    /// A process does one thing at a time with a lease.
    renewing: bool,
}

enum Purpose {
    Acquire,
    Renew {
        lease: u64,
    },
    Release {
        lease: u64,
        permits: i128,
        epoch: Epoch,
        incarnation: String,
    },
}

struct Sent {
    client: usize,
    tries: u8,
    permits: i128,
    purpose: Purpose,
    write: BucketWrite,
    statement: Statement,
    lost: bool,
    /// The lease that it has begun.
    began: Option<u64>,
}

#[expect(clippy::large_enum_variant, reason = "there are few events at a time")]
enum Event {
    Call(usize),
    Arrive(Sent),
    Response(Sent, bool, Option<Image>),
    Release(u64),
    Renew(u64),
    Death,
    Expire,
}

#[derive(Debug, Default)]
struct Seen {
    admitted: u32,
    refused: u32,
    renewed: u32,
    released: u32,
    expired: u32,
    reclaimed: u32,
    epochs: usize,
}

struct World {
    random: Random,
    events: Events<Event>,
    table: Table,
    clients: Vec<Client>,
    /// The leases whose holder runs and believes in them.
    leases: BTreeMap<u64, Lease>,
    next_lease: u64,
    broken: Option<Broken>,
    /// In milliseconds.
    expiry: i64,
    seen: Seen,
}

fn limit() -> zae_limiter_schema::LimitName {
    name("parallel")
}

fn attr(field: PermitField) -> Attr {
    Attr::Permits(limit(), field)
}

impl World {
    fn run(seed: u64, expiry_seconds: i64, others: &[&str], broken: Option<Broken>) -> Self {
        let own = format!("parallel:8 at once for {expiry_seconds}s");
        let limits: Vec<&str> = others.iter().copied().chain([own.as_str()]).collect();
        let start = Timestamp::parse("2026-05-01T10:00:00Z").unwrap().millis();
        let mut world = Self {
            random: Random::new(seed),
            events: Events::new(start),
            table: Table::new(&limits),
            clients: Vec::new(),
            leases: BTreeMap::new(),
            next_lease: 0,
            broken,
            expiry: expiry_seconds * 1000,
            seen: Seen::default(),
        };
        for _ in 0..CLIENTS {
            world.join();
        }
        world.events.after(world.expiry / 2, Event::Death);
        world.events.after(world.expiry, Event::Expire);
        while let Some(event) = world.events.next(start + 20 * world.expiry) {
            world.handle(event);
        }
        world
    }

    fn join(&mut self) {
        let skew = self.random.between(-SKEW, SKEW);
        self.clients.push(Client {
            skew,
            image: None,
            dead: false,
        });
        let first = self.random.between(0, self.expiry / 8);
        self.events.after(first, Event::Call(self.clients.len() - 1));
    }

    fn clock(&self, client: usize) -> Timestamp {
        Timestamp::from_millis(self.events.now + self.clients[client].skew)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Call(client) => {
                if !self.clients[client].dead {
                    let permits = i128::from(self.random.between(1, 2)) * 1_000;
                    self.acquire(client, permits, 0);
                    let next = self.random.between(1, self.expiry / 7);
                    self.events.after(next, Event::Call(client));
                }
            }
            Event::Arrive(sent) => self.arrive(sent),
            Event::Response(sent, happened, image) => self.respond(sent, happened, image),
            Event::Release(lease) => {
                if self.leases.get(&lease).is_some_and(|lease| lease.renewing) {
                    self.events.after(50, Event::Release(lease));
                } else if let Some(held) = self.leases.remove(&lease) {
                    self.release(lease, held, 0);
                }
            }
            Event::Renew(lease) => self.renew(lease, 0),
            Event::Death => {
                let alive: Vec<usize> = (0..self.clients.len())
                    .filter(|client| !self.clients[*client].dead)
                    .collect();
                let client = alive[self.random.index(alive.len())];
                self.clients[client].dead = true;
                self.leases.retain(|_, lease| lease.client != client);
                self.join();
                let next = self.random.between(self.expiry / 4, self.expiry);
                self.events.after(next, Event::Death);
            }
            Event::Expire => {
                let now = self.events.now;
                if self.table.expire(now).is_some() && self.held() > 0 {
                    self.table
                        .problem(now, "the item was deleted while permits were held");
                }
                self.events.after(self.expiry / 10, Event::Expire);
            }
        }
    }

    /// Permits that have not expired by the true time, of holders that run.
    fn held(&self) -> i128 {
        let now = self.events.now;
        let held = self
            .leases
            .values()
            .filter(|lease| lease.epoch.end().millis() > now);
        held.map(|lease| lease.permits).sum()
    }

    fn acquire(&mut self, client: usize, permits: i128, tries: u8) {
        let config = self.table.config.clone();
        let now = self.clock(client);
        let mut batch = Batch {
            acquires: 1,
            ..Batch::default()
        };
        for limit in config.limits().names() {
            batch.add(limit, Demand::debit(permits));
        }
        for fresh in [false, true] {
            if fresh {
                self.clients[client].image = self.table.image();
            }
            let mut image = self.clients[client].image.clone();
            let early = self.reclaim_early(image.as_mut(), now);
            let evaluation = Evaluation::by_image(image.as_ref(), &config, now);
            if let Some(write) = self.table.plan(client, &evaluation, &batch) {
                let statement = with_early(write.statement(), &early);
                self.send(client, permits, Purpose::Acquire, write, statement, tries);
                return;
            }
            if self.random.percent(50) {
                break;
            }
        }
        self.seen.refused += 1;
    }

    /// Takes epochs from an image that are about to end, in the variant that does so too early.
    fn reclaim_early(&self, image: Option<&mut Image>, now: Timestamp) -> Vec<(Epoch, i128)> {
        let Some(image) = image.filter(|_| self.broken == Some(Broken::ReclaimEarly)) else {
            return Vec::new();
        };
        let permits = image.permits.get_mut(&limit()).unwrap();
        let now = now.millis();
        let early: Vec<(Epoch, i128)> = permits
            .epochs
            .iter()
            .map(|(epoch, count)| (*epoch, *count))
            // The others leave by the right rule.
            .filter(|(epoch, _)| (now - 2_000..now + 3_000).contains(&epoch.end().millis()))
            .collect();
        for (epoch, count) in &early {
            permits.epochs.remove(epoch);
            permits.held -= count;
        }
        early
    }

    fn renew(&mut self, lease: u64, tries: u8) {
        let config = self.table.config.clone();
        let Some(held) = self.leases.get(&lease) else {
            return;
        };
        let (client, permits, epoch) = (held.client, held.permits, held.epoch);
        let incarnation = held.incarnation.clone();
        let now = self.clock(client);
        for fresh in [false, true] {
            if fresh {
                self.clients[client].image = self.table.image();
            }
            let Some(image) = self.clients[client].image.clone() else {
                continue;
            };
            let evaluation = Evaluation::by_image(Some(&image), &config, now);
            let mut batch = Batch::default();
            let found = image.incarnation() == incarnation
                && evaluation.renew(&mut batch, &limit(), Held::Permits(epoch), permits);
            if found && let Some(write) = self.table.plan(client, &evaluation, &batch) {
                let statement = write.statement();
                self.leases.get_mut(&lease).unwrap().renewing = true;
                self.send(client, permits, Purpose::Renew { lease }, write, statement, tries);
                return;
            }
        }
        self.seen.expired += 1;
        self.leases.remove(&lease);
    }

    fn release(&mut self, id: u64, lease: Lease, tries: u8) {
        let Lease {
            client,
            permits,
            epoch,
            incarnation,
            renewing: _,
        } = lease;
        let config: BucketConfig = self.table.config.clone();
        let now = self.clock(client);
        for fresh in [false, true] {
            if fresh {
                self.clients[client].image = self.table.image();
            }
            let Some(image) = self.clients[client].image.clone() else {
                continue;
            };
            let evaluation = Evaluation::by_image(Some(&image), &config, now);
            let mut batch = Batch::default();
            if self.broken == Some(Broken::ReleaseWithoutEpoch) {
                batch.release(&limit(), epoch, permits);
            } else {
                let same_bucket = image.incarnation() == incarnation;
                let held = Some(Held::Permits(epoch));
                evaluation.book(&mut batch, &limit(), -permits, held, same_bucket);
            }
            if batch.leaving(&limit(), epoch) == 0 {
                continue;
            }
            if let Some(write) = self.table.plan(client, &evaluation, &batch) {
                let mut statement = write.statement();
                if self.broken == Some(Broken::ReleaseWithoutEpoch) {
                    let floor = attr(PermitField::Epoch(epoch));
                    let is_floor =
                        |one: &Condition| matches!(one, Condition::AtLeast(attr, _) if *attr == floor);
                    statement.conditions.retain(|one| !is_floor(one));
                }
                let purpose = Purpose::Release {
                    lease: id,
                    permits,
                    epoch,
                    incarnation,
                };
                self.send(client, permits, purpose, write, statement, tries);
                return;
            }
        }
        self.seen.expired += 1;
    }

    fn send(
        &mut self,
        client: usize,
        permits: i128,
        purpose: Purpose,
        write: BucketWrite,
        statement: Statement,
        tries: u8,
    ) {
        let lost = self.random.percent(10);
        let latency = self.random.latency();
        let sent = Sent {
            client,
            tries,
            permits,
            purpose,
            write,
            statement,
            lost,
            began: None,
        };
        self.events.after(latency, Event::Arrive(sent));
    }

    fn arrive(&mut self, mut sent: Sent) {
        // A request of a dead process is under way all the same.
        let happened = self.table.send(&sent.statement);
        if happened {
            self.record(&mut sent);
            self.check();
        }
        let image = self.table.image();
        let latency = self.random.latency();
        self.events.after(latency, Event::Response(sent, happened, image));
    }

    fn record(&mut self, sent: &mut Sent) {
        let reclaimed = |action: &&Action| matches!(action, Action::Remove(Attr::Permits(..)));
        self.seen.reclaimed +=
            u32::try_from(sent.statement.actions.iter().filter(reclaimed).count()).unwrap();
        let epoch = |write: &BucketWrite| match write.held(&limit()) {
            Some(Held::Permits(epoch)) => epoch,
            other => panic!("{other:?}"),
        };
        match &sent.purpose {
            Purpose::Acquire if sent.lost || self.clients[sent.client].dead => {}
            Purpose::Acquire => {
                self.next_lease += 1;
                sent.began = Some(self.next_lease);
                self.seen.admitted += 1;
                let lease = Lease {
                    client: sent.client,
                    permits: sent.permits,
                    epoch: epoch(&sent.write),
                    incarnation: sent.write.incarnation().to_owned(),
                    renewing: false,
                };
                self.leases.insert(self.next_lease, lease);
            }
            Purpose::Renew { lease } => {
                self.seen.renewed += 1;
                if let Some(lease) = self.leases.get_mut(lease) {
                    lease.epoch = epoch(&sent.write);
                }
            }
            Purpose::Release { .. } => self.seen.released += 1,
        }
    }

    fn check(&mut self) {
        let now = self.events.now;
        let held = self.held();
        if held > PERMITS {
            self.table.problem(now, &format!("{held} held"));
        }
        let permits = self.table.image().unwrap().permits[&limit()].clone();
        let sum: i128 = permits.epochs.values().sum();
        if permits.held != sum {
            let text = format!("{} held, {sum} in epochs", permits.held);
            self.table.problem(now, &text);
        }
        if permits.epochs.values().any(|count| *count < 0) {
            self.table.problem(now, "an epoch is below zero");
        }
        self.seen.epochs = self.seen.epochs.max(permits.epochs.len());
        // What is held stands on the item: nobody has released it for its holder.
        let mut by_epoch: BTreeMap<Epoch, i128> = BTreeMap::new();
        let incarnation = self.table.image().unwrap().incarnation().to_owned();
        for lease in self
            .leases
            .values()
            .filter(|lease| lease.incarnation == incarnation)
        {
            *by_epoch.entry(lease.epoch).or_default() += lease.permits;
        }
        for (epoch, count) in by_epoch {
            let there = permits.epochs.get(&epoch).copied().unwrap_or(0);
            if epoch.end().millis() > now && there < count {
                let text = format!("{count} held until {}, {there} on the item", epoch.end());
                self.table.problem(now, &text);
            }
        }
    }

    fn respond(&mut self, sent: Sent, happened: bool, image: Option<Image>) {
        if self.clients[sent.client].dead {
            return;
        }
        if sent.lost {
            if let Purpose::Renew { lease } = &sent.purpose {
                // The holder no longer knows where its permits are, and stops.
                self.leases.remove(lease);
            }
            if let (
                Purpose::Release {
                    lease,
                    permits,
                    epoch,
                    incarnation,
                },
                Some(Broken::ReleaseAgain),
                0,
            ) = (sent.purpose, self.broken, sent.tries)
            {
                let again = Lease {
                    client: sent.client,
                    permits,
                    epoch,
                    incarnation,
                    renewing: false,
                };
                self.release(lease, again, 1);
            }
            return;
        }
        self.clients[sent.client].image = image;
        match sent.purpose {
            Purpose::Acquire if happened => {
                let Some(lease) = sent.began else {
                    return;
                };
                // One in four stalls: it renews nothing and ends long after its permits have expired.
                if self.random.percent(25) {
                    let end = self.random.between(self.expiry / 2, 3 * self.expiry);
                    self.events.after(end, Event::Release(lease));
                } else {
                    let end = self.random.between(1, self.expiry);
                    self.events.after(end, Event::Release(lease));
                    self.events.after(self.expiry / 2, Event::Renew(lease));
                }
            }
            Purpose::Acquire if sent.tries < 5 => self.acquire(sent.client, sent.permits, sent.tries + 1),
            Purpose::Renew { lease } => {
                if let Some(held) = self.leases.get_mut(&lease) {
                    held.renewing = false;
                }
                if happened {
                    self.events.after(self.expiry / 2, Event::Renew(lease));
                } else if sent.tries < 5 {
                    self.renew(lease, sent.tries + 1);
                }
            }
            Purpose::Release {
                lease,
                permits,
                epoch,
                incarnation,
            } if !happened && sent.tries < 5 => {
                let again = Lease {
                    client: sent.client,
                    permits,
                    epoch,
                    incarnation,
                    renewing: false,
                };
                self.release(lease, again, sent.tries + 1);
            }
            _ => {}
        }
    }
}

/// The statement with the epochs taken back that were taken from its image.
fn with_early(mut statement: Statement, early: &[(Epoch, i128)]) -> Statement {
    let held = attr(PermitField::Held);
    for (epoch, count) in early {
        let epoch = attr(PermitField::Epoch(*epoch));
        statement
            .conditions
            .push(Condition::Is(epoch.clone(), Scalar::Number(*count)));
        statement.actions.push(Action::Remove(epoch));
        for condition in &mut statement.conditions {
            if let Condition::AtMost(attr, most) = condition
                && *attr == held
            {
                *most += count;
            }
        }
        for action in &mut statement.actions {
            if let Action::Add(attr, amount) = action
                && *attr == held
            {
                *amount -= count;
            }
        }
    }
    statement
}

/// By clocks that differ, with every epoch in use, at any time and for any expiry.
#[test]
fn permits_that_may_stand_on_an_item_expire_in_at_most_seven_epochs() {
    for expiry in (8..200).chain([599, 600, 601, 3_599, 86_399, 86_400]) {
        let start = 1_800_000_000;
        for now in start..start + expiry.min(120) {
            let taken = (now - 2 * expiry..=now + 1).step_by(usize::try_from(1 + expiry / 200).unwrap());
            let epochs: BTreeSet<Epoch> = taken
                .map(|at| Epoch::of(Timestamp::from_seconds(at), expiry))
                .collect();
            // A clock that is a second behind takes an epoch back two seconds after its end.
            let there = epochs.iter().filter(|epoch| epoch.seconds() + 2 > now - 1);
            assert!(there.count() <= 7, "expiry {expiry} at {now}");
        }
    }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn no_more_permits_than_the_limit_are_held_and_have_not_expired(
        seed in any::<u64>(),
        expiry in proptest::sample::select(vec![8, 9, 10, 11, 20, 61, 600]),
        others in proptest::sample::select(vec![&[][..], &["rpm:1000"][..], &["rpm:1000", "spend:500 per 60s from first use"][..]]),
    ) {
        let world = World::run(seed, expiry, others, None);
        prop_assert_eq!(&world.table.problems, &Vec::<String>::new());
        let seen = &world.seen;
        prop_assert!(seen.epochs <= MAX_EPOCHS, "{:?}", seen);
        let met = [seen.admitted, seen.refused, seen.renewed, seen.released, seen.expired, seen.reclaimed];
        prop_assert!(met.iter().all(|count| *count > 0), "{:?}", seen);
    }
}

#[test]
fn each_rule_of_permits_that_is_broken_on_purpose_is_noticed() {
    for broken in [
        Broken::ReclaimEarly,
        Broken::ReleaseWithoutEpoch,
        Broken::ReleaseAgain,
    ] {
        let noticed = (0..10).any(|seed| !World::run(seed, 20, &[], Some(broken)).table.problems.is_empty());
        assert!(noticed, "{broken:?}");
    }
}
