//! Where the archive is.

use zae_limiter_function::CallError;

use crate::Object;

/// The archive as the archiver sees it: it writes objects and does nothing else.
pub trait Store {
    /// Writes the object, replacing one with the same key.
    fn put(&self, object: &Object) -> impl Future<Output = Result<(), CallError>>;
}
