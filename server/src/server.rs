//! The server: listens, serves connections, and settles everything before it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use zae_limiter::{CapacityMeter, Clock, RateLimiter, SystemClock};

use crate::api;
use crate::app::App;
use crate::auth::BearerTokens;
use crate::error::Error;
use crate::settings::Settings;

/// How often expired leases are committed.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait after a connection could not be accepted, such as for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a server is set up. [`bind`](ServerBuilder::bind) starts to listen.
#[derive(Debug)]
#[must_use = "a builder does nothing until it is bound"]
pub struct ServerBuilder {
    limiter: RateLimiter,
    tokens: Option<BearerTokens>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    meter: Option<CapacityMeter>,
}

/// A server that listens. It answers once it [runs](Server::run).
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
/// use zae_limiter_server::Server;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
/// let server = Server::builder(limiter).bind("127.0.0.1:0".parse()?).await?;
/// println!("listening on {}", server.address());
/// let stop = async { /* such as tokio::signal::ctrl_c() */ };
/// let closed = server.run(stop).await;
/// assert_eq!(closed.unwritten, 0);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
}

/// A view of a running server.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    app: Arc<App>,
}

/// What a server did before it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// Leases that were still held and were committed as taken.
    pub committed: u64,
    /// Changes that could not be written.
    pub unwritten: u64,
}

impl Server {
    /// A server on this limiter's table.
    pub fn builder(limiter: RateLimiter) -> ServerBuilder {
        ServerBuilder {
            limiter,
            tokens: None,
            settings: Settings::default(),
            clock: Arc::new(SystemClock::new()),
            meter: None,
        }
    }

    /// Where it listens. The port is known even if 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A view of the server that can be used while it runs.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            app: self.app.clone(),
        }
    }

    /// Serves until `stop` is ready. Then it accepts no more connections, lets requests finish within
    /// [`Settings::shutdown_grace`], commits every lease that is still held, and shuts the limiter down.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Closed {
        let app = self.app;
        let expiry = tokio::spawn(expire_leases(app.clone()));
        let mut connections = Connections::new(&app);
        tokio::select! {
            () = connections.accept(&self.listener) => {}
            () = stop => {}
        }
        drop(self.listener);
        app.stop();
        connections.finish(app.settings.shutdown_grace).await;
        expiry.abort();
        let committed = u64::try_from(app.leases.settle().await).unwrap_or(u64::MAX);
        let left = app.limiter.shutdown().await;
        let unwritten = left.unwritten_total;
        tracing::info!(committed, unwritten, "the server has stopped");
        Closed { committed, unwritten }
    }
}

impl ServerBuilder {
    /// The bearer tokens that are accepted. Without them everybody who can connect may do everything, and the server
    /// only listens on loopback addresses.
    pub fn tokens(mut self, tokens: BearerTokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Other settings than the default ones.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Another clock than the machine's, for the expiry of leases and idempotency keys.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The meter that the limiter was built with, to show calls and capacity at `/metrics`.
    pub fn meter(mut self, meter: CapacityMeter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Listens on the address.
    pub async fn bind(self, address: SocketAddr) -> Result<Server, Error> {
        if self.tokens.is_none() && !address.ip().is_loopback() {
            return Err(Error::TokensRequired { address });
        }
        let failed = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let app = App::new(self.limiter, self.tokens, self.settings, self.clock, self.meter);
        Ok(Server {
            app: Arc::new(app),
            listener,
            address,
        })
    }
}

impl ServerHandle {
    /// How many leases are held.
    pub fn leases(&self) -> usize {
        self.app.leases.held()
    }

    /// How many requests under `/v1` are being served.
    pub fn requests(&self) -> usize {
        self.app.requests_in_progress()
    }

    /// How many leases were committed because nobody ended them in time.
    pub fn expired_leases(&self) -> u64 {
        self.app.leases.expired()
    }

    /// Commits the leases that have expired, as the server does once a second.
    pub async fn expire_leases(&self) {
        self.app.leases.expire().await;
    }
}

async fn expire_leases(app: Arc<App>) {
    let mut interval = tokio::time::interval(EXPIRY_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        app.leases.expire().await;
    }
}

/// The open connections of a server.
struct Connections {
    router: Router,
    builder: http1::Builder,
    graceful: GracefulShutdown,
    tasks: JoinSet<()>,
    slots: Arc<Semaphore>,
}

impl Connections {
    fn new(app: &Arc<App>) -> Self {
        let (router, _) = api::router(app);
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(app.settings.header_timeout);
        let most = app.settings.max_connections.min(Semaphore::MAX_PERMITS);
        Self {
            router,
            builder,
            graceful: GracefulShutdown::new(),
            tasks: JoinSet::new(),
            slots: Arc::new(Semaphore::new(most)),
        }
    }

    /// Serves connections until it is dropped.
    async fn accept(&mut self, listener: &TcpListener) {
        while let Ok(slot) = self.slots.clone().acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => self.serve(stream, slot),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn serve(&mut self, stream: TcpStream, slot: tokio::sync::OwnedSemaphorePermit) {
        // Responses are small; waiting to fill packets would only delay them.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(self.router.clone());
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let watched = self.graceful.watch(connection);
        self.tasks.spawn(async move {
            // Clients go away, send garbage or are too slow: none of it is an error of the server.
            if let Err(error) = watched.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(slot);
        });
    }

    /// Lets requests finish, then closes all connections.
    async fn finish(mut self, grace: Duration) {
        if tokio::time::timeout(grace, self.graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!(?grace, "requests did not finish in time and are cut off");
        }
        self.tasks.shutdown().await;
    }
}
