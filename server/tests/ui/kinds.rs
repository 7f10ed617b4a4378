//! Quotas and limits on calls in flight on the page.

use zae_limiter::money::{Estimate, Prices, Usage};
use zae_limiter::{ConfigLevel, Mode};
use zae_limiter_server::UiOptions;

use crate::ui::stage::{Stage, fill_kinds};

#[tokio::test]
async fn a_bucket_shows_what_was_used_until_when_and_which_permits_are_held() {
    let stage = Stage::empty(UiOptions::default(), None).await;
    let limits = [
        "rpm:60",
        "spend:500 per month in Europe/Berlin",
        "parallel:8 at once for 10min",
    ];
    let limits = limits.map(|text| text.parse().unwrap());
    let repository = stage.limiter.repository();
    repository.set_resource_defaults("gpt-4", limits).await.unwrap();
    let call = stage.limiter.acquire("key-1", "gpt-4").consume("rpm", 1);
    let call = call.consume("spend", 125).consume("parallel", 3);
    let lease = call.await.unwrap();

    let bucket = "/ui/entities/key-1/buckets/gpt-4";
    let page = stage.page(bucket).await;
    for shown in [
        "59</span> of 60 tokens",
        "refills 60 / min",
        "125</span> of 500 tokens used",
        "125 of 500 tokens used",
        "500 per month in Europe/Berlin, resets ",
        "2026-01-31 23:00:00 UTC",
        "3</span> of 8 permits held",
        "8 at once for 10min",
    ] {
        assert!(page.contains(shown), "{shown} is not in {page}");
    }
    let rows = stage.rows(bucket, "limits").await;
    let shown = rows.iter().map(|row| {
        (
            row["limit_name"].as_str(),
            row["used"].as_i64(),
            row["resets_at"].as_str(),
        )
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            (Some("parallel"), Some(3), None),
            (Some("rpm"), None, None),
            (Some("spend"), Some(125), Some("2026-01-31T23:00:00Z")),
        ],
        "{rows:?}"
    );
    let entity = stage.page("/ui/entities/key-1").await;
    for shown in ["125 of 500 tokens used", "3 of 8 permits held"] {
        assert!(entity.contains(shown), "{shown} is not in {entity}");
    }
    lease.commit().await.unwrap();
    let page = stage.page(bucket).await;
    assert!(page.contains("0</span> of 8 permits held"), "{page}");
}

#[tokio::test]
async fn modes_prices_and_thresholds_are_shown_where_they_apply() {
    let stage = Stage::filled(UiOptions::default()).await;
    let _holds_permits = fill_kinds(&stage.limiter).await;
    let observed = "<strong>Mode: observe</strong> (from resource). Calls that the limits do not allow pass";
    let quota = "$50.00 per month in Europe/Berlin alert at 50% 80%";
    let prices = "input $3.00, output $15.00";
    for (path, texts) in [
        (
            "/ui/entities/team-1/buckets/claude",
            &[
                observed,
                "$41.25</span> of $50.00",
                quota,
                "3</span> of 8 permits held",
            ][..],
        ),
        (
            "/ui/entities/team-1",
            &["$41.25 of $50.00 used", ">observe<", ">disabled<"],
        ),
        ("/ui/resources/claude", &[observed, quota, prices]),
        (
            "/ui/limits",
            &["mode: observe", "mode: disabled", &format!("usd:{quota}"), prices],
        ),
        (
            "/ui/resources/claude-next",
            &["<strong>Mode: disabled</strong> (from resource)"],
        ),
    ] {
        let page = stage.page(path).await;
        for text in texts {
            assert!(page.contains(text), "{path}: {text} is not in {page}");
        }
    }
    // Nothing is said about limits that are enforced.
    for path in [
        "/ui/entities/key-1",
        "/ui/entities/key-2/buckets/gpt-4",
        "/ui/resources/gpt-4",
    ] {
        let page = stage.page(path).await;
        assert!(!page.contains("class=\"mode\""), "{path}: {page}");
    }
}

#[tokio::test]
async fn a_bucket_names_the_parent_for_whose_sake_calls_are_refused() {
    let stage = Stage::filled(UiOptions::default()).await;
    let parent = ConfigLevel::EntityDefault("project-1".parse().unwrap());
    let repository = stage.limiter.repository();
    repository.set_mode(&parent, Mode::Disabled).await.unwrap();
    let page = stage.page("/ui/entities/key-1/buckets/gpt-4").await;
    let named =
        "<strong>Every call is refused</strong>: the parent <a href=\"/ui/entities/project-1\">project-1</a>";
    assert!(page.contains(named), "{page}");
}

/// A budget has no prices of its own: the models have.
#[tokio::test]
async fn a_budget_that_models_share_is_shown_in_dollars_before_and_after_its_top_up() {
    let stage = Stage::empty(UiOptions::default(), None).await;
    let repository = stage.limiter.repository();
    for model in ["small", "large", "reasoning"] {
        let limits = ["tpm:10000000".parse().unwrap()];
        repository.set_resource_defaults(model, limits).await.unwrap();
        let prices = Prices::new("$10".parse().unwrap(), "$20".parse().unwrap());
        repository.set_prices(model, prices).await.unwrap();
    }
    let budget = ["usd:$10 per month alert at 80% 100%".parse().unwrap()];
    repository.set_limits("team-1", "budget", budget).await.unwrap();
    for (model, input) in [("small", 200_000), ("large", 300_000), ("reasoning", 500_000)] {
        let estimate = Estimate::new(input);
        let call = stage.limiter.acquire("team-1", model).consume_estimate(&estimate);
        let lease = call.and("budget").consume_estimate(&estimate).await.unwrap();
        lease.commit_usage(&Usage::new(input, 0)).await.unwrap();
    }
    let (entity, bucket) = ("/ui/entities/team-1", "/ui/entities/team-1/buckets/budget");
    let page = stage.page(bucket).await;
    for shown in [
        "$10.00</span> of $10.00",
        "$10.00 per month alert at 80% 100%, resets ",
    ] {
        assert!(page.contains(shown), "{shown} is not in {page}");
    }
    let top_up = repository.top_up("team-1", "budget", "usd", 5_000_000);
    top_up.reason("approved by finance").await.unwrap();
    let page = stage.page(bucket).await;
    for shown in [
        "$10.00</span> of $15.00",
        "$10.00 of $15.00 used",
        "topped up by $5.00, resets ",
    ] {
        assert!(page.contains(shown), "{shown} is not in {page}");
    }
    let page = stage.page(entity).await;
    for shown in [
        "$10.00 of $15.00 used",
        "approved by finance",
        "topped_up",
        "<ins>$10 per month alert at 80% 100%</ins>",
    ] {
        assert!(page.contains(shown), "{shown} is not in {page}");
    }
    let rows = stage.rows(bucket, "limits").await;
    assert_eq!(
        (&rows[0]["used"], &rows[0]["available"], &rows[0]["burst"]),
        (&10_000_000.into(), &5_000_000.into(), &15_000_000.into()),
        "exports have micro-dollars"
    );
}
