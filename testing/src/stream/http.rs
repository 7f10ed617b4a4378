//! The smallest HTTP/1.1 server that the SDK and the Lambda runtime are content with.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

pub(crate) enum Reply {
    Response {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// The connection is closed without a word.
    HangUp,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self::Response {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }
}

/// A server on a free port of this machine, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(respond: impl Fn(Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let (respond, over) = (Arc::new(respond), Arc::clone(&ended));
        thread::spawn(move || {
            for connection in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let respond = Arc::clone(&respond);
                thread::spawn(move || {
                    // A client that disconnects in the middle is part of the tests.
                    let _ = connection.and_then(|connection| converse(&connection, &*respond));
                });
            }
        });
        Self { address, ended }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn converse(connection: &TcpStream, respond: &dyn Fn(Request) -> Reply) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection);
    while let Some(request) = read(&mut reader)? {
        let Reply::Response {
            status,
            headers,
            body,
        } = respond(request)
        else {
            return Ok(());
        };
        let mut text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            text.extend([name, ": ", &value, "\r\n"]);
        }
        text += "\r\n";
        text += &body;
        (&mut &*connection).write_all(text.as_bytes())?;
    }
    Ok(())
}

fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut parts = line.split_whitespace().map(str::to_owned);
    let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if headers
        .get("transfer-encoding")
        .is_some_and(|encoding| encoding == "chunked")
    {
        read_chunks(reader, &mut body)?;
    } else {
        let length = headers
            .get("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        reader.take(length).read_to_end(&mut body)?;
    }
    Ok(Some(Request {
        method,
        path,
        headers,
        body,
    }))
}

fn read_chunks(reader: &mut BufReader<&TcpStream>, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(std::io::Error::other)?;
        reader.take(size).read_to_end(body)?;
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(());
        }
    }
}
