//! The vectors of the peer's published unit tests, and some of ours, as one table: what the peer computes and what this
//! library computes. Where the two differ on purpose, the table says so (`peer` and `ours`).

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use zae_limiter_schema::bucket::{Params, RetryAfter, TokenBucket};
use zae_limiter_schema::keys::{self, IndexKey, Key};
use zae_limiter_schema::{
    ConfigLevel, EntityId, Limit, LimitName, Resource, Timestamp, Ulid, WindowKind, whole_tokens,
};
use zae_limiter_testing::peer_output;

fn path() -> PathBuf {
    crate::peer::script("vectors.json")
}

fn table() -> Json {
    serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap()
}

fn rows(of: &str) -> Vec<Json> {
    let rows = table()[of].as_array().unwrap().clone();
    assert!(!rows.is_empty());
    rows
}

fn number(row: &Json, field: &str) -> i128 {
    row[field]
        .as_i64()
        .unwrap_or_else(|| panic!("{field} of {row}"))
        .into()
}

/// The bucket of the peer's tests: 100,000 tokens a minute.
fn bucket(tokens: i128) -> TokenBucket {
    let params = Params::new(100_000_000, 100_000_000, 100_000_000, 60_000).unwrap();
    TokenBucket {
        params,
        tokens,
        remainder: 0,
    }
}

#[test]
fn the_table_is_what_the_peer_computes() {
    let printed = peer_output(&crate::peer::script("vectors.py"), &[path().to_str().unwrap()]);
    let found: Json = serde_json::from_slice(&printed).unwrap();
    assert_eq!(found, table());
}

#[test]
fn refills_are_the_peers() {
    for row in rows("refill") {
        let burst = number(&row, "burst");
        let params = Params::new(burst, burst, number(&row, "amount"), number(&row, "period")).unwrap();
        let before = TokenBucket {
            params,
            tokens: number(&row, "tokens"),
            remainder: 0,
        };
        let after = before.refilled(number(&row, "elapsed"));
        assert_eq!(after.tokens, number(&row, "after"), "{row}");
    }
}

#[test]
fn admissions_and_refusals_are_the_peers() {
    for row in rows("take") {
        let (bucket, elapsed) = (bucket(number(&row, "tokens")), number(&row, "elapsed"));
        assert_eq!(
            whole_tokens(bucket.available(elapsed)),
            number(&row, "available"),
            "{row}"
        );
        let taken = bucket.try_take(elapsed, number(&row, "asked") * 1_000);
        assert_eq!(
            json!(taken.ok().map(|taken| i64::try_from(taken.tokens).unwrap())),
            row["after"],
            "{row}"
        );
    }
}

#[test]
fn waits_are_exact_where_the_peer_adds_a_millisecond() {
    for row in rows("wait") {
        let (amount, deficit) = (number(&row, "amount"), number(&row, "deficit"));
        let params = Params::new(amount, amount, amount, number(&row, "period")).unwrap();
        let empty = TokenBucket {
            params,
            tokens: 0,
            remainder: 0,
        };
        let expected = match number(&row, "ours") {
            0 => RetryAfter::Now,
            millis => RetryAfter::after_millis(millis),
        };
        assert_eq!(empty.wait_for(0, deficit), expected, "{row}");
        let late = number(&row, "peer") - number(&row, "ours");
        assert!((0..=1).contains(&late), "{row}");
    }
}

#[test]
fn adjustments_are_the_peers_and_refunds_stop_at_the_burst() {
    for row in rows("force") {
        let (full, amount) = (bucket(100_000_000), number(&row, "amount") * 1_000);
        let after = if amount < 0 {
            full.credit(0, -amount)
        } else {
            full.force_take(0, amount)
        };
        assert_eq!(after.tokens, number(&row, "ours"), "{row}");
    }
}

#[test]
fn limits_are_valid_where_they_are_for_the_peer() {
    for row in rows("limits") {
        let part = |field: &str| row[field].as_u64().unwrap();
        let limit = LimitName::parse(row["name"].as_str().unwrap())
            .ok()
            .and_then(|name| {
                Limit::from_parts(
                    name,
                    part("capacity"),
                    part("burst"),
                    part("amount"),
                    part("period"),
                )
                .ok()
            });
        assert_eq!(json!(limit.is_some()), row["valid"], "{row}");
    }
}

#[test]
fn names_are_valid_where_they_are_for_the_peer() {
    for row in rows("names") {
        let text = match row["text"].as_str() {
            Some(text) => text.to_owned(),
            None => "x".repeat(usize::try_from(number(&row, "repeat")).unwrap()),
        };
        let valid = match row["kind"].as_str().unwrap() {
            "entity" => EntityId::parse(&text).is_ok(),
            _ => Resource::parse(&text).is_ok(),
        };
        assert_eq!(json!(valid), row["valid"], "{row}");
    }
}

#[test]
fn keys_are_the_peers() {
    let (entity, parent) = (
        EntityId::parse("user-123").unwrap(),
        EntityId::parse("org-abc").unwrap(),
    );
    let resource = Resource::parse("gpt-4").unwrap();
    let event = Ulid::parse("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
    let hour = WindowKind::Hourly.window_at(Timestamp::parse("2024-01-15T14:30:45Z").unwrap());
    let key = |key: Key| json!([key.pk, key.sk]);
    let index = |key: IndexKey| json!([key.pk, key.sk]);
    let ours = json!({
        "entity": key(keys::entity_meta(&entity)),
        "bucket": key(keys::bucket(&entity, &resource)),
        "config of the system": key(keys::config(&ConfigLevel::System)),
        "config of a resource": key(keys::config(&ConfigLevel::Resource(resource.clone()))),
        "config of an entity": key(keys::config(&ConfigLevel::Entity(entity.clone(), resource.clone()))),
        "version": key(keys::version()),
        "resources": key(keys::resource_registry()),
        "resources with entity configs": key(keys::entity_config_registry()),
        "audit event": key(keys::audit("user-123", event)),
        "usage of an hour": key(keys::usage(&entity, &resource, hour)),
        "child": index(keys::gsi1_child(&parent, &entity)),
        "bucket by resource": index(keys::gsi2_bucket(&resource, &entity)),
        "usage by resource": index(keys::gsi2_usage(&resource, hour, &entity)),
    });
    assert_eq!(ours, table()["keys"]);
}
