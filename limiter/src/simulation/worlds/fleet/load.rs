//! What many processes ask of one bucket.

use zae_limiter_schema::{Limit, LimitSet};

use crate::simulation::is_long;

/// A load: how many processes, and what they ask for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fleet {
    pub(super) name: &'static str,
    pub(super) processes: u64,
    /// Of all processes together.
    pub(super) calls_per_second: u32,
    /// Burst and refill a minute of `rpm`, of which each call takes one.
    pub(super) rpm: (u64, u64),
    /// Burst and refill a minute of `tpm`, of which each call takes 100 to 900.
    pub(super) tpm: Option<(u64, u64)>,
    /// The most writes for 100 admissions.
    pub(super) most_writes: u64,
    /// The load exceeds a limit, once its burst is used up.
    pub(super) saturated: bool,
}

pub(super) const FLEETS: [Fleet; 8] = [
    Fleet::one_limit("8 processes, 40/s, one limit at 40 %", 8, 40, (1_000, 6_000)),
    Fleet::one_limit(
        "20 processes, 200/s, one limit at 60 %",
        20,
        200,
        (20_000, 20_000),
    ),
    Fleet::one_limit(
        "50 processes, 200/s, one limit at 60 %",
        50,
        200,
        (20_000, 20_000),
    ),
    Fleet::one_limit(
        "100 processes, 200/s, one limit at 60 %",
        100,
        200,
        (20_000, 20_000),
    ),
    Fleet::one_limit(
        "1,000 processes, 200/s, one limit at 60 %",
        1_000,
        200,
        (20_000, 20_000),
    ),
    Fleet {
        tpm: Some((10_000_000, 10_000_000)),
        ..Fleet::one_limit(
            "100 processes, 200/s, rpm 20 %, tpm 60 %",
            100,
            200,
            (60_000, 60_000),
        )
    },
    Fleet {
        tpm: Some((6_600_000, 6_660_000)),
        ..Fleet::one_limit("50 processes, 200/s, both at 90 %", 50, 200, (13_300, 13_320))
    },
    Fleet {
        tpm: Some((200_000, 4_000_000)),
        most_writes: 240,
        saturated: true,
        ..Fleet::one_limit(
            "100 processes, 200/s, rpm 60 %, tpm saturated",
            100,
            200,
            (20_000, 19_980),
        )
    },
];

impl Fleet {
    pub(super) const fn one_limit(
        name: &'static str,
        processes: u64,
        calls_per_second: u32,
        rpm: (u64, u64),
    ) -> Self {
        Self {
            name,
            processes,
            calls_per_second,
            rpm,
            tpm: None,
            most_writes: 110,
            saturated: false,
        }
    }

    /// How long it is simulated. A burst that is not used up hides what saturation costs.
    pub(super) fn seconds(&self) -> u64 {
        if is_long() || self.saturated { 20 } else { 5 }
    }

    pub(super) fn limits(&self) -> LimitSet {
        let limit = |name: &str, (burst, amount)| Limit::custom(name, burst, burst, amount, 60);
        let limits = [
            Some(limit("rpm", self.rpm)),
            self.tpm.map(|tpm| limit("tpm", tpm)),
        ];
        LimitSet::new(limits.into_iter().flatten().flatten()).unwrap_or_default()
    }
}
