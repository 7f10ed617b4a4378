//! Strategies shared by the property tests.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use zae_limiter_schema::bucket::{Attr, Attributes, Batch, Demand, Field, Params, Scalar, TokenBucket};
use zae_limiter_schema::{
    AttributeValue, Concurrency, EntityId, Item, Limit, LimitName, QuotaPeriod, Resource, Timestamp, Tokens,
    Weekday,
};

/// `cases` each. A failure is kept in a `.proptest-regressions` file next to the test, to be committed.
///
/// `PROPTEST_CASES` lowers the number, for mutation tests: their failures are not kept.
pub fn config(cases: u32) -> ProptestConfig {
    let most = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|most| most.parse().ok());
    let keep = || FileFailurePersistence::WithSource("proptest-regressions");
    let cases = most.map_or(cases, |most| cases.min(most));
    ProptestConfig {
        cases,
        // A mutant that fits nothing fails at once instead of running into the time limit.
        max_global_rejects: cases.saturating_mul(50),
        failure_persistence: most.is_none().then(|| Box::new(keep()) as _),
        ..ProptestConfig::default()
    }
}

/// Small numbers next to large ones: bounds are where mistakes are.
pub fn amount(most: i128) -> impl Strategy<Value = i128> {
    prop_oneof![3 => 1..=most.min(20_000), 1 => 1..=most]
}

pub fn params() -> impl Strategy<Value = Params> {
    let period = prop_oneof![
        Just(1_000),
        Just(60_000),
        Just(997),
        Just(86_400_000),
        1..=Params::MAX_PERIOD
    ];
    (
        amount(1_000_000_000_000_000),
        amount(1_000_000_000_000_000),
        amount(1_000_000_000_000_000),
        period,
    )
        .prop_map(|(capacity, burst, amount, period)| Params::new(capacity, burst, amount, period).unwrap())
}

/// Any level up to the burst, debt included, or (rarely) above it, as an unclamped refund leaves it.
pub fn token_bucket() -> impl Strategy<Value = TokenBucket> {
    (params(), any::<u64>(), 0..40u8, any::<u64>()).prop_map(|(params, level, kind, remainder)| {
        let burst = params.burst();
        let level = i128::from(level);
        let tokens = match kind {
            0 => burst,
            1 => burst + 1 + level % burst,
            2..=5 => -(level % (burst * 3)),
            6..=8 => burst - level % burst.min(2_000),
            _ => level % (burst + 1),
        };
        TokenBucket {
            params,
            tokens,
            remainder: i128::from(remainder) % params.period(),
        }
    })
}

pub fn elapsed() -> impl Strategy<Value = i128> {
    prop_oneof![
        Just(0),
        1..=5i128,
        1..=5_000i128,
        1..=200_000i128,
        1..=10_000_000_000_000i128
    ]
}

pub fn name(text: &str) -> LimitName {
    LimitName::parse(text).unwrap()
}

pub fn entity(text: &str) -> EntityId {
    EntityId::parse(text).unwrap()
}

pub fn resource(text: &str) -> Resource {
    Resource::parse(text).unwrap()
}

pub fn demand(token_bucket: TokenBucket) -> impl Strategy<Value = Demand> {
    let most = token_bucket.params.burst();
    let part = move || prop_oneof![3 => Just(0), 2 => 1..=most.min(5_000), 1 => 1..=most * 2];
    (
        part(),
        part(),
        part(),
        prop_oneof![9 => Just(0i128), 1 => -5_000..=5_000i128],
    )
        .prop_map(|(credit, adjust, debit, recount)| Demand {
            credit,
            adjust,
            debit,
            recount,
            top_up: 0,
        })
}

pub fn batch_for(token_buckets: &BTreeMap<LimitName, TokenBucket>) -> impl Strategy<Value = Batch> + use<> {
    let demands: Vec<_> = token_buckets
        .iter()
        .map(|(name, token_bucket)| (Just(name.clone()), demand(*token_bucket)))
        .collect();
    (demands, 0..3u32).prop_map(|(demands, acquires)| Batch {
        demands: demands.into_iter().collect(),
        acquires,
        ..Batch::default()
    })
}

pub fn put_limit(attributes: &mut Attributes, limit: &LimitName, token_bucket: TokenBucket, consumed: i128) {
    let mut put = |field, value| attributes.insert(Attr::Limit(limit.clone(), field), Scalar::Number(value));
    put(Field::Tokens, token_bucket.tokens);
    put(Field::Capacity, token_bucket.params.capacity());
    put(Field::Burst, token_bucket.params.burst());
    put(Field::Amount, token_bucket.params.amount());
    put(Field::Period, token_bucket.params.period());
    put(Field::Consumed, consumed);
    if token_bucket.remainder != 0 {
        put(Field::Remainder, token_bucket.remainder);
    }
}

pub fn limit() -> impl Strategy<Value = Limit> {
    let tokens = || prop_oneof![3 => 1..=1_000u64, 1 => 1..=1_000_000_000_000u64];
    let period = prop_oneof![
        Just(1),
        Just(60),
        Just(3600),
        Just(86_400),
        1..=Limit::MAX_PERIOD_SECONDS
    ];
    (limit_name(), tokens(), tokens(), tokens(), period).prop_map(|(name, a, b, refill, period)| {
        Limit::from_parts(name, a.min(b), a.max(b), refill, period).unwrap()
    })
}

/// Every kind of period, in zones of all sorts.
pub fn quota_period() -> impl Strategy<Value = QuotaPeriod> {
    let zone = proptest::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "Asia/Kathmandu",
        "America/St_Johns",
        "America/Havana",
        "America/Sao_Paulo",
        "Pacific/Apia",
        "Pacific/Chatham",
        "Antarctica/Troll",
        "Africa/Casablanca",
        "Etc/GMT+12",
    ]);
    let day = proptest::sample::select(vec![
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
        Weekday::Sunday,
    ]);
    let days = prop_oneof![
        Just(QuotaPeriod::day()),
        Just(QuotaPeriod::week()),
        day.prop_map(QuotaPeriod::week_from),
        Just(QuotaPeriod::month()),
        (1..=31u8).prop_map(|day| QuotaPeriod::month_from(day).unwrap()),
        Just(QuotaPeriod::year()),
    ];
    let at = (days, 0..24u8).prop_map(|(period, hour)| period.at_hour(hour).unwrap());
    let calendar = prop_oneof![1 => Just(QuotaPeriod::hour()), 6 => at];
    let seconds = prop_oneof![
        1..=1_000u64,
        1..=Limit::MAX_PERIOD_SECONDS,
        (1..=3660u64).prop_map(|days| days * 86_400)
    ];
    prop_oneof![
        6 => (calendar, zone).prop_map(|(period, zone)| period.in_zone(zone).unwrap()),
        1 => seconds.prop_map(|seconds| QuotaPeriod::from_first_use(Duration::from_secs(seconds)).unwrap()),
    ]
}

fn quota() -> impl Strategy<Value = Limit> {
    let amount = prop_oneof![1..=1_000u64, 1..=Tokens::MAX];
    let alerts = proptest::collection::btree_set(1..=100u64, 0..4);
    (limit_name(), amount, quota_period(), alerts).prop_map(|(name, amount, period, alerts)| {
        let quota = Limit::quota(name, amount, period).unwrap();
        quota.alert_at(alerts).unwrap()
    })
}

fn concurrency() -> impl Strategy<Value = Limit> {
    let permits = prop_oneof![1..=1_000u64, 1..=Tokens::MAX];
    let expiry = Concurrency::MIN_EXPIRY_SECONDS..=Concurrency::MAX_EXPIRY_SECONDS;
    (limit_name(), permits, expiry).prop_map(|(name, permits, expiry)| {
        Limit::concurrency(name, permits, Duration::from_secs(expiry)).unwrap()
    })
}

/// A limit of any kind.
pub fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![limit(), quota(), concurrency()]
}

pub fn limit_name() -> impl Strategy<Value = LimitName> {
    "[a-zA-Z][a-zA-Z0-9_.-]{0,12}".prop_filter_map("reserved", |text| LimitName::parse(text).ok())
}

pub fn entity_id() -> impl Strategy<Value = EntityId> {
    "[a-zA-Z0-9][a-zA-Z0-9_.:@-]{0,20}".prop_map(|text| EntityId::parse(text).unwrap())
}

pub fn resource_name() -> impl Strategy<Value = Resource> {
    "[a-zA-Z][a-zA-Z0-9_./-]{0,20}".prop_filter_map("reserved", |text| Resource::parse(text).ok())
}

/// Any time of a whole second: what the table's text form can hold.
pub fn second() -> impl Strategy<Value = Timestamp> {
    prop_oneof![0..=4_102_444_800i64, 0..=Timestamp::MAX.seconds()].prop_map(Timestamp::from_seconds)
}

/// Any value that DynamoDB can hold.
pub fn attribute_value() -> impl Strategy<Value = AttributeValue> {
    let number = prop_oneof![
        any::<i128>().prop_map(|n| n.to_string()),
        any::<i32>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        ".{0,8}",
    ];
    let leaf = prop_oneof![
        4 => number.prop_map(AttributeValue::N),
        4 => ".{0,30}".prop_map(AttributeValue::S),
        1 => any::<bool>().prop_map(AttributeValue::Bool),
        1 => Just(AttributeValue::Null(true)),
        1 => proptest::collection::vec(".{0,8}", 0..3).prop_map(AttributeValue::Ss),
        1 => proptest::collection::vec(any::<u8>(), 0..8).prop_map(AttributeValue::B),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            proptest::collection::hash_map(".{0,8}", inner.clone(), 0..4).prop_map(AttributeValue::M),
            proptest::collection::vec(inner, 0..4).prop_map(AttributeValue::L),
        ]
    })
}

/// An item with known and unknown attributes, holding anything.
pub fn any_item() -> impl Strategy<Value = Item> {
    const KNOWN: &[&str] = &[
        "PK",
        "SK",
        "rf",
        "cf",
        "ev",
        "ttl",
        "entity_id",
        "resource",
        "cascade",
        "parent_id",
        "name",
        "metadata",
        "created_at",
        "p_usd",
        "p_tok",
        "p_in",
        "p_max",
        "o_ab12",
        "b_rpm_tk",
        "b_rpm_cp",
        "b_rpm_bx",
        "b_rpm_ra",
        "b_rpm_rp",
        "b_rpm_tc",
        "b_rpm_rr",
        "l_rpm_cp",
        "l_rpm_bx",
        "l_rpm_ra",
        "l_rpm_rp",
        "q_spend",
        "c_parallel",
        "limits_format",
        "limits_version",
        "q_spend_us",
        "q_spend_pe",
        "q_spend_cp",
        "q_spend_sc",
        "q_spend_tc",
        "c_parallel_n",
        "c_parallel_cp",
        "c_parallel_xp",
        "c_parallel_tc",
        "c_parallel_e1800000000",
        "on_unavailable",
        "mode",
        "config_version",
        "audit_retention_days",
        "auto_update",
        "event_id",
        "timestamp",
        "action",
        "principal",
        "details",
        "window",
        "window_start",
        "total_events",
        "_sq",
        "_sa",
        "rpm",
        "resources",
        "schema_version",
        "client_min_version",
        "lambda_version",
        "updated_at",
        "updated_by",
    ];
    let attribute = prop_oneof![8 => proptest::sample::select(KNOWN).prop_map(str::to_owned), 1 => ".{0,12}"];
    let likely = prop_oneof![
        3 => attribute_value(),
        1 => (0..2_000_000_000_000i64).prop_map(|n| AttributeValue::N(n.to_string())),
        1 => proptest::sample::select(vec![
            "ENTITY#a", "SYSTEM#", "RESOURCE#gpt-4", "AUDIT#a", "#CONFIG", "#CONFIG#gpt-4", "#META", "#BUCKET#gpt-4",
            "2026-01-31T12:00:00Z", "hourly", "monthly", "allow", "observe", "disabled", "500 per month", "8 at once for 10min", "month", "user-1", "01ARYZ6S410000000000000000", "$SYSTEM",
        ]).prop_map(|text| AttributeValue::S(text.to_owned())),
    ];
    proptest::collection::hash_map(attribute, likely, 0..30).prop_map(Item::from)
}
