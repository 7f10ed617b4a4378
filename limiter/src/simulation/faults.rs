//! What goes wrong between a limiter and the table, and how often.

use std::time::Duration;

use super::Mutation;

/// What becomes of all requests for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// They are carried out.
    Clear,
    /// Nobody responds.
    Silent,
    /// Connections are refused.
    Refusing,
    /// Most of them, or their responses, are lost, and the others are slow.
    BrownOut,
    /// Nobody responds to writes; reads are carried out.
    WritesSilent,
    /// Connections for writes are refused; reads are carried out.
    WritesRefused,
}

/// How hostile a run is. Probabilities are in thousandths.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing that happens in a run or does not"
)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) limiters: usize,
    pub(super) callers_per_limiter: usize,
    pub(super) peers: usize,
    pub(super) duration: Duration,
    /// Responses that never arrive, though the write happened.
    pub(super) lost_responses: u32,
    /// Requests that the network delivers twice.
    pub(super) repeated: u32,
    /// Requests that never arrive.
    pub(super) lost_requests: u32,
    /// Requests that arrive after the client has stopped waiting.
    pub(super) late: u32,
    pub(super) throttled: u32,
    pub(super) conflicts: u32,
    /// Chance for a limiter to crash between two calls of a caller.
    pub(super) crashes: u32,
    /// Calls that are cancelled while they wait.
    pub(super) cancelled: u32,
    /// Callers keep everything that they took.
    pub(super) keeping: bool,
    /// Configurations that change while traffic runs.
    pub(super) config_changes: bool,
    /// Buckets that expire and are deleted.
    pub(super) expiry: bool,
    /// Buckets that somebody deletes, full or not.
    pub(super) deletions: bool,
    /// In the middle of the run the first limiter gets this many copies, as of a snapshot of its process.
    pub(super) copies: usize,
    pub(super) cascade: bool,
    /// Reads that fail.
    pub(super) failed_reads: u32,
    /// Reads that need not be consistent, and show the item as it was before its last write.
    pub(super) stale_reads: u32,
    /// Callers rest up to this many milliseconds after every other call.
    pub(super) rest: u64,
    /// The table is unavailable for longer than every budget, again and again.
    pub(super) outages: bool,
    /// The outages are of writes alone.
    pub(super) write_outages: bool,
    /// Buckets that each process keeps in memory.
    pub(super) kept_buckets: usize,
    /// Responses that cannot be read, though the write happened.
    pub(super) unreadable: u32,
    /// Calls that wait for tokens.
    pub(super) patient: u32,
    /// Calls that come with limits of their own, for an entity that also has stored ones.
    pub(super) given_limits: u32,
    /// Leases that take more.
    pub(super) more: u32,
    /// Calls that charge two resources.
    pub(super) several: u32,
    /// Parents and cascading change while traffic runs.
    pub(super) family_changes: bool,
    /// Modes of entities change while traffic runs, now and then with a refresh of their buckets.
    pub(super) modes: bool,
    /// An entity has limits of its own.
    pub(super) own_limits: bool,
    /// Calls are allowed in an outage, from the share of each process.
    pub(super) share: bool,
    /// A limit has a period of a day.
    pub(super) long_periods: bool,
    /// How long changes are retried.
    pub(super) settle_budget: Duration,
    /// Buckets live this number of fill times.
    pub(super) ttl_multiplier: u32,
    /// Responses with a wrong date.
    pub(super) wrong_dates: u32,
    /// Clocks are off by up to this, either way.
    pub(super) skew: i64,
    /// New buckets carry this many slots of an earlier release.
    pub(super) legacy_slots: u32,
    /// Somebody tops up buckets while traffic runs.
    pub(super) top_ups: bool,
    /// Writes and reads of buckets also go through the SDK to the embedded store.
    pub(super) sdk: bool,
    pub(super) mutation: Option<Mutation>,
}

impl Scenario {
    /// No faults at all.
    pub(super) fn calm(seed: u64) -> Self {
        Self {
            seed,
            limiters: 4,
            callers_per_limiter: 3,
            peers: 0,
            duration: Duration::from_secs(20),
            lost_responses: 0,
            repeated: 0,
            lost_requests: 0,
            late: 0,
            throttled: 0,
            conflicts: 0,
            crashes: 0,
            cancelled: 0,
            keeping: false,
            config_changes: false,
            expiry: false,
            deletions: false,
            copies: 0,
            cascade: false,
            failed_reads: 0,
            stale_reads: 0,
            rest: 0,
            outages: false,
            write_outages: false,
            kept_buckets: 10_000,
            unreadable: 0,
            patient: 0,
            given_limits: 0,
            more: 0,
            several: 0,
            family_changes: false,
            modes: false,
            own_limits: false,
            share: false,
            long_periods: false,
            settle_budget: Duration::from_secs(600),
            ttl_multiplier: 7,
            wrong_dates: 0,
            skew: 0,
            legacy_slots: 0,
            top_ups: false,
            sdk: false,
            mutation: None,
        }
    }

    /// Everything at once: a fifth of the responses lost, three in a hundred requests late.
    pub(super) fn hostile(seed: u64) -> Self {
        Self {
            lost_responses: 200,
            lost_requests: 60,
            late: 30,
            throttled: 20,
            conflicts: 20,
            cancelled: 50,
            failed_reads: 20,
            stale_reads: 200,
            config_changes: seed.is_multiple_of(2),
            expiry: seed.is_multiple_of(3),
            cascade: seed % 4 < 2,
            crashes: if seed.is_multiple_of(5) { 5 } else { 0 },
            ..Self::calm(seed)
        }
    }

    /// As hostile, and so little traffic that buckets expire and slots are removed.
    pub(super) fn sparse(seed: u64) -> Self {
        Self {
            limiters: 3,
            callers_per_limiter: 1,
            duration: Duration::from_secs(600),
            rest: 90_000,
            // Slots grow old only on buckets that stay.
            ttl_multiplier: if seed.is_multiple_of(2) { 1 } else { 100 },
            expiry: true,
            legacy_slots: 20,
            ..Self::hostile(seed)
        }
    }

    /// No fault but outages, so that calls may fail only then; and everything that callers can do.
    pub(super) fn stormy(seed: u64) -> Self {
        Self {
            outages: true,
            patient: 200,
            more: 200,
            duration: Duration::from_secs(90),
            settle_budget: Duration::from_secs(5),
            cascade: seed % 4 < 2,
            config_changes: seed % 4 == 1,
            own_limits: seed.is_multiple_of(2),
            ..Self::calm(seed)
        }
    }

    /// As hostile, with limits of calls and of entities, and parents that change.
    pub(super) fn changing(seed: u64) -> Self {
        Self {
            given_limits: if seed.is_multiple_of(2) { 300 } else { 0 },
            own_limits: true,
            family_changes: true,
            patient: 200,
            cascade: true,
            config_changes: true,
            crashes: 0,
            ..Self::hostile(seed)
        }
    }

    /// Modes that change, with all faults in every other run. No read fails: a configuration that cannot be reloaded stays in
    /// use.
    pub(super) fn switching(seed: u64) -> Self {
        Self {
            modes: true,
            several: 200,
            failed_reads: 0,
            patient: 200,
            cascade: seed % 4 < 2,
            config_changes: false,
            own_limits: seed.is_multiple_of(3),
            duration: Duration::from_secs(60),
            ..if seed.is_multiple_of(2) {
                Self::hostile(seed)
            } else {
                Self::calm(seed)
            }
        }
    }

    /// As hostile, with calls that charge two resources, wait, and take more.
    pub(super) fn several(seed: u64) -> Self {
        Self {
            several: 600,
            patient: if seed.is_multiple_of(2) { 200 } else { 0 },
            more: 200,
            cancelled: 100,
            cascade: !seed.is_multiple_of(3),
            own_limits: seed.is_multiple_of(5),
            crashes: 0,
            ..Self::hostile(seed)
        }
    }

    /// True if nothing but the weather makes calls fail.
    pub(super) fn only_weather(&self) -> bool {
        let faults = [self.lost_responses, self.lost_requests, self.late, self.throttled];
        faults
            .iter()
            .chain(&[self.conflicts, self.failed_reads, self.unreadable])
            .all(|rate| *rate == 0)
    }

    pub(super) fn breaking(self, mutation: Mutation) -> Self {
        Self {
            mutation: Some(mutation),
            ..self
        }
    }
}
