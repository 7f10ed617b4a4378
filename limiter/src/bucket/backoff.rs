//! How long to wait before trying again: every pause of the client that has to do with failures.

use std::time::Duration;

use zae_limiter_dynamo::Entropy;

/// A retry pauses at most this long after the first failure; it doubles from there,
const FIRST_RETRY: Duration = Duration::from_millis(10);
/// up to this while a caller waits,
const LONGEST_RETRY: Duration = Duration::from_secs(1);
/// and up to this while none does.
const LONGEST_BACKGROUND_RETRY: Duration = Duration::from_secs(5);
/// An unconfirmed write that no caller waits for is searched for after one to two times this.
const BEFORE_SEARCH: Duration = Duration::from_millis(500);
/// When the table is back, buckets without callers go on within this time, not all together.
const RECOVERY_SPREAD: Duration = Duration::from_secs(1);
/// The first probe of an open breaker comes within this time; the pause doubles from there,
const FIRST_PROBE: Duration = Duration::from_millis(100);
/// up to this.
const LONGEST_PROBE: Duration = Duration::from_secs(5);
/// A wait for tokens is lengthened by a random part of up to 1/100 of it, so that processes do not all come back together,
const WAIT_JITTER: u32 = 100;
/// and by no more than this.
const MAX_WAIT_JITTER: Duration = Duration::from_millis(100);

/// The pauses after a failure: one for everybody, and one more while no caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetryPause {
    pub(super) short: Duration,
    pub(super) background: Duration,
}

/// The pause after this many failures in a row. A caller that comes at the end of an outage must not spend all its time in
/// it.
pub(super) fn retry(failures: u32, time_budget: Duration, entropy: &Entropy) -> RetryPause {
    let most = doubled(FIRST_RETRY, failures);
    let short = most.min(LONGEST_RETRY).min(time_budget / 4);
    let background = most.min(LONGEST_BACKGROUND_RETRY).saturating_sub(short);
    RetryPause {
        short: entropy.up_to(short),
        background: entropy.up_to(background),
    }
}

/// The pause before an unconfirmed write is searched for. By then the breaker knows whether it was this bucket alone.
pub(super) fn before_search(entropy: &Entropy) -> Duration {
    BEFORE_SEARCH + entropy.up_to(BEFORE_SEARCH)
}

/// The pause after the table is back.
pub(super) fn after_recovery(entropy: &Entropy) -> Duration {
    entropy.up_to(RECOVERY_SPREAD)
}

/// The pause before the next probe. Half of it is certain, the other half drawn: processes that lost the table together
/// do not probe together.
pub(super) fn probe(probes: u32, jitter: impl FnOnce(Duration) -> Duration) -> Duration {
    let most = doubled(FIRST_PROBE, probes).min(LONGEST_PROBE);
    most / 2 + jitter(most / 2)
}

/// What is added to a wait for tokens.
pub(crate) fn wait_jitter(wait: Duration, entropy: &Entropy) -> Duration {
    entropy.up_to((wait / WAIT_JITTER).min(MAX_WAIT_JITTER))
}

fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(1 << times.min(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_pauses_at_most_a_quarter_of_the_time_budget_while_a_caller_waits() {
        let (entropy, budget) = (Entropy::seeded(1), Duration::from_millis(400));
        for failures in 0..20 {
            let pause = retry(failures, budget, &entropy);
            assert!(pause.short <= budget / 4, "{pause:?}");
            assert!(pause.short + pause.background <= LONGEST_BACKGROUND_RETRY);
        }
    }

    #[test]
    fn probes_pause_up_to_five_seconds() {
        let most: Vec<_> = (0..8)
            .map(|probes| probe(probes, |most| most).as_millis())
            .collect();
        assert_eq!(most, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    }
}
