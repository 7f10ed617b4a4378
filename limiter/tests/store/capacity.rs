//! How much of a resource is in use.

use zae_limiter::NewEntity;
use zae_limiter::usage::CapacityScope;
use zae_limiter_schema::{AttributeValue, EntityId, Item, keys};

use crate::store::support::{Stage, rpm};

on_every_store! {
    only_roots_are_summed_if_asked,
}

mod at_a_fixed_time {
    use super::capacity_is_summed_over_every_bucket_of_the_resource;

    on_stores_without_a_clock! { capacity_is_summed_over_every_bucket_of_the_resource }
}

/// A bucket of one limit, `rpm`, as the Python peer writes it.
pub(crate) fn bucket(entity: &EntityId, resource: &str, tokens: i64, refilled_at: i64) -> Item {
    let resource = resource.parse().unwrap();
    let (key, index) = (
        keys::bucket(entity, &resource),
        keys::gsi2_bucket(&resource, entity),
    );
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: i64| AttributeValue::N(number.to_string());
    Item::from(std::collections::HashMap::from([
        ("PK".to_owned(), text(&key.pk)),
        ("SK".to_owned(), text(&key.sk)),
        ("GSI2PK".to_owned(), text(&index.pk)),
        ("GSI2SK".to_owned(), text(&index.sk)),
        ("entity_id".to_owned(), text(entity.as_str())),
        ("resource".to_owned(), text(resource.as_str())),
        ("cascade".to_owned(), AttributeValue::Bool(false)),
        ("rf".to_owned(), number(refilled_at)),
        ("b_rpm_tk".to_owned(), number(tokens)),
        ("b_rpm_cp".to_owned(), number(60_000)),
        ("b_rpm_bx".to_owned(), number(60_000)),
        ("b_rpm_ra".to_owned(), number(60_000)),
        ("b_rpm_rp".to_owned(), number(60_000)),
        ("b_rpm_tc".to_owned(), number(0)),
    ]))
}

/// The time at which every stage's clock stands.
pub(crate) const NOON: i64 = 4_073_544_000_000;

fn id(number: u32) -> EntityId {
    format!("user-{number:03}").parse().unwrap()
}

async fn capacity_is_summed_over_every_bucket_of_the_resource(stage: Stage) {
    let repository = stage.repository().await;
    // More than one batch read; refilled ten seconds ago, so each has ten tokens more by now.
    stage
        .put((0..130).map(|number| bucket(&id(number), "gpt-4", 20_000, NOON - 10_000)))
        .await;
    stage
        .put([
            bucket(&id(1), "gpt-3", 0, NOON),
            bucket(&id(500), "gpt-4", -5_500, NOON),
        ])
        .await;
    let capacity = repository
        .get_resource_capacity("gpt-4", "rpm", CapacityScope::Everyone)
        .await
        .unwrap();
    assert_eq!(capacity.entities.len(), 131);
    assert_eq!(capacity.total_capacity, 131 * 60);
    assert_eq!(
        capacity.total_available,
        130 * 30 - 6,
        "a debt of five and a half tokens counts as six"
    );
    assert_eq!(
        (
            capacity.entities[3].entity.clone(),
            capacity.entities[3].available
        ),
        (id(3), 30)
    );
    assert!((capacity.entities[3].utilization_percent() - 50.0).abs() < f64::EPSILON);
    let other = repository
        .get_resource_capacity("gpt-4", "tpm", CapacityScope::Everyone)
        .await
        .unwrap();
    assert_eq!((other.entities.len(), other.total_capacity), (0, 0));
}

async fn only_roots_are_summed_if_asked(stage: Stage) {
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    repository
        .create_entity(NewEntity::new("key-1").parent("acme").cascade(true))
        .await
        .unwrap();
    repository
        .set_resource_defaults("gpt-4", [rpm(60)])
        .await
        .unwrap();
    let names: [EntityId; 3] = ["acme", "key-1", "stranger"].map(|name| name.parse().unwrap());
    stage
        .put(names.iter().map(|name| bucket(name, "gpt-4", 30_000, NOON)))
        .await;
    let roots = repository
        .get_resource_capacity("gpt-4", "rpm", CapacityScope::RootsOnly)
        .await
        .unwrap();
    let found: Vec<&str> = roots.entities.iter().map(|one| one.entity.as_str()).collect();
    assert_eq!(found, ["acme", "stranger"]);
}
