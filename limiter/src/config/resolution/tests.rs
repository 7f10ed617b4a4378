#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use zae_limiter_schema::Limit;
use zae_limiter_schema::money::MicroDollars;

use super::*;

fn limits(capacity: u64) -> LimitSet {
    LimitSet::new([Limit::per_minute("rpm", capacity).unwrap()]).unwrap()
}

fn level(content: Content) -> LevelConfig {
    let (limit, on_unavailable, mode) = content.unwrap_or_default();
    LevelConfig {
        temporary: None,
        limits: limit.map(limits).unwrap_or_default(),
        switches: Switches { on_unavailable, mode },
        prices: None,
    }
}

type Content = Option<(Option<u64>, Option<OnUnavailable>, Option<Mode>)>;

fn content() -> impl Strategy<Value = Content> {
    let policy = prop::option::of(prop_oneof![
        Just(OnUnavailable::Allow),
        Just(OnUnavailable::Block)
    ]);
    let mode = prop::option::of(prop::sample::select(&Mode::ALL));
    prop::option::of((prop::option::of(1..1000u64), policy, mode))
}

proptest! {
    #[test]
    fn the_most_specific_level_that_says_something_decides_each_thing(
        contents in prop::array::uniform4(content()),
        builder_limit in prop::option::of(1..1000u64),
    ) {
        let [entity, entity_default, resource, system] = contents.map(level);
        let own = OwnConfig { entity, entity_default, position: None };
        let shared = SharedConfig { resource: Arc::new(resource), system: Arc::new(system) };
        let defaults = Defaults {
            limits: builder_limit.map(limits).unwrap_or_default(),
            on_unavailable: OnUnavailable::Block,
        };
        let resolved = resolve(&own, &shared, &defaults, Timestamp::MIN);

        let sources = [ConfigOrigin::Entity, ConfigOrigin::EntityDefault, ConfigOrigin::Resource, ConfigOrigin::System, ConfigOrigin::Builder];
        let all: Vec<Content> = contents.into_iter().chain([Some((builder_limit, Some(OnUnavailable::Block), Some(Mode::Enforce)))]).collect();
        let expected_limits = all.iter().zip(sources).find_map(|(c, s)| Some((s, c.and_then(|c| c.0)?)));
        let expected_policy = all.iter().zip(sources).find_map(|(c, s)| Some((s, c.and_then(|c| c.1)?)));
        let expected_mode = all.iter().zip(sources).find_map(|(c, s)| Some((s, c.and_then(|c| c.2)?)));
        prop_assert_eq!(resolved.limits_from, expected_limits.map(|(source, _)| source));
        prop_assert_eq!(resolved.limits, expected_limits.map(|(_, capacity)| limits(capacity)).unwrap_or_default());
        prop_assert_eq!(Some((resolved.on_unavailable_from, resolved.on_unavailable)), expected_policy);
        prop_assert_eq!(Some((resolved.mode_from, resolved.mode)), expected_mode);
    }
}

#[test]
fn prices_of_the_resource_come_before_those_of_the_system_and_entities_have_none() {
    let level = |dollars: Option<u64>| LevelConfig {
        prices: dollars.map(|dollars| {
            let price = MicroDollars::new(dollars * 1_000_000).unwrap();
            Arc::new(Prices::new(price, price))
        }),
        ..LevelConfig::default()
    };
    let defaults = Defaults {
        limits: LimitSet::default(),
        on_unavailable: OnUnavailable::Block,
    };
    for (entity, resource, system, applies) in [
        (Some(3), Some(2), Some(1), Some(2)),
        (Some(3), None, Some(1), Some(1)),
        (Some(3), None, None, None),
    ] {
        let own = OwnConfig {
            entity: level(entity),
            ..OwnConfig::default()
        };
        let shared = SharedConfig {
            resource: Arc::new(level(resource)),
            system: Arc::new(level(system)),
        };
        assert_eq!(
            resolve(&own, &shared, &defaults, Timestamp::MIN).prices,
            level(applies).prices
        );
    }
}

/// A level with limits that end.
fn raised(standing: &[&str], until: Timestamp) -> LevelConfig {
    let set = |texts: &[&str]| LimitSet::new(texts.iter().map(|text| text.parse().unwrap())).unwrap();
    LevelConfig {
        limits: set(standing),
        temporary: Some(Arc::new(TemporaryLimits {
            limits: set(&["rpm:500"]),
            until,
        })),
        ..LevelConfig::default()
    }
}

#[test]
fn limits_that_end_apply_until_then_and_the_earliest_end_is_known() {
    let (noon, evening) = (Timestamp::from_millis(1_000), Timestamp::from_millis(2_000));
    let own = OwnConfig {
        entity: raised(&[], noon),
        ..OwnConfig::default()
    };
    let shared = SharedConfig {
        resource: Arc::new(raised(&["rpm:20"], evening)),
        ..SharedConfig::default()
    };
    let defaults = Defaults {
        limits: LimitSet::default(),
        on_unavailable: OnUnavailable::Block,
    };
    let at = |now: Timestamp| {
        let resolved = resolve(&own, &shared, &defaults, now);
        let capacity = resolved.limits.named("rpm").unwrap().capacity().get();
        (capacity, resolved.limits_from.unwrap(), resolved.limits_until)
    };
    assert_eq!(at(noon.plus_millis(-1)), (500, ConfigOrigin::Entity, Some(noon)));
    assert_eq!(at(noon), (500, ConfigOrigin::Resource, Some(evening)));
    assert_eq!(at(evening), (20, ConfigOrigin::Resource, None));
    let ends = [noon.plus_millis(-1), noon, evening].map(|now| next_end(&own, &shared, now));
    assert_eq!(ends, [Some(noon), Some(evening), None]);
}
