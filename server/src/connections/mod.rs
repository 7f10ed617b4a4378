//! Connections: accepted, decrypted, served, and closed at the end.

mod activity;
mod guarded;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use activity::Activity;
use guarded::Guarded;

use crate::settings::Settings;
use crate::tls::{Alpn, Tls};

/// How long to wait after a connection could not be accepted, such as for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often an HTTP/2 connection is checked for a client that is gone.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The bytes that every HTTP/2 client sends first.
const PREFACE_LENGTH: usize = 24;
/// Requests at a time on one HTTP/2 connection.
const MAX_STREAMS: u32 = 100;
/// The most bytes of header fields of an HTTP/2 request.
const MAX_HEADER_BYTES: u32 = 16 * 1024;

/// The most bytes of the head of an HTTP/1 request.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The most gRPC health checks and watches at a time on one connection.
const MAX_HEALTH_STREAMS: usize = 4;
/// The requests that stay open for as long as the client wants.
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// The client of a connection, in the extensions of its requests.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) health_streams: Arc<Semaphore>,
}

impl Peer {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            health_streams: Arc::new(Semaphore::new(MAX_HEALTH_STREAMS)),
        }
    }
}

/// The connections of one listener.
pub(crate) struct Connections {
    router: Router,
    protocol: Protocol,
    tls: Option<Arc<Tls>>,
    tasks: JoinSet<()>,
    /// Of this listener alone, so that those of another cannot use them up.
    slots: Arc<Semaphore>,
    times: Times,
    stopping: watch::Sender<bool>,
    crowded: watch::Sender<bool>,
}

/// Why connections shall end after the requests that are in progress.
#[derive(Debug, Clone)]
struct Ending {
    /// The server stops.
    stopping: watch::Receiver<bool>,
    /// All slots are taken: clients that hold connections without requests must not keep out others.
    crowded: watch::Receiver<bool>,
}

impl Ending {
    async fn begins(&mut self) {
        tokio::select! {
            _ = self.stopping.wait_for(|stopping| *stopping) => {}
            _ = self.crowded.wait_for(|crowded| *crowded) => {}
        }
    }
}

/// How long clients may take.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// For the TLS handshake, the head of the first HTTP/1 request, and the first bytes of HTTP/2.
    head: Duration,
    /// Without progress on an HTTP/2 connection.
    idle: Duration,
    /// To read a part of a response.
    write: Duration,
}

/// What the connections speak.
#[derive(Debug, Clone)]
pub(crate) enum Protocol {
    Http1(http1::Builder),
    /// With prior knowledge, as gRPC does.
    Http2(http2::Builder<TokioExecutor>),
}

impl Protocol {
    pub(crate) fn http1(settings: &Settings) -> Self {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .max_buf_size(MAX_HEAD_BYTES)
            // Also the time between requests, which load balancers expect to be longer than their own.
            .header_read_timeout(settings.keep_alive_timeout);
        Self::Http1(builder)
    }

    pub(crate) fn http2(settings: &Settings) -> Self {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEADER_BYTES)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(settings.header_timeout);
        Self::Http2(builder)
    }

    fn alpn(&self) -> Alpn {
        match self {
            Self::Http1(_) => Alpn::Http1,
            Self::Http2(_) => Alpn::Http2,
        }
    }

    /// Serves until the client or the server ends the connection. The head of the first request has to arrive in time.
    async fn serve<S>(
        &self,
        stream: S,
        router: Router,
        peer: SocketAddr,
        mut ending: Ending,
        times: Times,
    ) -> Result<(), hyper::Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (stream, read) = Guarded::new(stream, times.write);
        let peer = Peer::new(peer);
        let activity = Activity::default();
        let watching = activity.clone();
        let router = TowerToHyperService::new(router);
        let service = service_fn(move |request: Request<Incoming>| {
            let stays_open = request.uri().path() == WATCH;
            let mut request = watching.request(request);
            request.extensions_mut().insert(peer.clone());
            let responded = router.call(request);
            let watching = watching.clone();
            async move { Ok::<_, Infallible>(watching.response(responded.await?, stays_open)) }
        });
        match self {
            Self::Http1(builder) => {
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                let mut connection = std::pin::pin!(connection);
                let first_head = tokio::time::sleep(times.head);
                let mut first_head = std::pin::pin!(first_head);
                let mut waits_for_head = true;
                loop {
                    tokio::select! {
                        // Reads what has arrived before it looks at the clock.
                        biased;
                        ended = connection.as_mut() => return ended,
                        () = ending.begins() => break,
                        () = first_head.as_mut(), if waits_for_head => {}
                    }
                    if activity.requests() == 0 {
                        tracing::debug!("a client did not send a request in time");
                        return Ok(());
                    }
                    waits_for_head = false;
                }
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => return ended,
                    () = first_head.as_mut(), if waits_for_head => {}
                }
                if activity.requests() == 0 {
                    return Ok(());
                }
                connection.await
            }
            Self::Http2(builder) => {
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                let mut connection = std::pin::pin!(connection);
                let mut steps = None;
                let mut patience = times.head;
                loop {
                    tokio::select! {
                        // Reads what has arrived before it looks at the clock.
                        biased;
                        ended = connection.as_mut() => return ended,
                        () = ending.begins() => break,
                        () = tokio::time::sleep(patience) => {}
                    }
                    if read.load(Ordering::Relaxed) < PREFACE_LENGTH {
                        tracing::debug!("a client did not begin to speak HTTP/2 in time");
                        return Ok(());
                    }
                    // Pings keep a connection open. Only requests that go on are progress.
                    if steps == Some(activity.steps()) && !activity.stays_open() {
                        tracing::debug!("an HTTP/2 connection without progress is closed");
                        connection.as_mut().graceful_shutdown();
                        let closed = tokio::time::timeout(times.head, connection).await;
                        return closed.unwrap_or(Ok(()));
                    }
                    steps = Some(activity.steps());
                    patience = times.idle;
                }
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    }
}

impl Connections {
    pub(crate) fn new(
        router: Router,
        protocol: Protocol,
        tls: Option<Arc<Tls>>,
        settings: &Settings,
    ) -> Self {
        let most = settings.max_connections.min(Semaphore::MAX_PERMITS);
        Self {
            router,
            protocol,
            tls,
            tasks: JoinSet::new(),
            slots: Arc::new(Semaphore::new(most)),
            times: Times {
                head: settings.header_timeout,
                idle: settings.idle_timeout,
                write: settings.write_timeout,
            },
            stopping: watch::Sender::new(false),
            crowded: watch::Sender::new(false),
        }
    }

    /// Serves connections until it is dropped.
    pub(crate) async fn accept(&mut self, listener: &TcpListener) {
        while let Ok(slot) = self.slots.clone().acquire_owned().await {
            let is_crowded = self.slots.available_permits() == 0;
            self.crowded
                .send_if_modified(|crowded| std::mem::replace(crowded, is_crowded) != is_crowded);
            match listener.accept().await {
                Ok((stream, peer)) => self.serve(stream, peer, slot),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn serve(&mut self, stream: TcpStream, peer: SocketAddr, slot: OwnedSemaphorePermit) {
        // Responses are small; waiting to fill packets would only delay them.
        let _ = stream.set_nodelay(true);
        let (router, protocol) = (self.router.clone(), self.protocol.clone());
        let times = self.times;
        let mut ending = Ending {
            stopping: self.stopping.subscribe(),
            crowded: self.crowded.subscribe(),
        };
        let Some(tls) = self.tls.clone() else {
            self.tasks.spawn(async move {
                ended(protocol.serve(stream, router, peer, ending, times).await);
                drop(slot);
            });
            return;
        };
        self.tasks.spawn(async move {
            let handshake = tokio::time::timeout(times.head, tls.accept(stream, protocol.alpn()));
            let shaken = tokio::select! {
                shaken = handshake => shaken,
                // A client that has not finished its handshake has no request to lose.
                _ = ending.stopping.wait_for(|stopping| *stopping) => return,
            };
            match shaken {
                Ok(Ok(stream)) => ended(protocol.serve(stream, router, peer, ending, times).await),
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
            drop(slot);
        });
    }

    /// Lets requests finish, then closes all connections.
    pub(crate) async fn finish(mut self, grace: Duration) {
        self.stopping.send_replace(true);
        let finished = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, finished).await.is_err() {
            tracing::warn!(?grace, "requests did not finish in time and are cut off");
        }
        self.tasks.shutdown().await;
    }
}

/// Clients disconnect, send garbage or are too slow: none of it is an error of the server.
fn ended(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
