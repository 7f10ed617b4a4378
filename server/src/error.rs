//! Why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Everyone on the network could use it.
    #[error(
        "without tokens the server only listens on loopback addresses, not on {address}; \
         give it tokens, or listen on 127.0.0.1 or [::1]"
    )]
    TokensRequired {
        /// The address.
        address: SocketAddr,
    },

    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The file with the bearer tokens cannot be used.
    #[error("cannot use the token file {}: {problem}", file.display())]
    Tokens {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// The options of a replica are invalid.
    #[error("{problem}")]
    Replica {
        /// What is wrong with them.
        problem: String,
    },

    /// The certificate or its key cannot be used.
    #[error("cannot use the TLS file {}: {problem}", file.display())]
    Tls {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// The operating system has no random numbers, which secrets are made of.
    #[error("the operating system has no random numbers: {reason}")]
    Randomness {
        /// What it said.
        reason: String,
    },
}
