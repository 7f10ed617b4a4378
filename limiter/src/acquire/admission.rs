//! Whether the tokens of a lease are counted in the table.

/// Whether a lease is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Admission {
    /// The tokens were taken from the table before the call went ahead.
    Counted,
    /// The table could not be reached, the policy is to allow, and this process had enough left of its own part of the
    /// limits ([`RateLimiterBuilder::outage_fraction`](crate::RateLimiterBuilder::outage_fraction)): nothing was taken from the
    /// table, and nothing will be.
    Local,
    /// The table could not be reached and the policy is to allow: nothing was taken, and nothing will be.
    AllowedWhileUnavailable,
    /// The tokens of the call were taken; of those that the lease [consumed](crate::Lease::consume) later some were not,
    /// because the table could not be reached by then and the policy is to allow.
    PartlyCounted,
    /// The limits would have refused the call if they were enforced, and are only [observed](crate::Mode::Observe): nothing was
    /// taken where that is so. [`Lease::observed_limits`](crate::Lease::observed_limits) lists them.
    Observed,
    /// The limits are [bypassed](crate::Mode::Bypass): nothing was taken, and nothing is counted.
    Bypassed,
}
