//! What the clients talk to: DynamoDB in a thread of its own, and responses that were recorded from it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use zae_limiter_testing::serve_in_thread;

use crate::http::{Message, partition_key};

/// Runs a server on a free port of this machine, in a thread with a runtime of its own.
fn in_a_thread<Serve>(serve: impl FnOnce(TcpListener) -> Serve + Send + 'static) -> SocketAddr
where
    Serve: Future<Output = ()>,
{
    serve_in_thread(Builder::new_current_thread(), |started| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        started.send(listener.local_addr().unwrap()).unwrap();
        serve(listener).await;
    })
}

/// dynoxide's HTTP server on an empty database.
pub(crate) fn dynamodb() -> SocketAddr {
    in_a_thread(|listener| async {
        dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()).await;
    })
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    /// Asks DynamoDB and keeps its responses to writes.
    Record,
    /// Returns what was kept, after this time.
    Replay(Duration),
}

/// The recorded responses to writes.
#[derive(Debug, Default)]
struct Kept {
    /// By partition key.
    by_item: HashMap<String, Message>,
    last: Option<Message>,
}

/// An endpoint that isolates the client: it returns the last recorded response to a write of the same item, or to any write if
/// there is none, and asks DynamoDB for the rest.
#[derive(Debug, Clone)]
pub(crate) struct Canned {
    upstream: SocketAddr,
    mode: Arc<Mutex<Mode>>,
    kept: Arc<Mutex<Kept>>,
}

impl Canned {
    /// Starts it in front of DynamoDB; it records until it is told otherwise.
    pub(crate) fn start(upstream: SocketAddr) -> (Self, SocketAddr) {
        let canned = Self {
            upstream,
            mode: Arc::new(Mutex::new(Mode::Record)),
            kept: Arc::default(),
        };
        let served = canned.clone();
        let address = in_a_thread(|listener| async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Without this, small responses wait for acknowledgments.
                stream.set_nodelay(true).unwrap();
                tokio::spawn(served.clone().serve(stream));
            }
        });
        (canned, address)
    }

    pub(crate) fn record(&self) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = Mode::Record;
    }

    pub(crate) fn replay_after(&self, delay: Duration) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = Mode::Replay(delay);
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut buffer = Vec::new();
        let Ok(mut upstream) = TcpStream::connect(self.upstream).await else {
            return;
        };
        while let Some(request) = Message::read(&mut stream, &mut buffer).await {
            let Some(response) = self.respond(&request, &mut upstream).await else {
                return;
            };
            if response.write(&mut stream).await.is_none() {
                return;
            }
        }
    }

    async fn respond(&self, request: &Message, upstream: &mut TcpStream) -> Option<Message> {
        let is_write = request.operation() == "UpdateItem";
        let mode = *self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Mode::Replay(delay)) = (is_write, mode) {
            let kept = self.kept_for(request);
            if kept.is_some() {
                if !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
                return kept;
            }
        }
        request.write(upstream).await?;
        let response = Message::read(upstream, &mut Vec::new()).await?;
        if is_write {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(key) = partition_key(&request.body) {
                kept.by_item.insert(key, response.clone());
            }
            kept.last = Some(response.clone());
        }
        Some(response)
    }

    fn kept_for(&self, request: &Message) -> Option<Message> {
        let key = partition_key(&request.body).unwrap_or_default();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_item.get(&key).or(kept.last.as_ref()).cloned()
    }
}
