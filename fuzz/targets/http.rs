//! Requests to the server, over a real connection.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::Builder;
use zae_limiter::{Limit, RateLimiter};
use zae_limiter_server::Server;
use zae_limiter_testing::serve_in_thread;

/// What is asked, by the first byte of the input.
const ROUTES: [&str; 16] = [
    "POST /v1/acquire",
    "POST /v1/leases/abc/adjust",
    "POST /v1/leases/abc/commit",
    "POST /v1/entities",
    "PATCH /v1/entities/user-1",
    "PUT /v1/limits?resource=gpt-4",
    "GET /v1/usage?entity=user-1&window=hourly",
    "POST /v1/nothing",
    "PUT /v1/prices?resource=gpt-4",
    "PUT /v1/mode?resource=gpt-4",
    "POST /v1/top-up",
    "POST /v1/reset",
    "POST /v1/adjust",
    "POST /v1/leases/abc/renew",
    "POST /v1/buckets/refresh?entity=user-1&resource=gpt-4",
    "DELETE /v1/limits?entity=user-1",
];

/// What is asked with a query of the client's, by the first byte of the input.
const QUERIED: [&str; 9] = [
    "GET /v1/limits",
    "GET /v1/mode",
    "GET /v1/prices",
    "GET /v1/entities",
    "GET /v1/usage",
    "GET /v1/audit",
    "DELETE /v1/mode",
    "DELETE /v1/prices",
    "POST /v1/buckets/refresh",
];

/// A server on an embedded table, started once and left running.
fn server() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        serve_in_thread(Builder::new_current_thread(), |started| async move {
            let limit = Limit::per_minute("rpm", 1_000_000).unwrap();
            let limiter = RateLimiter::embedded().default_limits([limit]).await.unwrap();
            let server = Server::builder(limiter)
                .bind("127.0.0.1:0".parse().unwrap())
                .await
                .unwrap();
            started.send(server.address()).unwrap();
            server.run(std::future::pending()).await;
        })
    })
}

/// A request with this body: whatever it is, the response is a success or says what is wrong with the request.
pub(crate) fn body(data: &[u8]) {
    let Some((route, body)) = data.split_first() else {
        return;
    };
    // Calls that wait for tokens would only take long.
    if body.windows(7).any(|part| part == b"wait_ms") {
        return;
    }
    request(ROUTES[usize::from(*route) % ROUTES.len()], body);
}

/// A request with this query. What no URL has is escaped.
pub(crate) fn query(data: &[u8]) {
    let Some((route, query)) = data.split_first() else {
        return;
    };
    let mut line = format!("{}?", QUERIED[usize::from(*route) % QUERIED.len()]);
    for byte in query {
        if byte.is_ascii_alphanumeric() || b"=&%+-_.:".contains(byte) {
            line.push(char::from(*byte));
        } else {
            // Appending to a string cannot fail.
            let _ = write!(line, "%{byte:02X}");
        }
    }
    request(&line, b"");
}

fn request(route: &str, body: &[u8]) {
    let mut connection = TcpStream::connect(server()).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let head = format!(
        "{route} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(body).unwrap();
    let mut response = Vec::new();
    connection.read_to_end(&mut response).unwrap();
    let response = String::from_utf8_lossy(&response);
    let status: u16 = response
        .get(9..12)
        .and_then(|status| status.parse().ok())
        .unwrap_or_default();
    assert!((200..500).contains(&status), "{route} {body:?}: {response}");
}
