//! What a change says about something that may be absent.

/// Left as it is, removed, or set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Setting<T> {
    #[default]
    Keep,
    Nothing,
    To(T),
}

impl<T> Setting<T> {
    pub(super) fn apply(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Keep => present,
            Self::Nothing => None,
            Self::To(value) => Some(value),
        }
    }
}
