//! What operators can set.

use std::time::Duration;

/// Limits on what one server accepts. Every setting has a default.
///
/// ```
/// use zae_limiter_server::Settings;
///
/// let mut settings = Settings::default();
/// settings.max_leases = 10_000;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// How long a lease is held if the request does not say: one minute.
    pub lease_time: Duration,
    /// The longest time for which a lease can be requested: one hour.
    pub max_lease_time: Duration,
    /// The longest time that a request can wait for tokens: one minute.
    pub max_wait: Duration,
    /// How many leases are held at the same time: 100,000. Those of Envoy are at most half of them.
    pub max_leases: usize,
    /// For how long the response to an `Idempotency-Key` is kept: ten minutes.
    pub idempotency_ttl: Duration,
    /// How many idempotency keys are kept: 100,000. The oldest is dropped first.
    pub max_idempotency_keys: usize,
    /// The largest request body in bytes: 256 KiB.
    pub max_body_bytes: usize,
    /// How long a client may take to send the head of a request, to finish a TLS handshake, or to begin to speak HTTP/2:
    /// 10 seconds.
    pub header_timeout: Duration,
    /// How long a client may take to send the body of a request: 10 seconds.
    pub body_timeout: Duration,
    /// How long a gRPC connection may be open without progress: 10 minutes. Then it is closed.
    pub idle_timeout: Duration,
    /// How long an HTTP/1 connection may wait for its next request: 75 seconds, longer than load balancers keep theirs.
    pub keep_alive_timeout: Duration,
    /// How long a client may take to read any part of a response: 20 seconds. Then the connection is closed.
    pub write_timeout: Duration,
    /// How many requests under `/v1` are in progress at the same time: 4,096. Further ones get 503. A request counts once
    /// its body has arrived.
    pub max_requests: usize,
    /// How many of them may wait for tokens at the same time: 1,024. Further ones get 503.
    pub max_waiting: usize,
    /// How many acquires use the table at the same time: 4,096. Further ones wait in line for up to 5 seconds and then get 503.
    /// A table in a file makes one write at a time: with too many in line there, calls would run out of time and count as an
    /// outage.
    pub max_acquires: usize,
    /// How many requests under `/ui` are in progress at the same time: 128. Further ones get 503.
    pub max_ui_requests: usize,
    /// How many requests for `/readyz` are in progress at the same time: 64. Further ones get 503.
    pub max_health_requests: usize,
    /// How many gRPC requests of Envoy are in progress at the same time: 4,096. Further ones get `UNAVAILABLE`.
    pub max_grpc_requests: usize,
    /// How many connections are open at the same time on each address: 10,000. Further ones wait to be accepted.
    pub max_connections: usize,
    /// How long the server accepts connections after it was told to stop, while `/readyz` responds 503: 1 second. Load
    /// balancers stop sending requests in this time.
    pub drain_time: Duration,
    /// How long requests may take to finish after the listeners are closed: 10 seconds.
    pub shutdown_grace: Duration,
}

impl Settings {
    /// The default settings for a table in a file or in memory: at most 16 acquires use it at the same time. A file takes as many as
    /// a slow disk can write within the time of a call.
    pub fn embedded() -> Self {
        Self {
            max_acquires: 16,
            ..Self::default()
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_time: Duration::from_secs(60),
            max_lease_time: Duration::from_secs(3600),
            max_wait: Duration::from_secs(60),
            max_leases: 100_000,
            idempotency_ttl: Duration::from_secs(600),
            max_idempotency_keys: 100_000,
            max_body_bytes: 256 * 1024,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(600),
            keep_alive_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(20),
            max_requests: 4_096,
            max_waiting: 1_024,
            max_acquires: 4_096,
            max_ui_requests: 128,
            max_health_requests: 64,
            max_grpc_requests: 4_096,
            max_connections: 10_000,
            drain_time: Duration::from_secs(1),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
