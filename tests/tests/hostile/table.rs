//! Items of the table that somebody has damaged: a clear error or a safe repair, never a panic, a loop or an admission.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::error::Internal;
use zae_limiter::{EmbeddedStore, Error, Limit, NewEntity, RateLimiter};

use crate::hostile::mutate::Mutator;

const TABLE: &str = "hostile";
const BURST: u64 = 5;

/// A table in which the bucket of user-1, and that of its parent org if it has one, is used up.
struct Stage {
    store: EmbeddedStore,
    client: Client,
}

impl Stage {
    async fn used_up(with_parent: bool) -> Self {
        let store = EmbeddedStore::memory().unwrap();
        let stage = Self {
            client: Client::from_conf(store.sdk_config().build()),
            store,
        };
        let limiter = stage.limiter().await;
        let repository = limiter.repository();
        repository.create_entity(NewEntity::new("org")).await.unwrap();
        let user = NewEntity::new("user-1");
        let user = if with_parent {
            user.parent("org").cascade(true)
        } else {
            user
        };
        repository.create_entity(user).await.unwrap();
        for entity in ["org", "user-1"] {
            let limit = Limit::custom("rpm", 1, BURST, 1, Limit::MAX_PERIOD_SECONDS).unwrap();
            repository.set_limits(entity, "gpt-4", [limit]).await.unwrap();
        }
        limiter
            .acquire("user-1", "gpt-4")
            .consume("rpm", BURST)
            .await
            .unwrap()
            .commit()
            .await
            .unwrap();
        assert!(matches!(stage.acquire().await, Err(Error::Refused(_))));
        stage
    }

    /// A process that has seen nothing yet.
    async fn limiter(&self) -> RateLimiter {
        RateLimiter::embedded_in(&self.store)
            .name(TABLE)
            .create_table(true)
            .time_budget(Duration::from_secs(2))
            .await
            .unwrap()
    }

    /// One token, within a time in which everything that ends has ended.
    async fn acquire(&self) -> Result<(), Error> {
        let limiter = self.limiter().await;
        let call = async {
            limiter
                .acquire("user-1", "gpt-4")
                .consume("rpm", 1)
                .await?
                .commit()
                .await
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), call).await;
        ended.expect("it does not end")
    }

    async fn items(&self) -> Vec<HashMap<String, AttributeValue>> {
        let found = self.client.scan().table_name(TABLE).send().await.unwrap();
        found.items.unwrap_or_default()
    }

    async fn put(&self, item: HashMap<String, AttributeValue>) {
        self.client
            .put_item()
            .table_name(TABLE)
            .set_item(Some(item))
            .send()
            .await
            .unwrap();
    }
}

/// What a value may have become. An earlier time of the last refill is a valid one, so it is left out.
fn damages(name: &str, value: &AttributeValue) -> Vec<Option<AttributeValue>> {
    let text = |text: &str| Some(AttributeValue::S(text.to_owned()));
    let number = |number: &str| Some(AttributeValue::N(number.to_owned()));
    let mut damages = vec![
        None,
        text(""),
        text("nonsense"),
        text("#"),
        Some(AttributeValue::Bool(true)),
        Some(AttributeValue::Null(true)),
        Some(AttributeValue::L(vec![])),
        Some(AttributeValue::M(HashMap::new())),
        Some(AttributeValue::B(Blob::new([0, 159, 146, 150]))),
        number("0.5"),
        number("0"),
        number("-1"),
        number("-99999999999999999999999999999999999999"),
    ];
    if name == "rf" {
        damages.retain(|damage| *damage != number("0"));
    }
    if !matches!(value, AttributeValue::N(_)) {
        damages.push(number("99999999999999999999999999999999999999"));
    }
    damages
}

/// Damages every attribute that matters in every way. Returns those after which a call was admitted.
async fn damage_everything(with_parent: bool) -> Vec<String> {
    let stage = Stage::used_up(with_parent).await;
    let intact = stage.items().await;
    let (mut cases, mut admitted, mut errors) = (0, vec![], 0);
    for item in &intact {
        let key = format!("{} {}", item["PK"].as_s().unwrap(), item["SK"].as_s().unwrap());
        let relevant = ["ENTITY#", "SYSTEM#"].iter().any(|start| key.starts_with(start));
        let names = item
            .keys()
            .filter(|name| !["PK", "SK"].contains(&name.as_str()) && !name.starts_with("GSI"));
        for name in names.filter(|_| relevant) {
            for damage in damages(name, &item[name]) {
                let mut damaged = item.clone();
                match damage.clone() {
                    Some(value) => drop(damaged.insert(name.clone(), value)),
                    None => drop(damaged.remove(name)),
                }
                // The buckets as they were, whatever was made of the last damage.
                let is_bucket = |one: &&HashMap<String, AttributeValue>| {
                    one["SK"].as_s().is_ok_and(|key| key.starts_with("#BUCKET#"))
                };
                for bucket in intact.iter().filter(is_bucket) {
                    stage.put(bucket.clone()).await;
                }
                stage.put(damaged).await;
                cases += 1;
                let ended = stage.acquire().await;
                stage.put(item.clone()).await;
                match ended {
                    Ok(()) => admitted.push(format!("{key} {name} {damage:?}")),
                    Err(Error::Refused(_)) => {}
                    Err(error) => {
                        errors += 1;
                        assert!(!error.to_string().is_empty());
                    }
                }
            }
        }
    }
    println!("{cases} damages: {errors} errors, {} admitted", admitted.len());
    admitted
}

#[tokio::test]
async fn no_damage_to_an_entity_its_parent_or_their_records_admits_or_hangs() {
    assert_eq!(damage_everything(true).await, Vec::<String>::new());
}

#[tokio::test]
async fn no_damage_to_an_entity_by_itself_admits_or_hangs() {
    assert_eq!(damage_everything(false).await, Vec::<String>::new());
}

/// Any number of attributes at once, drawn the same way in every run. `schema/tests/damage.rs` decides on every subset; here the
/// client does, with its reads, retries and writes.
#[tokio::test]
async fn a_bucket_that_has_lost_attributes_at_random_admits_nothing_while_one_of_ours_is_left() {
    let stage = Stage::used_up(false).await;
    let bucket = stage.items().await.into_iter().find(|item| {
        let key = |name: &str| item[name].as_s().unwrap().clone();
        (key("PK"), key("SK")) == ("ENTITY#user-1".to_owned(), "#BUCKET#gpt-4".to_owned())
    });
    let bucket = bucket.unwrap();
    let mut names: Vec<&String> = bucket
        .keys()
        .filter(|name| !["PK", "SK"].contains(&name.as_str()))
        .collect();
    names.sort();
    let mut draw = Mutator::new(98, &[]);
    let (mut errors, mut refusals) = (0, 0);
    for _ in 0..300 {
        let mut damaged = bucket.clone();
        for name in &names {
            if draw.below(3) == 0 {
                damaged.remove(*name);
            }
        }
        let ours = |name: &String| ["cf", "ev"].contains(&name.as_str()) || name.starts_with("o_");
        if !damaged.keys().any(ours) {
            continue;
        }
        stage.put(damaged.clone()).await;
        match stage.acquire().await {
            Ok(()) => panic!("admitted by {damaged:?}"),
            Err(Error::Refused(_)) => refusals += 1,
            Err(Error::Internal(Internal::Malformed(_))) => errors += 1,
            Err(error) => panic!("{error} by {damaged:?}"),
        }
    }
    println!("{errors} errors, {refusals} refusals");
    assert!(errors > 0 && refusals > 0);
}
