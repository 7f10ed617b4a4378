//! The aggregator as Lambda runs it.

use std::process::ExitCode;

use zae_limiter_aggregator::Aggregator;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    zae_limiter_function::run(Aggregator::start).await
}
