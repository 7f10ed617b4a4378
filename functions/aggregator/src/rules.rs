//! The rules that make counting exact, so that tests can break each and see that it is missed.

/// Which rules hold. Only [`Rules::default`] counts correctly; the rest is for tests of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
#[allow(clippy::struct_excessive_bools)]
pub struct Rules {
    /// Sequence numbers are padded, so that they sort like the stream though they grow in length.
    pub padded: bool,
    /// Tokens start with the stream's label, so that a new stream may number from the start.
    pub labelled: bool,
    /// A group is written whole only if nothing from its first record on is counted.
    pub from_first: bool,
    /// What is left of a group is written only if the snapshot is still where it was seen.
    pub compare_and_set: bool,
    /// A group that sums up to nothing still moves the snapshot on.
    pub zero_sums: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            padded: true,
            labelled: true,
            from_first: true,
            compare_and_set: true,
            zero_sums: true,
        }
    }
}
