//! The local cloud that all tests of a binary share.

use aws_config::SdkConfig;
use zae_limiter_stack::Clients;
use zae_limiter_testing::MiniStack;

/// Configuration that leads to the local cloud.
pub(crate) fn aws() -> SdkConfig {
    MiniStack::shared().aws()
}

pub(crate) fn clients() -> Clients {
    Clients::new(&aws())
}
