//! A server that takes responses as CloudFormation's bucket does.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// What was sent in one request.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) request_line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Value,
}

/// A server on a free port. It returns one status after the other, and repeats the last.
pub(crate) struct Bucket {
    address: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Bucket {
    pub(crate) fn returning(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&sent);
        // Ends with the process of the test.
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let Some(sent) = read(&connection) else { continue };
                // Stored before the response, after which the test reads it.
                let mut heard = heard.lock().unwrap();
                let status = statuses[heard.len().min(statuses.len() - 1)];
                heard.push(sent);
                drop(heard);
                let response =
                    format!("HTTP/1.1 {status} ok\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                // The client may have closed the connection.
                drop(connection.write_all(response.as_bytes()));
            }
        });
        Self { address, sent }
    }

    /// A pre-signed URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/response?X-Amz-Signature=5ec4e7", self.address)
    }

    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// The only response.
    pub(crate) fn response(&self) -> Value {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent[0].body.clone()
    }
}

/// The request on a connection, or nothing if it ends too early.
fn read(connection: &TcpStream) -> Option<Sent> {
    let mut reader = BufReader::new(connection);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_ascii_lowercase());
    }
    let length = lines
        .iter()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Sent {
        request_line: lines.remove(0),
        headers: lines,
        body: serde_json::from_slice(&body).unwrap(),
    })
}
