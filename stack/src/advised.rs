//! Commands that errors advise. The command's own tests hold them against its parser.

/// Deletes a stack whose creation failed, and creates it again.
pub const RECREATE: &str = "zae-limiter deploy --recreate-failed";
/// Tries a change again that was rolled back.
pub const RETRY: &str = "zae-limiter deploy --retry-rolled-back";
/// Goes on with a rollback that has failed.
pub const CONTINUE_ROLLBACK: &str = "zae-limiter deploy --continue-rollback";
/// The same without a resource; a logical id follows.
pub const SKIP: &str = "zae-limiter deploy --continue-rollback --skip";
/// Deletes a stack without a resource; a logical id follows.
pub const RETAIN: &str = "zae-limiter delete --retain";
