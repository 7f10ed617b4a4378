//! Rate limiting over HTTP and JSON, and over gRPC for Envoy, for programs in any language.
//!
//! A server holds one [`RateLimiter`](zae_limiter::RateLimiter) and the leases of its clients. Requests for one bucket
//! that arrive together are combined into one write. The guide `docs/guide/server.md` shows the interface;
//! `/openapi.json` describes it.
//!
//! ```
//! use std::net::{Ipv4Addr, SocketAddr};
//! use zae_limiter::RateLimiter;
//! use zae_limiter_server::Server;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = RateLimiter::embedded().await?;
//! let server = Server::builder(limiter).bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
//! println!("listening on http://{}", server.address());
//! let stop = async { /* completes when the server should stop */ };
//! server.run(stop).await;
//! # Ok(()) }
//! ```
//!
//! - `api`: routes, requests and responses
//! - `auth`: bearer tokens and scopes
//! - `leases`: the pure lease registry, and the leases in it
//! - `envoy`: the rate limit service of Envoy (RLS v3)
//! - `idempotency`: the pure memory of idempotency keys
//! - `metrics`: what `/metrics` shows
//! - `pools`: how many requests of each kind are in progress at a time
//! - `problem`: errors as problem details
//! - `replicas`: which server holds a lease, and how others reach it
//! - `ui`: limits, levels, usage and the audit trail in the browser
//! - `connections`, `tls`: what listeners accept
//! - `server`: expiry, and the order in which things end

mod api;
mod app;
mod auth;
mod config_level;
mod connections;
mod envoy;
mod error;
mod extract;
mod idempotency;
mod leases;
mod log_limit;
mod metrics;
mod pools;
mod problem;
mod replicas;
mod server;
mod settings;
mod tls;
mod ui;

pub use auth::{BearerTokens, InvalidTokens, Scope};
pub use envoy::{EnvoyMapping, InvalidMapping};
pub use error::Error;
pub use replicas::ReplicaOptions;
pub use server::{Closed, Server, ServerBuilder, ServerHandle};
pub use settings::Settings;
pub use tls::TlsFiles;
pub use ui::{LoginToken, StackHealth, UiOptions};
