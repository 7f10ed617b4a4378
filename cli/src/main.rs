//! The `zae-limiter` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    zae_limiter_cli::main()
}
