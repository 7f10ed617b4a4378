//! Connections as the SDK's own HTTP client keeps them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_dynamodb::config::Credentials;
use zae_limiter::RateLimiter;

/// How many requests a server has read, and the most on one connection.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicUsize,
    most_on_one_connection: AtomicUsize,
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
                std::thread::spawn(move || serve(&connection.unwrap(), status, error, &counts));
            }
        }
    });
    (address, counts)
}

fn serve(connection: &TcpStream, status: &str, error: &str, counts: &Counts) {
    let mut requests = BufReader::new(connection);
    for number in 1.. {
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
        counts.most_on_one_connection.fetch_max(number, Ordering::SeqCst);
        let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{error}","message":"as told"}}"#);
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/x-amz-json-1.0\r\n");
        let response = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let mut connection = connection;
        if connection.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Asks three times whether the table is available: the number of requests, and the most on one connection.
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
    (count(&counts.requests), count(&counts.most_on_one_connection))
}

// On a busy machine a connection may be made that no request uses, so connections are not counted.

#[tokio::test]
async fn a_connection_is_not_kept_after_a_server_error() {
    let (requests, most_on_one) = asked_three_times("500 Internal Server Error", "InternalServerError").await;
    assert!(requests >= 3, "{requests}");
    assert_eq!(most_on_one, 1);
}

#[tokio::test]
async fn a_connection_is_kept_after_an_error_of_the_request() {
    let (requests, most_on_one) = asked_three_times("400 Bad Request", "ValidationException").await;
    assert_eq!(requests, 3);
    assert!(most_on_one > 1);
}
