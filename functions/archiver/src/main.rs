//! The archiver as Lambda runs it.

use std::process::ExitCode;

use zae_limiter_archiver::Archiver;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    zae_limiter_function::run(Archiver::start).await
}
