//! Commands that errors recommend. The tests of the command line parse each of them.

/// Deletes a stack whose creation failed and creates it again.
pub const RECREATE: &str = "zae-limiter deploy --recreate-failed";
/// Retries a change that was rolled back.
pub const RETRY: &str = "zae-limiter deploy --retry-rolled-back";
/// Continues a rollback that failed.
pub const CONTINUE_ROLLBACK: &str = "zae-limiter deploy --continue-rollback";
/// Continues a rollback without a resource; a logical id follows.
pub const SKIP: &str = "zae-limiter deploy --continue-rollback --skip";
/// Turns termination protection off.
pub const UNPROTECT: &str = "zae-limiter deploy --no-termination-protection";
/// Deletes a stack and keeps its table.
pub const DELETE: &str = "zae-limiter delete";
/// Deletes a stack without a resource; a logical id follows.
pub const RETAIN: &str = "zae-limiter delete --retain";
