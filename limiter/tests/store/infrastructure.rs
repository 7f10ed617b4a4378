//! What a declared stack means for the table.

use zae_limiter::audit::AuditSubject;
use zae_limiter::stack::{Change, Code, LambdaFunction, StackOptions};
use zae_limiter::{ConfigChange, ConfigLevel, NewEntity, RateLimiter, StackSetup};

use crate::store::support::{Stage, page};

on_every_store! {
    the_declared_retention_is_stored_if_whoever_deployed_did_not,
    a_stored_retention_is_left_alone,
}

fn options() -> StackOptions {
    StackOptions::builder()
        .audit_retention_days(30)
        .enable_audit_archival(false)
        .enable_alarms(false)
        .build()
        .unwrap()
}

async fn retention(limiter: &RateLimiter) -> (Option<u32>, u64) {
    let system = limiter
        .repository()
        .get_config(&ConfigLevel::System)
        .await
        .unwrap();
    system.map_or((None, 0), |config| {
        (config.system.audit_retention_days, config.config_version)
    })
}

async fn the_declared_retention_is_stored_if_whoever_deployed_did_not(stage: Stage) {
    let limiter = stage.builder().stack(options()).await.unwrap();
    assert_eq!(retention(&limiter).await, (None, 0));
    limiter
        .repository()
        .create_entity(NewEntity::new("user-1"))
        .await
        .unwrap();
    assert_eq!(retention(&limiter).await, (Some(30), 1));
    let subject = AuditSubject::Entity("user-1".parse().unwrap());
    let events = limiter
        .repository()
        .list_audit_events(&subject, &page(1))
        .await
        .unwrap()
        .items;
    assert_eq!(
        events[0].ttl,
        Some(events[0].timestamp.seconds() + 30 * 86_400),
        "from the first event on"
    );
    let told = limiter
        .repository()
        .list_audit_events(&AuditSubject::System, &page(10))
        .await
        .unwrap();
    assert_eq!(told.items.len(), 1, "it is a change like any other");
}

async fn a_stored_retention_is_left_alone(stage: Stage) {
    let limiter = stage.limiter().await;
    let change = ConfigChange::new().audit_retention_days(7);
    limiter
        .repository()
        .set_config(&ConfigLevel::System, change)
        .await
        .unwrap();
    let limiter = stage.builder().stack(options()).await.unwrap();
    limiter
        .repository()
        .create_entity(NewEntity::new("user-1"))
        .await
        .unwrap();
    assert_eq!(retention(&limiter).await, (Some(7), 1));
}

#[tokio::test]
async fn functions_keep_their_code_where_the_system_or_else_the_builder_says_so() {
    let stage = Stage::ministack();
    // A file named bootstrap, in an archive that lists nothing.
    let header = [&b"PK\x03\x04"[..], &[0; 22], &[9, 0, 0, 0], b"bootstrap"].concat();
    let end = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    let with_code = async |code: &str, auto_update: bool| {
        let archive = [&header, code.as_bytes(), &end].concat();
        let setup = StackSetup::new(options()).code(Code::bundled([(LambdaFunction::Aggregator, archive)]));
        let builder = stage.builder().create_table(false);
        builder.stack(setup).auto_update(auto_update).await.unwrap()
    };
    let ensure = async |limiter: &RateLimiter| {
        let outcome = limiter.ensure_infrastructure().await.unwrap().unwrap();
        outcome.change
    };
    let (older, newer) = (with_code("older", true).await, with_code("newer", true).await);
    assert_eq!(
        ensure(&older).await,
        Change::Created,
        "there is no table to ask yet"
    );
    assert_eq!(retention(&older).await.0, Some(30));
    let reluctant = with_code("newer", false).await;
    assert_eq!(ensure(&reluctant).await, Change::None, "nothing is stored yet");
    let allow = async |allowed: bool| {
        let change = ConfigChange::new().auto_update(allowed);
        older
            .repository()
            .set_config(&ConfigLevel::System, change)
            .await
            .unwrap();
    };
    allow(false).await;
    assert_eq!(ensure(&newer).await, Change::None);
    allow(true).await;
    assert_eq!(
        ensure(&reluctant).await,
        Change::Updated,
        "what is stored decides"
    );
    assert_eq!(ensure(&newer).await, Change::None);
}

#[tokio::test]
async fn building_ensures_only_a_declared_stack_on_aws() {
    let message =
        async |builder: zae_limiter::RateLimiterBuilder| builder.ensure(true).await.unwrap_err().to_string();
    let none = message(RateLimiter::builder("app").region("eu-west-1")).await;
    assert!(none.contains("ensure") && none.contains(".stack("), "{none}");
    let embedded = message(RateLimiter::embedded().stack(options())).await;
    assert!(embedded.contains("has no stack"), "{embedded}");
}

#[tokio::test]
async fn building_a_limiter_brings_its_stack_about() {
    let stage = Stage::ministack();
    let bare = options().to_builder().enable_aggregator(false).build().unwrap();
    let builder = || stage.builder().create_table(false).stack(bare.clone());
    let limiter = builder().ensure(true).await.unwrap();
    assert_eq!(retention(&limiter).await.0, Some(30));
    let again = limiter.ensure_infrastructure().await.unwrap().unwrap();
    assert_eq!(again.change, Change::None);
    // The same without a limiter.
    let repository = builder().ensure(true).build_repository().await.unwrap();
    assert!(repository.get_version().await.unwrap().is_some());
}
