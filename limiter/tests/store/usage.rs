//! Usage snapshots and their sums.

use std::collections::BTreeMap;

use zae_limiter::error::Invalid;
use zae_limiter::usage::{UsageQuery, UsageSnapshot, WindowKind};
use zae_limiter::{Error, Timestamp};
use zae_limiter_schema::{AttributeValue, EntityId, Item};

use crate::store::support::{Stage, all_pages, page};

on_every_store! {
    an_entitys_usage_comes_newest_first_in_full_pages,
    a_resources_usage_is_found_over_all_entities,
    time_ranges_include_both_ends,
    a_summary_adds_everything_of_one_length_and_nothing_else,
    days_that_the_peer_wrote_under_their_first_hour_are_days,
    a_senseless_query_is_refused,
}

const START: &str = "2026-01-01T00:00:00Z";

fn snapshot(entity: &EntityId, resource: &str, kind: WindowKind, hours: i64, tokens: i64) -> UsageSnapshot {
    let time = Timestamp::parse(START).unwrap().plus_millis(hours * 3_600_000);
    UsageSnapshot {
        entity: entity.clone(),
        resource: resource.parse().unwrap(),
        window: kind.window_at(time),
        counters: BTreeMap::from([("tpm".parse().unwrap(), tokens)]),
        total_events: 1,
        refusals: 2,
        observed: 3,
        thresholds: BTreeMap::new(),
        ttl: None,
        progress: None,
        unknown: BTreeMap::new(),
    }
}

/// The snapshot of the hour that starts the given hours after the start of the year.
pub(crate) fn hour(entity: &EntityId, resource: &str, number: i64, tokens: i64) -> Item {
    snapshot(entity, resource, WindowKind::Hourly, number, tokens).to_item()
}

pub(crate) fn day(entity: &EntityId, resource: &str, number: i64, tokens: i64) -> Item {
    snapshot(entity, resource, WindowKind::Daily, number * 24, tokens).to_item()
}

fn user(number: u32) -> EntityId {
    format!("user-{number}").parse().unwrap()
}

async fn an_entitys_usage_comes_newest_first_in_full_pages(stage: Stage) {
    let repository = stage.repository().await;
    stage
        .put((0..30).map(|number| hour(&user(1), "gpt-4", number, 10)))
        .await;
    stage
        .put((0..2).map(|number| day(&user(1), "gpt-4", number, 240)))
        .await;
    stage
        .put([hour(&user(1), "gpt-3", 5, 1), hour(&user(2), "gpt-4", 5, 1)])
        .await;
    let query = UsageQuery::of_entity("user-1")
        .unwrap()
        .resource("gpt-4")
        .unwrap()
        .window(WindowKind::Hourly);
    let (snapshots, sizes) = all_pages(12, |request| {
        let (repository, query) = (repository.clone(), &query);
        async move { repository.list_usage_snapshots(query, &request).await }
    })
    .await;
    assert_eq!(
        sizes,
        [12, 12, 6],
        "pages are full though days lie between the hours"
    );
    let starts: Vec<Timestamp> = snapshots.iter().map(|snapshot| snapshot.window.start()).collect();
    assert!(starts.windows(2).all(|pair| pair[0] > pair[1]), "newest first");
    let everything = UsageQuery::of_entity("user-1").unwrap();
    assert_eq!(
        repository
            .list_usage_snapshots(&everything, &page(100))
            .await
            .unwrap()
            .items
            .len(),
        33
    );
}

async fn a_resources_usage_is_found_over_all_entities(stage: Stage) {
    let repository = stage.repository().await;
    for number in 1..=4 {
        stage
            .put((0..3).map(|hours| hour(&user(number), "gpt-4", hours, 10)))
            .await;
        stage
            .put([
                day(&user(number), "gpt-4", 0, 30),
                hour(&user(number), "gpt-3", 0, 1),
            ])
            .await;
    }
    let query = UsageQuery::of_resource("gpt-4")
        .unwrap()
        .window(WindowKind::Hourly);
    let (snapshots, sizes) = all_pages(5, |request| {
        let (repository, query) = (repository.clone(), &query);
        async move { repository.list_usage_snapshots(query, &request).await }
    })
    .await;
    assert_eq!(sizes, [5, 5, 2]);
    assert!(
        snapshots
            .iter()
            .all(|one| one.resource.as_str() == "gpt-4" && one.window.kind() == WindowKind::Hourly)
    );
    let summary = repository
        .get_usage_summary(&query, WindowKind::Daily)
        .await
        .unwrap();
    assert_eq!((summary.snapshots, summary.totals["tpm"]), (4, 120));
}

async fn time_ranges_include_both_ends(stage: Stage) {
    let repository = stage.repository().await;
    stage
        .put((0..50).map(|number| hour(&user(1), "gpt-4", number, 1)))
        .await;
    stage
        .put((0..3).map(|number| day(&user(1), "gpt-4", number, 24)))
        .await;
    let at = |text: &str| Timestamp::parse(text).unwrap();
    for query in [
        UsageQuery::of_entity("user-1")
            .unwrap()
            .resource("gpt-4")
            .unwrap(),
        UsageQuery::of_entity("user-1").unwrap(),
        UsageQuery::of_resource("gpt-4").unwrap(),
    ] {
        let count = async |kind, from, until| {
            let query = query.clone().window(kind).from(at(from)).until(at(until));
            repository
                .list_usage_snapshots(&query, &page(100))
                .await
                .unwrap()
                .items
                .len()
        };
        let hourly = count(WindowKind::Hourly, "2026-01-01T03:00:00Z", "2026-01-02T02:00:00Z").await;
        assert_eq!(hourly, 24, "{query:?}");
        let daily = count(WindowKind::Daily, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z").await;
        assert_eq!(daily, 2, "{query:?}");
        let later = count(WindowKind::Daily, "2026-01-01T00:00:01Z", "2026-01-02T00:00:00Z").await;
        assert_eq!(later, 1, "{query:?}");
    }
}

async fn a_summary_adds_everything_of_one_length_and_nothing_else(stage: Stage) {
    let repository = stage.repository().await;
    stage
        .put((0..120).map(|number| hour(&user(1), "gpt-4", number, number)))
        .await;
    stage
        .put((0..5).map(|number| day(&user(1), "gpt-4", number, 1_000)))
        .await;
    let query = UsageQuery::of_entity("user-1").unwrap();
    let hourly = repository
        .get_usage_summary(&query, WindowKind::Hourly)
        .await
        .unwrap();
    let tpm = "tpm".parse().unwrap();
    assert_eq!(
        (hourly.snapshots, hourly.totals[&tpm], hourly.total_events),
        (120, 119 * 120 / 2, 120)
    );
    assert_eq!(hourly.average(&tpm), Some(59.5));
    assert_eq!(hourly.first.unwrap().to_string(), START);
    assert_eq!(hourly.last.unwrap().to_string(), "2026-01-05T23:00:00Z");
    let daily = repository
        .get_usage_summary(&query, WindowKind::Daily)
        .await
        .unwrap();
    assert_eq!((daily.snapshots, daily.totals[&tpm]), (5, 5_000));
    let monthly = repository
        .get_usage_summary(&query, WindowKind::Monthly)
        .await
        .unwrap();
    assert_eq!((monthly.snapshots, monthly.first), (0, None));
}

async fn days_that_the_peer_wrote_under_their_first_hour_are_days(stage: Stage) {
    let repository = stage.repository().await;
    let mut theirs = day(&user(1), "gpt-4", 1, 7);
    theirs.insert(
        "SK".to_owned(),
        AttributeValue::S("#USAGE#gpt-4#2026-01-02T00:00:00Z".to_owned()),
    );
    theirs.insert(
        "GSI2SK".to_owned(),
        AttributeValue::S("USAGE#2026-01-02T00:00:00Z#user-1".to_owned()),
    );
    stage.put([theirs]).await;
    let from = Timestamp::parse("2026-01-02T00:00:00Z").unwrap();
    for query in [
        UsageQuery::of_entity("user-1")
            .unwrap()
            .resource("gpt-4")
            .unwrap(),
        UsageQuery::of_resource("gpt-4").unwrap(),
    ] {
        let query = query.from(from).until(from);
        assert_eq!(
            repository
                .get_usage_summary(&query, WindowKind::Daily)
                .await
                .unwrap()
                .snapshots,
            1
        );
        assert_eq!(
            repository
                .get_usage_summary(&query, WindowKind::Hourly)
                .await
                .unwrap()
                .snapshots,
            0
        );
    }
}

async fn a_senseless_query_is_refused(stage: Stage) {
    let repository = stage.repository().await;
    let query = UsageQuery::of_entity("user-1")
        .unwrap()
        .from(Timestamp::MAX)
        .until(Timestamp::MIN);
    assert!(matches!(
        repository.list_usage_snapshots(&query, &page(10)).await,
        Err(Error::Invalid(Invalid::Argument { .. }))
    ));
    let query = UsageQuery::of_entity("user-1").unwrap();
    for size in [0, 1_001] {
        let refused = repository.list_usage_snapshots(&query, &page(size)).await;
        assert!(
            matches!(
                refused,
                Err(Error::Invalid(Invalid::Argument {
                    field: "page size",
                    ..
                }))
            ),
            "{size}"
        );
    }
    assert!(matches!(
        UsageQuery::of_entity("a#b"),
        Err(Error::Invalid(Invalid::Name(_)))
    ));
}

#[tokio::test]
async fn a_range_that_begins_within_a_second_begins_with_the_next() {
    let stage = Stage::memory();
    let repository = stage.repository().await;
    stage
        .put((0..2).map(|number| hour(&user(1), "gpt-4", number, 10)))
        .await;
    stage
        .put([snapshot(&user(1), "gpt-4", WindowKind::Monthly, 0, 20).to_item()])
        .await;
    let start = Timestamp::parse(START).unwrap();
    for (from, hours, months) in [(start, 2, 1), (start.plus_millis(1), 1, 0)] {
        for query in [
            UsageQuery::of_entity("user-1").unwrap(),
            UsageQuery::of_resource("gpt-4").unwrap(),
        ] {
            let query = query.from(from);
            let count = async |kind| {
                let summary = repository.get_usage_summary(&query, kind).await.unwrap();
                summary.snapshots
            };
            assert_eq!(count(WindowKind::Hourly).await, hours, "{query:?}");
            assert_eq!(count(WindowKind::Monthly).await, months, "{query:?}");
            let all = repository.list_usage_snapshots(&query, &page(10)).await.unwrap();
            assert_eq!(all.items.len() as u64, hours + months, "{query:?}");
        }
    }
}
