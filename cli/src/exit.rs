//! How a command ends, for scripts.

use std::process::ExitCode;

/// The exit codes of `zae-limiter`. Those above 2 are the ones of `sysexits.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It was done; `acquire` was admitted.
    Success = 0,
    /// Anything that is none of the others.
    Error = 1,
    /// The arguments are wrong; nothing was done.
    Usage = 2,
    /// The table cannot be reached or does not answer (`EX_UNAVAILABLE`).
    Unavailable = 69,
    /// The rate limit is exceeded: try again later (`EX_TEMPFAIL`).
    Limited = 75,
    /// Left by Ctrl-C; what was begun goes on.
    Interrupted = 130,
}

impl Exit {
    /// What `--detailed-exitcode` says where there is something to change. The same number as [`Exit::Usage`], as
    /// Terraform does.
    pub const CHANGES: Self = Self::Usage;
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
