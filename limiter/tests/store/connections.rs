//! Connections as the SDK's own HTTP client keeps them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_dynamodb::config::Credentials;
use zae_limiter::RateLimiter;

/// How many connections a server has accepted, and how many requests it has read.
#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// A server that gives every request the same error and keeps the connection.
fn server(status: &'static str, error: &'static str) -> (SocketAddr, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::new(Counts::default());
    std::thread::spawn({
        let counts = counts.clone();
        move || {
            for connection in listener.incoming() {
                let counts = counts.clone();
                counts.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || serve(&connection.unwrap(), status, error, &counts));
            }
        }
    });
    (address, counts)
}

fn serve(connection: &TcpStream, status: &str, error: &str, counts: &Counts) {
    let mut requests = BufReader::new(connection);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body).unwrap();
        counts.requests.fetch_add(1, Ordering::SeqCst);
        let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{error}","message":"as told"}}"#);
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/x-amz-json-1.0\r\n");
        let response = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let mut connection = connection;
        if connection.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Connections and requests of three questions whether the table is available.
async fn asked_three_times(status: &'static str, error: &'static str) -> (usize, usize) {
    let (address, counts) = server(status, error);
    let limiter = RateLimiter::builder("my-app")
        .endpoint_url(format!("http://{address}"))
        .region("us-east-1")
        .credentials(Credentials::new("test", "test", None, None, "tests"))
        .create_table(false)
        .await
        .unwrap();
    for _ in 0..3 {
        assert!(!limiter.is_available().await);
    }
    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    (count(&counts.connections), count(&counts.requests))
}

#[tokio::test]
async fn a_connection_is_not_kept_after_a_server_error() {
    let (connections, requests) = asked_three_times("500 Internal Server Error", "InternalServerError").await;
    assert!(requests >= 3, "{requests}");
    assert_eq!(connections, requests);
}

#[tokio::test]
async fn a_connection_is_kept_after_an_error_of_the_request() {
    let (connections, requests) = asked_three_times("400 Bad Request", "ValidationException").await;
    assert_eq!((connections, requests), (1, 3));
}
