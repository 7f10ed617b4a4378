//! Folding a state and taking it up again changes nothing.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use zae_limiter_schema::bucket::{
    BucketConfig, BucketKey, ClientTag, Etag, Image, LimitImage, Params, Slot, SlotIndex, TokenBucket,
    TtlRule,
};
use zae_limiter_schema::{EntityId, Limit, LimitName, LimitSet, Timestamp};

use super::super::slots::Ownership;
use super::super::{IdleBucket, LastSeen, QueueState, Reloaded, Sighting};
use super::bench::{Bench, rpm};

const CLIENT: ClientTag = ClientTag::from_random(1);

fn blank() -> QueueState {
    let key = BucketKey {
        entity: "u".parse().unwrap(),
        resource: "m".parse().unwrap(),
    };
    QueueState::new(key, CLIENT, Duration::from_secs(1), Duration::from_millis(900))
}

fn unfolded(idle: &IdleBucket) -> QueueState {
    let mut state = blank();
    state.unfold(idle);
    state
}

fn two_limits() -> LimitSet {
    LimitSet::new(["rpm", "tpm"].map(|name| Limit::per_minute(name, 1_000_000).unwrap())).unwrap()
}

fn number() -> impl Strategy<Value = i128> {
    prop_oneof![-10..10_i128, -(1_i128 << 80)..1_i128 << 80]
}

fn time() -> impl Strategy<Value = Duration> {
    (0..1_u64 << 40, 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos))
}

fn slot() -> impl Strategy<Value = SlotIndex> {
    (0..16_u8).prop_map(SlotIndex::new)
}

prop_compose! {
    fn params()(
        capacity in 1..Params::MAX_AMOUNT, burst in 1..Params::MAX_AMOUNT,
        amount in 1..Params::MAX_AMOUNT, period in 1..Params::MAX_PERIOD,
    ) -> Params {
        Params::new(capacity, burst, amount, period).unwrap()
    }
}

prop_compose! {
    /// A bucket with the limits of the config, or others.
    fn image(config: Option<Arc<BucketConfig>>)(
        as_configured: bool,
        others in btree_map("[a-z]{1,8}", params(), 0..3),
        levels in vec((number(), number(), number()), 4),
        etag in of("[a-z.]{0,20}"),
        incarnation in "[a-zA-Z0-9]{0,6}",
        parent in of("[a-z]{1,8}"),
        slots in btree_map(slot(), number(), 0..16),
        refilled_at in 0..1_i64 << 42,
        events in number(),
        expires_at in of(0..1_i64 << 40),
        cascade: bool,
    ) -> Image {
        let like = config.as_ref().filter(|_| as_configured);
        let params: BTreeMap<LimitName, Params> = match like {
            Some(config) => config.limits().iter().map(|limit| (limit.name().clone(), limit.into())).collect(),
            None => others.into_iter().map(|(name, params)| (name.parse().unwrap(), params)).collect(),
        };
        let limits = params.into_iter().zip(levels).map(|((name, params), (tokens, remainder, consumed))| {
            (name, LimitImage { token_bucket: TokenBucket { params, tokens, remainder }, consumed })
        });
        Image {
            limits: limits.collect(),
            etag: match like {
                Some(config) => Some(config.etag(&incarnation)),
                None => etag.map(Etag::from_stored),
            },
            parent: match like {
                Some(config) => config.parent().cloned(),
                None => parent.map(|parent| EntityId::parse(parent).unwrap()),
            },
            cascade: like.map_or(cascade, |config| config.cascade()),
            refilled_at: Timestamp::from_millis(refilled_at),
            broken: BTreeSet::new(),
            legacy_slots: BTreeMap::new(),
            slots,
            events,
            expires_at,
        }
    }
}

fn config() -> impl Strategy<Value = Option<Arc<BucketConfig>>> {
    let some = (of("[a-z]{1,8}"), any::<bool>()).prop_map(|(parent, cascade)| {
        let parent = parent.map(|parent| EntityId::parse(parent).unwrap());
        Arc::new(BucketConfig::new(two_limits(), parent, cascade, TtlRule::Never))
    });
    of(some)
}

fn state() -> impl Strategy<Value = QueueState> {
    let seen = config().prop_flat_map(|config| (Just(config.clone()), of(image(config))));
    let times = (of(time()), of(time()), of(time()), of(time()));
    let own = (of((slot(), of(number()))), of(number()), of(0..1_000_u128));
    (seen, times, own, time(), any::<[bool; 2]>()).prop_map(|(seen, times, own, at, [proven, just_read])| {
        let ((config, image), (ownership, sequence, client)) = (seen, own);
        let mut state = blank();
        let sighting = Sighting { at, proven };
        let reloaded = times.3.zip(config.clone()).zip(image.as_ref());
        state.reloaded = reloaded.map(|((at, config), image)| Reloaded {
            etag: image.etag.clone(),
            config,
            at,
        });
        state.known = match image {
            Some(image) => LastSeen::Live(Arc::new(image), sighting),
            None => LastSeen::Absent(sighting),
        };
        state.config = config;
        state.ownership = match ownership {
            None => Ownership::None,
            Some((index, None)) => Ownership::Claiming(index),
            Some((index, Some(number))) => {
                state.last_sequence = Slot::written_at(number);
                Ownership::Owned(index, number)
            }
        };
        state.last_sequence = sequence.unwrap_or(state.last_sequence);
        state.client = client.map_or(CLIENT, ClientTag::from_random);
        (state.crowded_at, state.refused_at, state.guess.wrong_at) = (times.0, times.1, times.2);
        state.guess.just_read = just_read;
        state
    })
}

proptest! {
    #[test]
    fn a_folded_state_is_taken_up_as_it_was(state in state()) {
        let idle = state.folded(CLIENT).unwrap();
        prop_assert_eq!(format!("{:?}", unfolded(&idle)), format!("{state:?}"));
    }
}

#[test]
fn a_bucket_goes_on_where_it_was_folded() {
    let mut bench = Bench::new();
    bench.read();
    for round in 0..5 {
        let _answer = bench.ask(1);
        assert_eq!(bench.pass().len(), 1, "round {round}: one write and no read");
        let idle = bench.state.folded(CLIENT).unwrap();
        bench.state = unfolded(&idle);
        bench.elapsed += 3;
    }
    assert_eq!(bench.level(), 5);
    let image = bench.state.image().unwrap();
    assert_eq!(image.slots.len(), 1, "always the same slot");
}

#[test]
fn two_limits_and_a_slot_take_less_than_a_hundred_bytes() {
    let mut state = blank();
    let config = Arc::new(BucketConfig::new(two_limits(), None, false, TtlRule::Never));
    let limits = config.limits().iter().map(|limit| {
        let limit_image = LimitImage {
            token_bucket: TokenBucket {
                params: limit.into(),
                tokens: 123_456_789,
                remainder: 59_999,
            },
            consumed: 987_654_321,
        };
        (limit.name().clone(), limit_image)
    });
    let number = CLIENT.number(1_700_000_000_000);
    let image = Image {
        limits: limits.collect(),
        etag: Some(config.etag("abcdef")),
        refilled_at: Timestamp::from_millis(1_700_000_000_000),
        broken: BTreeSet::new(),
        legacy_slots: BTreeMap::new(),
        slots: BTreeMap::from([(SlotIndex::FIRST, number)]),
        events: 1_000,
        expires_at: Some(1_700_000_600),
        parent: None,
        cascade: false,
    };
    let at = Duration::from_secs(86_400);
    state.known = LastSeen::Live(Arc::new(image), Sighting { at, proven: true });
    state.config = Some(config);
    state.ownership = Ownership::Owned(SlotIndex::FIRST, number);
    state.last_sequence = 1_700_000_000_000;
    let idle = state.folded(CLIENT).unwrap();
    assert!(idle.bytes.len() < 100, "{}", idle.bytes.len());
}

#[test]
fn a_bucket_with_something_to_do_or_in_doubt_is_not_folded() {
    let mut bench = Bench::new();
    assert!(bench.state.folded(CLIENT).is_none(), "never seen");
    assert!(bench.state.is_blank());
    bench.read();
    let _answer = bench.ask(1);
    assert!(bench.state.folded(CLIENT).is_none(), "a call waits");
    let write = bench.write();
    assert!(bench.state.folded(CLIENT).is_none(), "a write is under way");
    bench.answer(&write);
    assert!(bench.state.folded(CLIENT).is_some());
    let _answer = bench.ask(1);
    bench.write();
    bench.lose();
    assert!(bench.state.folded(CLIENT).is_none(), "a write is in doubt");
    assert!(!bench.state.is_blank());
    bench.state.rest();
    assert!(bench.state.folded(CLIENT).is_none(), "it is not forgotten");
}

#[test]
fn a_bucket_with_what_only_others_write_is_not_folded() {
    let mut bench = Bench::new();
    bench.read();
    let _answer = bench.ask(1);
    bench.pass();
    let LastSeen::Live(image, sighting) = bench.state.known.clone() else {
        panic!("a bucket")
    };
    let mut broken = Image::clone(&image);
    broken.broken.insert(rpm());
    bench.state.known = LastSeen::Live(Arc::new(broken), sighting);
    assert!(bench.state.folded(CLIENT).is_none());
}
