//! Why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Anybody on the network could use it.
    #[error(
        "without tokens the server only listens on loopback addresses, not on {address}; \
         give it tokens, or listen on 127.0.0.1 or [::1]"
    )]
    TokensRequired {
        /// The address.
        address: SocketAddr,
    },

    /// The address cannot be used.
    #[error("{address} cannot be listened on: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The certificate or its key cannot be used.
    #[error("the TLS file {} cannot be used: {problem}", file.display())]
    Tls {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// The operating system has no randomness, without which nobody can be let in safely.
    #[error("the operating system gives no random numbers: {reason}")]
    Randomness {
        /// What it said.
        reason: String,
    },
}
