//! A server in the process, for what the pages say about it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use serde_json::Value;
use tokio::sync::oneshot;
use zae_limiter::{Limit, RateLimiter};
use zae_limiter_server::Server;

/// A server on an embedded table, with limits that hardly refill. It ends with this value.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Serving {
    pub(crate) fn start() -> Self {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let limit = |name, capacity| Limit::custom(name, capacity, capacity, 1, 86_400).unwrap();
                let limits = [limit("rpm", 100), limit("tpm", 10_000)];
                let limiter = RateLimiter::embedded().default_limits(limits).await.unwrap();
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let server = Server::builder(limiter).bind(address).await.unwrap();
                tell.send(server.address()).unwrap();
                server.run(async { drop(stopped.await) }).await;
            });
        });
        Self {
            address: told.recv().unwrap(),
            _stop: stop,
        }
    }

    /// The JSON at a path.
    pub(crate) fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        serde_json::from_str(body).unwrap()
    }
}
