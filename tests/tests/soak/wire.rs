//! Calls of DynamoDB that the SDK clients of the tests have no crate for.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Sends one call and returns the response.
pub(crate) fn call(port: u16, target: &str, body: &Value) -> Value {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let body = body.to_string();
    let credential = "test/20260101/us-east-1/dynamodb/aws4_request";
    let request = format!(
        "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nx-amz-target: {target}\r\n\
         x-amz-date: 20260101T000000Z\r\ncontent-type: application/x-amz-json-1.0\r\n\
         authorization: AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host;x-amz-date, Signature=0\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    connection.read_to_end(&mut response).unwrap();
    let head = response.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    assert!(
        response.starts_with(b"HTTP/1.1 200"),
        "{target}: {}",
        String::from_utf8_lossy(&response)
    );
    serde_json::from_slice(&response[head + 4..]).unwrap()
}
