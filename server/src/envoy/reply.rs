//! Limits as messages of the protocol.

use std::cmp::Reverse;
use std::time::Duration;

use zae_limiter::{LimitName, LimitStatus, RateLimitHeaders, RetryAfter};

use super::messages::{Code, DescriptorStatus, HeaderValue, ProtoDuration, RateLimit, Unit};

/// The lengths of the units that the protocol has. Months and years vary.
const UNITS: [(u128, Unit); 5] = [
    (1, Unit::Second),
    (60, Unit::Minute),
    (3_600, Unit::Hour),
    (86_400, Unit::Day),
    (604_800, Unit::Week),
];

/// How a descriptor stands that counts on this limit of the entity and of its parents.
pub(super) fn descriptor_status(statuses: &[LimitStatus], limit: &LimitName, code: Code) -> DescriptorStatus {
    let of_limit = statuses.iter().filter(|status| status.limit.name() == limit);
    // The one that stops the call longest, otherwise the one that has the least.
    let Some(tightest) = of_limit.max_by_key(|status| (wait(status), Reverse(status.available))) else {
        return unlimited(code);
    };
    DescriptorStatus {
        code: code.into(),
        current_limit: Some(rate_limit(tightest)),
        limit_remaining: u32::try_from(tightest.available.max(0)).unwrap_or(u32::MAX),
        duration_until_reset: reset(tightest).map(proto),
    }
}

/// For a descriptor that has no limit, or whose limit is not known now.
pub(super) fn unlimited(code: Code) -> DescriptorStatus {
    DescriptorStatus {
        code: code.into(),
        ..DescriptorStatus::default()
    }
}

pub(super) fn headers(headers: RateLimitHeaders) -> Vec<HeaderValue> {
    let header = |(key, value): (&str, String)| HeaderValue {
        key: key.to_owned(),
        value,
    };
    headers.into_iter().map(header).collect()
}

/// What part of the most is left where the least is left. Header fields describe the bucket where it is least.
pub(super) fn least_left(statuses: &[LimitStatus]) -> Option<f64> {
    let parts = statuses
        .iter()
        .filter(|status| status.requested > 0)
        .map(|status| {
            #[expect(clippy::cast_precision_loss, reason = "only compared")]
            let (left, most) = (status.available as f64, status.most() as f64);
            left / most
        });
    parts.min_by(f64::total_cmp)
}

fn rate_limit(status: &LimitStatus) -> RateLimit {
    let limit = &status.limit;
    let capacity = limit.capacity().get().saturating_add(status.topped_up);
    let seconds = status.window_seconds();
    let unit = UNITS.iter().find(|(length, _)| Some(*length) == seconds);
    RateLimit {
        name: limit.name().to_string(),
        requests_per_unit: u32::try_from(capacity).unwrap_or(u32::MAX),
        unit: unit.map_or(Unit::Unknown, |(_, unit)| *unit).into(),
    }
}

/// When an exceeded limit lets the call pass, or when another one is full again. Nothing if never.
fn reset(status: &LimitStatus) -> Option<Duration> {
    if status.refused {
        return match status.retry_after {
            RetryAfter::Now => Some(Duration::ZERO),
            RetryAfter::After(time) => Some(time),
            RetryAfter::Never => None,
        };
    }
    if let Some(reset) = status.reset {
        return Some(reset.after);
    }
    let missing = i128::from(status.limit.burst().get()) - i128::from(status.available);
    let missing = u64::try_from(missing.max(0)).unwrap_or(u64::MAX);
    let seconds = status.limit.kind().seconds_to_refill(missing)?;
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    Some(Duration::from_secs(seconds))
}

fn wait(status: &LimitStatus) -> Duration {
    match status.retry_after {
        RetryAfter::After(time) if status.refused => time,
        RetryAfter::Never if status.refused => Duration::MAX,
        _ => Duration::ZERO,
    }
}

fn proto(time: Duration) -> ProtoDuration {
    ProtoDuration {
        seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(time.subsec_nanos()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_time_keeps_its_fraction() {
        let time = proto(Duration::from_millis(1_500));
        assert_eq!((time.seconds, time.nanos), (1, 500_000_000));
    }
}
