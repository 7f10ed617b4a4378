//! A deterministic simulation of admission.

/// A rule of the protocol, broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    ParametersFromCache,
    ConflictsAreRefusals,
}
