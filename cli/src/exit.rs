//! Exit codes for scripts.

use std::process::ExitCode;

/// The exit codes of `zae-limiter`. 69 and 75 are from `sysexits.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded; `acquire` was admitted.
    Success = 0,
    /// The command failed for a reason without its own code.
    Error = 1,
    /// The arguments are invalid; nothing was changed.
    Usage = 2,
    /// The table or AWS cannot be reached or does not respond (`EX_UNAVAILABLE`).
    Unavailable = 69,
    /// Refused by a limit; retry later (`EX_TEMPFAIL`).
    Limited = 75,
    /// Interrupted by Ctrl-C; operations already started in AWS continue.
    Interrupted = 130,
}

impl Exit {
    /// The exit code of `--detailed-exitcode` when there are changes: 2, as in Terraform and the same as
    /// [`Exit::Usage`].
    pub const CHANGES: Self = Self::Usage;
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
