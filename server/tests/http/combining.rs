//! Many callers, few writes.

use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use zae_limiter::{EmbeddedStore, Limit};
use zae_limiter_server::Settings;
use zae_limiter_testing::connection::Connection;

use std::sync::Arc;
use std::time::Duration;

use crate::client::{TestServer, until};
use crate::connection::on_connection;

#[tokio::test]
async fn a_thousand_callers_of_one_bucket_share_a_few_writes() {
    const CALLERS: usize = 1_000;
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let limiter = on_connection(&connection)
        .default_limits([Limit::per_minute("rpm", 1_000_000).unwrap()])
        .time_budget(Duration::from_secs(60));
    let server = Arc::new(TestServer::on(limiter, Settings::default(), None).await);
    let body = || json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 }, "lease_ms": 0 });
    server.post("/v1/acquire", body()).await.expect(200);
    connection.calls();

    // The next write stays on its way until all callers have arrived.
    let (arrived, all) = oneshot::channel::<()>();
    connection.before("UpdateItem", async move {
        let _ = all.await;
    });
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (server, body) = (server.clone(), body());
        callers.spawn(async move { server.post("/v1/acquire", body).await.status.as_u16() });
    }
    until(|| server.handle.requests() == CALLERS).await;
    arrived.send(()).unwrap();
    let statuses = callers.join_all().await;
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");

    let writes = connection.operations();
    assert!(
        writes.iter().all(|operation| operation == "UpdateItem"),
        "{writes:?}"
    );
    assert!(
        writes.len() <= 20,
        "{} writes for {CALLERS} callers",
        writes.len()
    );
    assert_eq!(server.available("rpm").await, 1_000_000 - 1_001);
}
