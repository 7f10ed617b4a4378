//! The server: listens, serves connections, and settles everything before it ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use zae_limiter::{CapacityMeter, Clock, RateLimiter, SystemClock};

use crate::api;
use crate::app::App;
use crate::auth::{BearerTokens, TokenSource};
use crate::connections::{Connections, Protocol};
use crate::envoy::{self, EnvoyMapping};
use crate::error::Error;
use crate::replicas::{Replica, ReplicaOptions};
use crate::settings::Settings;
use crate::tls::{Tls, TlsFiles};
use crate::ui::{self, UiOptions};

/// How often expired leases are committed.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often the files of the certificate and of the tokens are read.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// How a server is set up. [`bind`](ServerBuilder::bind) starts to listen.
#[derive(Debug)]
#[must_use = "a builder does nothing until it is bound"]
pub struct ServerBuilder {
    limiter: RateLimiter,
    tokens: Option<BearerTokens>,
    token_file: Option<PathBuf>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    meter: Option<CapacityMeter>,
    tls: Option<TlsFiles>,
    envoy: Option<(EnvoyMapping, SocketAddr)>,
    ui: UiOptions,
    ui_only: bool,
    replica: Option<ReplicaOptions>,
}

/// A server that listens. It responds once it [runs](Server::run).
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
    router: Router,
    listener: TcpListener,
    address: SocketAddr,
    grpc: Option<Grpc>,
    tls: Option<Arc<Tls>>,
}

/// Where the rate limit service of Envoy is served.
#[derive(Debug)]
struct Grpc {
    mapping: EnvoyMapping,
    listener: TcpListener,
    address: SocketAddr,
}

/// A view of a running server.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    app: Arc<App>,
    tls: Option<Arc<Tls>>,
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
            token_file: None,
            settings: Settings::default(),
            clock: Arc::new(SystemClock::new()),
            meter: None,
            tls: None,
            envoy: None,
            ui: UiOptions::default(),
            ui_only: false,
            replica: None,
        }
    }

    /// Where it listens. The port is known even if 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves the rate limit service of Envoy, if it does.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc.as_ref().map(|grpc| grpc.address)
    }

    /// A view of the server that can be used while it runs.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            app: self.app.clone(),
            tls: self.tls.clone(),
        }
    }

    /// Serves until `stop` completes. Then `/readyz` responds 503 and requests that wait for tokens end. After
    /// [`Settings::drain_time`] the server accepts no more connections, lets requests finish within
    /// [`Settings::shutdown_grace`], commits every lease that is still held, and shuts the limiter down.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Closed {
        let handle = self.handle();
        let app = self.app;
        let settings = &app.settings;
        let mut background = JoinSet::new();
        background.spawn(expire_leases(app.clone()));
        background.spawn(reload_files(handle));
        let connections = |router, protocol| Connections::new(router, protocol, self.tls.clone(), settings);
        let mut http = connections(self.router, Protocol::http1(settings));
        let mut grpc = self.grpc.map(|grpc| {
            let router = envoy::router(&app, grpc.mapping);
            (connections(router, Protocol::http2(settings)), grpc.listener)
        });
        tokio::select! {
            () = http.accept(&self.listener) => {}
            () = accept_grpc(grpc.as_mut()) => {}
            () = stop => {}
        }
        app.stop();
        tokio::select! {
            () = http.accept(&self.listener) => {}
            () = accept_grpc(grpc.as_mut()) => {}
            () = tokio::time::sleep(settings.drain_time) => {}
        }
        drop(self.listener);
        let grace = settings.shutdown_grace;
        let finish_grpc = async {
            if let Some((connections, listener)) = grpc {
                drop(listener);
                connections.finish(grace).await;
            }
        };
        tokio::join!(http.finish(grace), finish_grpc);
        background.shutdown().await;
        let committed = u64::try_from(app.leases.settle().await).unwrap_or(u64::MAX);
        let left = app.limiter.shutdown().await;
        let unwritten = left.unwritten_total;
        tracing::info!(committed, unwritten, "the server has stopped");
        Closed { committed, unwritten }
    }
}

impl ServerBuilder {
    /// The bearer tokens that are accepted. Without them everyone who can connect may do everything, and the server
    /// only listens on loopback addresses and refuses requests whose field `Host` names another machine.
    pub fn tokens(mut self, tokens: BearerTokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Reads these tokens again when the file changes. Sessions of tokens that are no longer in it end. A file that cannot
    /// be used changes nothing.
    pub fn token_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.token_file = Some(file.into());
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

    /// Serves TLS instead of plain text. The files are read again when they change.
    pub fn tls(mut self, files: TlsFiles) -> Self {
        self.tls = Some(files);
        self
    }

    /// Also serves the rate limit service of Envoy (RLS v3) over gRPC, on an address of its own.
    pub fn envoy(mut self, mapping: EnvoyMapping, address: SocketAddr) -> Self {
        self.envoy = Some((mapping, address));
        self
    }

    /// This server is one of several on the table. A request for a lease of another one is forwarded to it.
    pub fn replica(mut self, options: ReplicaOptions) -> Self {
        self.replica = Some(options);
        self
    }

    /// How the UI under `/ui` is set up: read-only unless set.
    pub fn ui(mut self, options: UiOptions) -> Self {
        self.ui = options;
        self
    }

    /// Serves only `/ui` and `/healthz`: neither `/v1` nor `/metrics`. The login of [`UiOptions::login_once`] does not
    /// protect those.
    pub fn ui_only(mut self) -> Self {
        self.ui_only = true;
        self
    }

    /// Listens on the address.
    pub async fn bind(self, address: SocketAddr) -> Result<Server, Error> {
        let tokens = match (self.tokens, &self.token_file) {
            (None, Some(file)) => Some(BearerTokens::read(file)?),
            (tokens, _) => tokens,
        };
        let addresses = [Some(address), self.envoy.as_ref().map(|(_, address)| *address)];
        let mut open = addresses
            .into_iter()
            .flatten()
            .filter(|address| !address.ip().is_loopback());
        if let (None, Some(address)) = (&tokens, open.next()) {
            return Err(Error::TokensRequired { address });
        }
        if self.tls.is_some() && self.replica.is_some() {
            return Err(Error::Replica {
                problem:
                    "replicas reach each other over plain HTTP, so --advertise cannot be used with TLS; \
                          end TLS at the load balancer"
                        .to_owned(),
            });
        }
        let replica = self.replica.map(Replica::new).transpose()?;
        let tls = self.tls.map(Tls::load).transpose()?.map(Arc::new);
        let (listener, address) = listen(address).await?;
        let grpc = match self.envoy {
            Some((mapping, address)) => {
                let (listener, address) = listen(address).await?;
                Some(Grpc {
                    mapping,
                    listener,
                    address,
                })
            }
            None => None,
        };
        let tokens = TokenSource::new(tokens, self.token_file);
        let app = App::new(
            self.limiter,
            tokens,
            self.settings,
            self.clock,
            self.meter,
            replica,
        );
        let app = Arc::new(app);
        let api = if self.ui_only {
            api::health_router()
        } else {
            api::router(&app).0
        };
        let router = api.merge(ui::router(&app, self.ui, tls.is_some())?);
        let router = router.layer(middleware::from_fn_with_state(app.clone(), api::observe));
        Ok(Server {
            app,
            router,
            listener,
            address,
            grpc,
            tls,
        })
    }
}

impl ServerHandle {
    /// How many leases are held.
    pub fn leases(&self) -> usize {
        self.app.leases.held()
    }

    /// How many requests under `/v1` are in progress.
    pub fn requests(&self) -> usize {
        self.app.pools.api.taken()
    }

    /// How many leases expired and were committed by the server.
    pub fn expired_leases(&self) -> u64 {
        self.app.leases.expired()
    }

    /// Reads the files of the certificate now instead of within ten seconds. True if they have changed. If they cannot
    /// be used, the certificate that was read last stays in use.
    pub fn reload_tls(&self) -> Result<bool, Error> {
        self.tls.as_ref().map_or(Ok(false), |tls| tls.reload())
    }

    /// Reads the file of the tokens now instead of within ten seconds. True if they have changed. If it cannot be used, the
    /// tokens that were read last stay valid.
    pub fn reload_tokens(&self) -> Result<bool, Error> {
        self.app.reload_tokens()
    }

    /// Reads the files of the certificate and of the tokens now, and logs what has changed.
    pub fn reload(&self) {
        match self.reload_tls() {
            Ok(true) => tracing::info!("new connections get the new certificate"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the certificate that was read last stays in use"),
        }
        match self.reload_tokens() {
            Ok(true) => tracing::info!("the bearer tokens have changed"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the bearer tokens that were read last stay valid"),
        }
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
        app.metrics.upkeep();
    }
}

/// Uses the files of the certificate and of the tokens as they are now.
async fn reload_files(server: ServerHandle) {
    let first = tokio::time::Instant::now() + RELOAD_INTERVAL;
    let mut interval = tokio::time::interval_at(first, RELOAD_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let server = server.clone();
        let _ = tokio::task::spawn_blocking(move || server.reload()).await;
    }
}

/// Accepts connections of Envoy, if the server does.
async fn accept_grpc(grpc: Option<&mut (Connections, TcpListener)>) {
    match grpc {
        Some((connections, listener)) => connections.accept(listener).await,
        None => std::future::pending().await,
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
