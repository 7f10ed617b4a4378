//! Whether other clients write a bucket too.

/// How others use a bucket, as far as this client knows. It decides how a full limit is written, never whether a call
/// is admitted: that is the server's condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// Nobody else has written it lately: levels are exact to the millitoken.
    #[default]
    Alone,
    /// Others write it too. A full limit is left a [margin](super::Params::margin) below its burst, so that the next
    /// writes only add to it and no longer invalidate each other.
    Shared,
    /// Others write it too, and the image is old. That a limit is not full by now is a guess that the server checks.
    SharedAndStale,
}

impl Sharing {
    /// True if others write the bucket too.
    pub const fn is_shared(self) -> bool {
        !matches!(self, Self::Alone)
    }
}
