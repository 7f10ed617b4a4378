//! A mapping in shadow mode refuses nobody and shows whom it would refuse.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::grpc::client::{TestServer, calls, codes, descriptor, request};
use crate::grpc::messages::Code;

#[tokio::test]
async fn refusals_of_a_shadow_pass_and_are_counted() {
    let server = TestServer::start().await;
    let trial = || descriptor(&[("user", "ada"), ("kind", "trial")]);
    server.ok(request(10, [trial()])).await;
    assert_eq!(server.left("trial-ada", "rpm").await, 0, "a shadow takes tokens");
    let response = server.ok(request(1, [trial(), calls("ada")])).await;
    assert_eq!(codes(&response.statuses), [Code::Ok, Code::Ok]);
    assert_eq!(response.statuses[0].limit_remaining, 0);
    assert!(response.raw_body.is_empty());
    assert_eq!(server.left("ada", "rpm").await, 9, "what is no shadow is counted");

    let metrics = metrics(&server).await;
    let line = r#"zae_limiter_rls_shadow_refusals_total{mapping="trial"} 1"#;
    assert!(
        metrics.lines().any(|shown| shown == line),
        "{line} is not in\n{metrics}"
    );
}

async fn metrics(server: &TestServer) -> String {
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}
