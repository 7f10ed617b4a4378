//! Files that are applied by hand and by resources of stacks.

#![allow(clippy::unwrap_used)]

use aws_sdk_dynamodb::config::Credentials;
use zae_limiter::{ConfigLevel, EmbeddedStore, RateLimiter, Timestamp};
use zae_limiter_limits::{Comparison, Error, every_level};
use zae_limiter_testing::connection::{Connection, Fault};

const BOTH: &str = "{system: {limits: {rpm: 1}}, resources: {a: {limits: {rpm: 2}}}}";
const SYSTEM: &str = "system: {limits: {rpm: 1}}";

struct Table {
    client: aws_sdk_dynamodb::Client,
    repository: zae_limiter::Repository,
}

impl Table {
    async fn new() -> Self {
        let store = EmbeddedStore::memory().unwrap();
        let client = aws_sdk_dynamodb::Client::from_conf(store.sdk_config().build());
        let limiter = RateLimiter::embedded_in(&store);
        let repository = limiter.build_repository().await.unwrap();
        Self { client, repository }
    }

    async fn declare(&self, file: &str, owner: &str) {
        let comparison = Comparison::of_resource(&self.repository, file, owner).await;
        comparison.unwrap().apply(now()).await.unwrap();
    }

    async fn apply(&self, file: &str) {
        let comparison = Comparison::of(&self.repository, file).await;
        comparison.unwrap().apply(now()).await.unwrap();
    }

    async fn withdraw(&self, file: &str, owner: &str) {
        let comparison = Comparison::withdraw(&self.repository, file, owner).await;
        comparison.unwrap().apply(now()).await.unwrap();
    }

    async fn set(&self, level: &ConfigLevel, limit: &str) {
        let change = zae_limiter::ConfigChange::new().limits([limit.parse().unwrap()]);
        self.repository.set_config(level, change).await.unwrap();
    }

    async fn levels(&self) -> Vec<String> {
        let levels = every_level(&self.repository).await.unwrap();
        // A deleted system level leaves an item without limits.
        let limited = levels.iter().filter(|(_, record)| !record.limits.is_empty());
        limited.map(|(level, _)| level.to_string()).collect()
    }
}

fn now() -> Timestamp {
    Timestamp::from_seconds(1_790_000_000)
}

#[tokio::test]
async fn withdrawing_a_file_deletes_what_it_declared_and_nothing_else() {
    let table = Table::new().await;
    let by_hand = ConfigLevel::EntityDefault(zae_limiter::EntityId::parse("user-1").unwrap());
    let change = zae_limiter::ConfigChange::new().limits(["rpm:7".parse().unwrap()]);
    table.repository.set_config(&by_hand, change).await.unwrap();
    table.declare(BOTH, "limiter/Limits").await;
    assert_eq!(table.levels().await, ["system", "resource a", "entity user-1"]);
    table.withdraw(BOTH, "limiter/Limits").await;
    assert_eq!(table.levels().await, ["entity user-1"]);
    // A second deletion, as CloudFormation may send it, changes nothing.
    table.withdraw(BOTH, "limiter/Limits").await;
    assert_eq!(table.levels().await, ["entity user-1"]);
}

#[tokio::test]
async fn a_resource_that_was_renamed_does_not_delete_the_levels_of_its_successor() {
    let table = Table::new().await;
    table.declare(BOTH, "limiter/Old").await;
    table.declare(BOTH, "limiter/New").await;
    table.withdraw(BOTH, "limiter/Old").await;
    assert_eq!(table.levels().await, ["system", "resource a"]);
    table.withdraw(BOTH, "limiter/New").await;
    assert!(table.levels().await.is_empty());
}

#[tokio::test]
async fn a_file_that_was_applied_by_hand_still_belongs_to_the_resource() {
    let table = Table::new().await;
    table.declare(BOTH, "limiter/Limits").await;
    table.apply(SYSTEM).await;
    assert_eq!(table.levels().await, ["system"]);
    table.withdraw(BOTH, "someone/Else").await;
    assert_eq!(table.levels().await, ["system"]);
    table.withdraw(BOTH, "limiter/Limits").await;
    assert!(table.levels().await.is_empty());
}

#[tokio::test]
async fn levels_that_the_file_no_longer_had_stay_when_it_is_withdrawn() {
    let table = Table::new().await;
    table.declare(SYSTEM, "limiter/Limits").await;
    let resource = ConfigLevel::Resource(zae_limiter::Resource::parse("a").unwrap());
    let change = zae_limiter::ConfigChange::new().limits(["rpm:7".parse().unwrap()]);
    table.repository.set_config(&resource, change).await.unwrap();
    // What was never managed is not deleted, though the withdrawn file names it.
    table.withdraw(BOTH, "limiter/Limits").await;
    assert_eq!(table.levels().await, ["resource a"]);
}

#[tokio::test]
async fn withdrawing_an_invalid_file_deletes_nothing() {
    let table = Table::new().await;
    table.declare(SYSTEM, "limiter/Limits").await;
    table.withdraw("system: {}", "limiter/Limits").await;
    assert_eq!(table.levels().await, ["system"]);
}

#[tokio::test]
async fn a_resource_that_never_applied_its_file_deletes_nothing() {
    let table = Table::new().await;
    table.apply(BOTH).await;
    // Its creation failed before the first write, and CloudFormation deletes it.
    table.withdraw(BOTH, "limiter/Limits").await;
    assert_eq!(table.levels().await, ["system", "resource a"]);
    // The file is still managed: a level that it no longer has is deleted.
    table.apply(SYSTEM).await;
    assert_eq!(table.levels().await, ["system"]);
}

#[tokio::test]
async fn a_repeated_deletion_spares_what_was_applied_by_hand_in_between() {
    let table = Table::new().await;
    table.declare(BOTH, "limiter/Limits").await;
    table.withdraw(BOTH, "limiter/Limits").await;
    table.apply(BOTH).await;
    table.withdraw(BOTH, "limiter/Limits").await;
    assert_eq!(table.levels().await, ["system", "resource a"]);
}

#[tokio::test]
async fn a_rename_that_is_rolled_back_gives_the_levels_back() {
    let table = Table::new().await;
    table.declare(BOTH, "limiter/Old").await;
    table.declare(BOTH, "limiter/New").await;
    // An update of the new resource does not forget the old one.
    table.declare(BOTH, "limiter/New").await;
    // CloudFormation deletes the new resource, possibly twice, and sends the old one nothing.
    table.withdraw(BOTH, "limiter/New").await;
    table.withdraw(BOTH, "limiter/New").await;
    assert_eq!(table.levels().await, ["system", "resource a"]);
    table.withdraw(BOTH, "limiter/Old").await;
    assert!(table.levels().await.is_empty());
}

#[tokio::test]
async fn levels_that_only_the_new_file_had_are_still_managed_after_a_rollback() {
    let table = Table::new().await;
    table.declare(SYSTEM, "limiter/Old").await;
    table.declare(BOTH, "limiter/New").await;
    table.withdraw(BOTH, "limiter/New").await;
    assert_eq!(table.levels().await, ["system", "resource a"]);
    // The old file is applied again: what only the new one had is deleted.
    table.declare(SYSTEM, "limiter/Old").await;
    assert_eq!(table.levels().await, ["system"]);
}

#[tokio::test]
async fn a_resource_that_takes_its_levels_back_keeps_them_when_the_other_is_deleted() {
    let table = Table::new().await;
    table.declare(BOTH, "limiter/Old").await;
    table.declare(BOTH, "limiter/New").await;
    table.declare(BOTH, "limiter/Old").await;
    table.withdraw(BOTH, "limiter/New").await;
    assert_eq!(table.levels().await, ["system", "resource a"]);
    table.withdraw(BOTH, "limiter/Old").await;
    assert!(table.levels().await.is_empty());
}

#[tokio::test]
async fn a_file_that_another_process_was_faster_than_changes_nothing() {
    let table = Table::new().await;
    let slow = "{system: {limits: {rpm: 9}}, resources: {b: {limits: {rpm: 9}}}}";
    let slow = Comparison::of(&table.repository, slow).await.unwrap();
    table.apply(BOTH).await;
    let error = slow.apply(now()).await.unwrap_err();
    assert!(
        matches!(&error, Error::Concurrent { table } if table == "limiter"),
        "{error:?}"
    );
    assert!(!error.is_missing_table());
    assert_eq!(table.levels().await, ["system", "resource a"]);
    let system = table.repository.get_config(&ConfigLevel::System).await.unwrap();
    assert_eq!(system.unwrap().limits.iter().next().unwrap().capacity().get(), 1);
    // The record is that of the first: its levels are still managed.
    table.apply("").await;
    assert!(table.levels().await.is_empty());
}

#[tokio::test]
async fn levels_that_no_file_names_are_listed_and_stay() {
    let table = Table::new().await;
    let user = zae_limiter::EntityId::parse("user-1").unwrap();
    let resource = zae_limiter::Resource::parse("b").unwrap();
    let by_hand = [
        ConfigLevel::Resource(resource.clone()),
        ConfigLevel::EntityDefault(user.clone()),
        ConfigLevel::Entity(user, resource),
    ];
    for level in &by_hand {
        table.set(level, "rpm:7").await;
    }
    table.apply(BOTH).await;
    // Resource `a` is no longer in the file, but it is managed: the next apply deletes it.
    let comparison = Comparison::of(&table.repository, SYSTEM).await.unwrap();
    let unmanaged = comparison.unmanaged().await.unwrap();
    for (_, settings) in &unmanaged {
        let limits: Vec<String> = settings.limits.iter().map(ToString::to_string).collect();
        assert_eq!(limits, ["rpm:7/min"]);
    }
    let unmanaged: Vec<ConfigLevel> = unmanaged.into_iter().map(|(level, _)| level).collect();
    assert_eq!(unmanaged, by_hand);
    comparison.apply(now()).await.unwrap();
    let left = ["system", "resource b", "entity user-1", "entity user-1 on b"];
    assert_eq!(table.levels().await, left);
}

#[tokio::test]
async fn every_setting_of_the_system_is_stored() {
    let table = Table::new().await;
    table
        .apply("system: {audit_retention_days: 30, auto_update: false, strict_version: true}")
        .await;
    let stored = table.repository.get_config(&ConfigLevel::System).await.unwrap();
    let system = stored.unwrap().system;
    assert_eq!(system.audit_retention_days, Some(30));
    assert_eq!(
        (system.auto_update, system.strict_version),
        (Some(false), Some(true))
    );
}

#[tokio::test]
async fn a_missing_table_is_told_from_other_errors() {
    let table = Table::new().await;
    table
        .client
        .delete_table()
        .table_name("limiter")
        .send()
        .await
        .unwrap();
    let error = Comparison::of(&table.repository, SYSTEM).await.unwrap_err();
    assert!(
        matches!(&error, Error::Limiter(_)) && error.is_missing_table(),
        "{error:?}"
    );
    let error = Comparison::of(&table.repository, "sistem: {}").await.unwrap_err();
    assert!(!error.is_missing_table(), "{error:?}");
}

/// The record of managed levels is written with retries. One that was written by an attempt whose response was lost is no
/// conflict with another process.
#[tokio::test(start_paused = true)]
async fn a_file_is_applied_though_responses_are_lost() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let limiter = RateLimiter::builder("limiter")
        .region("us-east-1")
        .credentials(Credentials::from_keys("key", "secret", None))
        .http_client(connection.clone())
        .create_table(true)
        .principal("ops");
    let repository = limiter.build_repository().await.unwrap();
    connection.plan("PutItem", [Fault::LostResponse; 2]);
    let comparison = Comparison::of(&repository, BOTH).await.unwrap();
    comparison.apply(now()).await.unwrap();
    let again = Comparison::of(&repository, BOTH).await.unwrap();
    assert!(again.changes().is_empty());
}
