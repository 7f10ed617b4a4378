//! The engines that can run a local cloud.

use std::fmt;

use clap::ValueEnum;

use super::ready;

/// A program that emulates AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Engine {
    /// A local process, installed from a Python package
    Ministack,
    /// A Docker container
    Localstack,
}

impl Engine {
    /// The path that returns 200 once the cloud is ready.
    pub(super) const fn ready_path(self) -> &'static str {
        match self {
            Self::Ministack => "/_ministack/ready",
            Self::Localstack => "/_localstack/health",
        }
    }
}

/// The engine of a local cloud on this port that `local up` did not start, such as one of Docker Compose.
pub(super) fn responding(port: u16) -> Option<Engine> {
    // MiniStack also responds at the paths of LocalStack.
    [Engine::Ministack, Engine::Localstack]
        .into_iter()
        .find(|engine| ready::responds(port, engine.ready_path()))
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ministack => "MiniStack",
            Self::Localstack => "LocalStack",
        })
    }
}
