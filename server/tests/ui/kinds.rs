//! Quotas and limits on calls in flight on the page.

use zae_limiter_server::UiOptions;

use crate::ui::stage::Stage;

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
