//! The numbers of pages and exports are those of the library.

use serde_json::{Value, json};
use zae_limiter::Limit;
use zae_limiter_server::UiOptions;

use crate::ui::stage::{Stage, text};

#[tokio::test]
async fn the_levels_of_an_entity_are_what_the_library_reports() {
    let stage = Stage::filled(UiOptions::default()).await;
    for entity in ["key-1", "key-2", "project-1", "user@example.com"] {
        let rows = stage.rows(&format!("/ui/entities/{entity}"), "limits").await;
        assert!(!rows.is_empty());
        for row in rows {
            let resource = row["resource"].as_str().unwrap();
            let peek = stage.limiter.acquire(entity, resource).peek().await.unwrap();
            let resolved = stage
                .limiter
                .repository()
                .resolve_limits(entity, resource)
                .await
                .unwrap();
            let own = peek.statuses().iter().find(|status| {
                status.entity.as_str() == entity && status.limit.name().as_str() == row["limit_name"]
            });
            let status: Value = serde_json::to_value(own.unwrap()).unwrap();
            for field in ["available", "burst", "capacity"] {
                assert_eq!(row[field], status[field], "{entity} {row}");
            }
            let from = resolved.limits_from.unwrap().as_str();
            let shown = row["from"].as_str().unwrap().replace("entity on resource", "own");
            let expected = match from {
                "entity" => "own",
                "entity_default" => "entity",
                other => other,
            };
            assert_eq!(shown, expected, "{entity} {row}");
        }
    }
}

#[tokio::test]
async fn a_debt_is_shown_as_one() {
    let stage = Stage::filled(UiOptions::default()).await;
    let rows = stage.rows("/ui/entities/key-2/buckets/gpt-4", "limits").await;
    let tpm = rows.iter().find(|row| row["limit_name"] == "tpm").unwrap();
    assert_eq!((&tpm["available"], &tpm["debt"]), (&json!(-520), &json!(520)));
    let page = stage.page("/ui/entities/key-2/buckets/gpt-4").await;
    assert!(page.contains("520 tokens of debt, burst 3,000"), "{page}");
    assert!(page.contains("in debt"), "{page}");
}

#[tokio::test]
async fn usage_of_an_entity_is_what_the_api_lists() {
    let stage = Stage::filled(UiOptions::default()).await;
    for window in ["hourly", "daily"] {
        let path = format!("/ui/usage?entity=key-1&resource=gpt-4&window={window}");
        let rows = stage.rows(&path, "usage").await;
        let api = format!("/v1/usage?entity=key-1&resource=gpt-4&window={window}");
        let listed = stage.server.get(&api).await.expect(200).json();
        let expected: Vec<_> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| {
                json!({
                    "window_start": item["window_start"], "window_end": item["window_end"],
                    "total_events": item["total_events"],
                    "rpm": item["counters"]["rpm"], "tpm": item["counters"]["tpm"],
                })
            })
            .collect();
        assert_eq!(rows, expected, "{window}");
    }
}

#[tokio::test]
async fn usage_of_a_resource_is_the_sum_over_its_entities() {
    let stage = Stage::filled(UiOptions::default()).await;
    let rows = stage.rows("/ui/usage?resource=gpt-4&window=daily", "usage").await;
    let today = rows
        .iter()
        .find(|row| row["window_start"] == "2026-01-31T00:00:00Z")
        .unwrap();
    let path = "/ui/usage?resource=gpt-4&window=daily&at=2026-01-31T00:00:00Z";
    let entities = stage.rows(path, "entities").await;
    assert_eq!(today["entities"], entities.len());
    for field in ["total_events", "rpm", "tpm"] {
        let sum: i64 = entities.iter().map(|row| row[field].as_i64().unwrap()).sum();
        assert_eq!(today[field], sum, "{field}");
    }
    let busiest = stage.rows("/ui?window=daily", "busiest").await;
    assert_eq!(busiest[0]["resource"], "gpt-4");
    assert_eq!(busiest[0]["total_events"], today["total_events"]);
    assert_eq!(busiest[1]["resource"], "openai/embeddings");
}

#[tokio::test]
async fn audit_events_are_those_of_the_api() {
    let stage = Stage::filled(UiOptions::default()).await;
    for subject in ["entity=key-2", "resource=gpt-4"] {
        let rows = stage.rows(&format!("/ui/audit?{subject}"), "audit").await;
        let listed = stage
            .server
            .get(&format!("/v1/audit?{subject}"))
            .await
            .expect(200)
            .json();
        let listed = listed["items"].as_array().unwrap();
        assert_eq!(rows.len(), listed.len());
        for (row, event) in rows.iter().zip(listed) {
            for field in ["event_id", "timestamp", "action", "principal"] {
                assert_eq!(row[field], event[field], "{row}");
            }
            let details: Value = serde_json::from_str(row["details"].as_str().unwrap()).unwrap();
            assert_eq!(details, event["details"]);
        }
    }
    let merged = stage.rows("/ui/audit", "audit").await;
    let times: Vec<_> = merged
        .iter()
        .map(|row| row["event_id"].as_str().unwrap())
        .collect();
    assert!(
        times.is_sorted_by(|one, other| one > other),
        "newest first: {times:?}"
    );
}

#[tokio::test]
async fn the_tree_has_what_each_level_stores() {
    let stage = Stage::filled(UiOptions::default()).await;
    let rows = stage.rows("/ui/limits?resource=gpt-4", "levels").await;
    let limits: Vec<_> = rows.iter().map(|row| (&row["level"], &row["limits"])).collect();
    assert_eq!(
        limits,
        [
            (&json!("system"), &json!("rpm:60/min tpm:6000/min")),
            (&json!("resource"), &json!("rpm:600/min tpm:90000/min:120000")),
            (&json!("entity"), &json!("rpm:30/min tpm:3000/min")),
        ]
    );
    assert_eq!(rows[1]["on_unavailable"], "allow");
}

#[tokio::test]
async fn the_export_of_the_tree_has_the_limits_of_every_entity() {
    let stage = Stage::filled(UiOptions::default()).await;
    for user in 1..=9 {
        let limits = [Limit::per_minute("rpm", user).unwrap()];
        let repository = stage.limiter.repository();
        repository
            .set_limits(format!("user-{user}"), "gpt-4", limits)
            .await
            .unwrap();
    }
    let rows = stage.rows("/ui/limits", "levels").await;
    let of_users: Vec<_> = rows
        .iter()
        .filter(|row| {
            row["entity_id"]
                .as_str()
                .is_some_and(|id| id.starts_with("user-"))
        })
        .map(|row| row["limits"].as_str().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (1..=9).map(|user| format!("rpm:{user}/min")).collect();
    assert_eq!(of_users, expected, "{rows:?}");
    let count = |level: &str| rows.iter().filter(|row| row["level"] == level).count();
    assert_eq!(
        (count("system"), count("resource"), count("entity_default")),
        (1, 2, 1),
        "{rows:?}"
    );
}

#[tokio::test]
async fn csv_and_json_have_the_same_rows() {
    let stage = Stage::filled(UiOptions::default()).await;
    let json = stage.rows("/ui/entities/key-1", "limits").await;
    let response = stage
        .server
        .get("/ui/entities/key-1?export=limits.csv")
        .await
        .expect(200);
    assert_eq!(
        response.header("content-disposition"),
        Some("attachment; filename=\"limits.csv\"")
    );
    let csv = text(&response);
    let mut lines = csv.trim_end().split("\r\n");
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    assert_eq!(
        names,
        [
            "resource",
            "limit_name",
            "available",
            "burst",
            "capacity",
            "refill",
            "from",
            "used",
            "mode"
        ]
    );
    let lines: Vec<Vec<_>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), json.len());
    for (line, row) in lines.iter().zip(&json) {
        assert_eq!(row["available"], line[2].parse::<i64>().unwrap());
        assert_eq!(row["resource"], line[0]);
    }
}

#[tokio::test]
async fn the_most_refused_entities_are_ranked_by_what_snapshots_count() {
    let stage = Stage::filled(UiOptions::default()).await;
    let rows = stage.rows("/ui?window=daily", "refused").await;
    let ranked: Vec<_> = rows
        .iter()
        .map(|row| (&row["entity_id"], &row["refusals"]))
        .collect();
    assert_eq!(
        ranked,
        [
            (&json!("user@example.com"), &json!(212)),
            (&json!("key-2"), &json!(37))
        ]
    );
}

#[tokio::test]
async fn the_api_has_the_refusals_of_the_page() {
    let stage = Stage::filled(UiOptions::default()).await;
    let path = "/v1/usage?entity=key-2&resource=gpt-4&window=daily";
    let usage = stage.server.get(path).await.expect(200).json();
    let refusals: Vec<_> = usage["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["refusals"])
        .collect();
    assert_eq!(refusals[..2], [&json!(37), &json!(0)], "{usage}");
}

/// The limit that counts money is shown in dollars, and exported in millionths of a dollar.
#[tokio::test]
async fn money_is_shown_in_dollars_on_every_page() {
    let stage = Stage::filled(UiOptions::default()).await;
    let repository = stage.limiter.repository();
    let price = "$2.50".parse().unwrap();
    let prices = zae_limiter::money::Prices {
        money_limit: "tpm".parse().unwrap(),
        token_limits: [].into(),
        ..zae_limiter::money::Prices::new(price, price)
    };
    repository.set_prices("gpt-4", prices).await.unwrap();
    for (path, texts) in [
        ("/ui", &["tpm $"][..]),
        (
            "/ui/entities/key-2",
            &[
                "$0.00052 of debt, burst $0.003",
                "\u{2212}$0.00052",
                "$0.003 / min",
            ],
        ),
        (
            "/ui/entities/key-2/buckets/gpt-4",
            &["\u{2212}$0.00052", " of $0.003<", "refills $0.003 / min"],
        ),
        (
            "/ui/resources/gpt-4?window=daily",
            &["$0.12", "tpm dollars", "dollars per day"],
        ),
        (
            "/ui/usage?resource=gpt-4&window=daily",
            &["tpm dollars", "dollars per day"],
        ),
        (
            "/ui/usage?resource=gpt-4&window=daily&at=2026-01-31T00:00:00Z",
            &["tpm dollars", "$0.0"],
        ),
        (
            "/ui/usage?entity=key-1&resource=gpt-4&window=daily",
            &["tpm dollars", "dollars per day"],
        ),
        (
            "/ui/limits",
            &["prices: input $2.50, output $2.50, money limit tpm"],
        ),
    ] {
        let page = stage.page(path).await;
        for text in texts {
            assert!(page.contains(text), "{path}: {text}: {page}");
        }
    }
    let rows = stage.rows("/ui/entities/key-2/buckets/gpt-4", "limits").await;
    let tpm = rows.iter().find(|row| row["limit_name"] == "tpm").unwrap();
    assert_eq!(tpm["available"], json!(-520));
}
