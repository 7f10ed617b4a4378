//! As much of HTTP/1.1 as a DynamoDB client sends: one head, one body with a known length.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One request or response.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The next message of a connection, or nothing at its end.
    pub(crate) async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Self> {
        let split = loop {
            if let Some(place) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break place + 4;
            }
            more(stream, buffer).await?;
        };
        let head = String::from_utf8_lossy(&buffer[..split]).into_owned();
        let length = header(&head, "content-length")?.parse::<usize>().ok()?;
        while buffer.len() < split + length {
            more(stream, buffer).await?;
        }
        let body = buffer[split..split + length].to_vec();
        buffer.drain(..split + length);
        Some(Self { head, body })
    }

    /// Sends it.
    pub(crate) async fn write(&self, stream: &mut TcpStream) -> Option<()> {
        let bytes = [self.head.as_bytes(), &self.body].concat();
        stream.write_all(&bytes).await.ok()
    }

    /// The operation, such as `UpdateItem`.
    pub(crate) fn operation(&self) -> String {
        let target = header(&self.head, "x-amz-target").unwrap_or_default();
        target.rsplit('.').next().unwrap_or_default().to_owned()
    }
}

/// The partition key of the item that a request is about.
pub(crate) fn partition_key(body: &[u8]) -> Option<String> {
    let body = std::str::from_utf8(body).ok()?;
    let (_, rest) = body.split_once("\"PK\"")?;
    // `:{"S":"ENTITY#user-0"}`, with or without blanks.
    rest.split('"').nth(3).map(str::to_owned)
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let read = stream.read_buf(buffer).await.ok()?;
    (read > 0).then_some(())
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.split("\r\n");
    lines.find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
