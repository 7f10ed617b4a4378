//! What clients see while the table is unavailable.

use std::time::Duration;

use serde_json::json;
use zae_limiter::{EmbeddedStore, OnUnavailable};
use zae_limiter_server::Settings;
use zae_limiter_testing::connection::{Connection, Fault};

use crate::client::{TestServer, limits};
use crate::connection::on_connection;

/// More than the table ever takes to respond here.
const PATIENT: Duration = Duration::from_secs(5);
/// For calls that get no response from the table.
const IMPATIENT: Duration = Duration::from_millis(50);

async fn server(connection: &Connection, policy: OnUnavailable, time_budget: Duration) -> TestServer {
    let limiter = on_connection(connection)
        .default_limits(limits())
        .on_unavailable(policy)
        .time_budget(time_budget);
    TestServer::on(limiter, Settings::default(), None).await
}

fn body() -> serde_json::Value {
    json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 } })
}

#[tokio::test]
async fn readiness_follows_the_table_and_health_does_not() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let server = server(&connection, OnUnavailable::Block, PATIENT).await;
    server.get("/readyz").await.expect(200);
    // A call that is denied is not repeated, so that it fails at once.
    connection.always(Fault::Denied);
    server.get("/readyz").await.expect(200);
    server.clock.advance(Duration::from_secs(1));
    server.get("/readyz").await.problem(503, "unavailable");
    server.get("/healthz").await.expect(200);
    connection.heal();
    server.clock.advance(Duration::from_secs(1));
    server.get("/readyz").await.expect(200);
}

#[tokio::test]
async fn checks_at_the_same_time_ask_the_table_once() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let server = server(&connection, OnUnavailable::Block, PATIENT).await;
    server.get("/readyz").await.expect(200);
    connection.calls();
    server.clock.advance(Duration::from_secs(1));
    let checks = (0..20).map(|_| server.get("/readyz"));
    for response in futures::future::join_all(checks).await {
        response.expect(200);
    }
    assert_eq!(connection.operations().len(), 1);
}

#[tokio::test]
async fn a_blocking_policy_is_an_error_that_names_no_table() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let server = server(&connection, OnUnavailable::Block, IMPATIENT).await;
    connection.always(Fault::ServerError);
    let response = server.post("/v1/acquire", body()).await;
    assert_eq!(response.header("retry-after"), Some("1"));
    let problem = response.problem(503, "unavailable");
    assert!(
        !problem["detail"].as_str().unwrap().contains("limiter"),
        "{problem}"
    );
}

#[tokio::test]
async fn an_allowing_policy_is_marked_in_the_response() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let server = server(&connection, OnUnavailable::Allow, IMPATIENT).await;
    connection.always(Fault::ServerError);
    let allowed = server.post("/v1/acquire", body()).await.expect(200);
    assert_eq!(allowed.header("ratelimit"), None);
    let json = allowed.json();
    assert_eq!(json["admission"], "allowed_while_unavailable");
    assert_eq!(json["limits"], json!([]));
    let lease = json["lease_id"].as_str().unwrap();
    // Any limit can be adjusted, since none is known.
    let path = format!("/v1/leases/{lease}/commit");
    server
        .post(&path, json!({ "adjust": { "tpm": 5 } }))
        .await
        .expect(200);
}

#[tokio::test]
async fn an_adjustment_that_cannot_be_written_yet_is_accepted_and_written_later() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let server = server(&connection, OnUnavailable::Block, PATIENT).await;
    let lease = server.post("/v1/acquire", body()).await.lease();
    connection.always(Fault::ServerError);
    let path = format!("/v1/leases/{lease}/commit");
    let accepted = server
        .post(&path, json!({ "adjust": { "tpm": 500 } }))
        .await
        .expect(202);
    assert_eq!(accepted.json()["written"], false);
    connection.heal();
    let closed = server.stopped().await;
    assert_eq!(closed.unwritten, 0);
    let written = connection
        .calls()
        .into_iter()
        .rev()
        .find(|call| call.operation == "UpdateItem");
    assert_eq!(written.unwrap().status, 200);
}

#[tokio::test]
async fn errors_that_only_the_operator_can_resolve_are_not_explained_to_clients() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let server = server(&connection, OnUnavailable::Allow, PATIENT).await;
    connection.always(Fault::Denied);
    let problem = server.post("/v1/acquire", body()).await.problem(500, "internal");
    assert_eq!(problem["detail"], "the cause is in the log of the server");
}
