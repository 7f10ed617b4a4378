//! The rules that make counting exact, each by name, so that tests can break one and show that it is needed.

/// A rule of exact counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Sequence numbers are padded: they grow in length, and only padded ones sort like the stream.
    PaddedNumbers,
    /// Positions start with the stream's label: a new stream may number from the start.
    StreamLabel,
    /// A group is written whole only if the snapshot has counted nothing from its first record on.
    #[cfg(test)]
    ConditionOnFirst,
    /// What is left of a group is written only if the snapshot's progress is still what was read.
    #[cfg(test)]
    CompareAndSet,
    /// A group that sums to zero still advances the snapshot.
    ZeroSums,
    /// A snapshot remembers the records that it has passed without counting them.
    Gaps,
}

/// Which rules hold: all of them, outside of tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    #[cfg(test)]
    broken: Option<Rule>,
}

impl Rules {
    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    pub(crate) const fn hold(self, _: Rule) -> bool {
        true
    }

    #[cfg(test)]
    pub(crate) fn hold(self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }

    /// All rules but one.
    #[cfg(test)]
    pub(crate) const fn without(rule: Rule) -> Self {
        Self { broken: Some(rule) }
    }
}
