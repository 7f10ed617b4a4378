//! The HTTP header fields that describe rate limits, as text, for any HTTP library.

use crate::RetryAfter;
use crate::status::{LimitStatus, Refusal};

/// The largest integer of a structured field (RFC 9651).
const MAX_INTEGER: u128 = 999_999_999_999_999;

/// The fields `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, and `Retry-After`.
///
/// Each limit is a policy with its capacity as quota `q`, that of a quota with what it was topped up with, and, as window `w`,
/// the seconds in which that quota is refilled, or the length of a quota's period; a limit on calls in flight has no window. The policies of the entity itself on
/// the call's first resource have the names of its limits; those of another resource are named `RESOURCE/LIMIT`, and `@PARENT`
/// follows in those of a parent.
///
/// ```
/// use zae_limiter::{Limit, RateLimitHeaders, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
/// let lease = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?;
/// let headers: Vec<_> = RateLimitHeaders::admitted(&lease.statuses()).into_iter().collect();
/// assert_eq!(headers[0], ("ratelimit-policy", r#""rpm";q=100;w=60"#.to_owned()));
/// assert_eq!(headers[1], ("ratelimit", r#""rpm";r=99;t=1"#.to_owned()));
/// # lease.commit().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimitHeaders {
    fields: Vec<(&'static str, String)>,
}

impl RateLimitHeaders {
    /// For a response to a call that was admitted. Without statuses there are no fields.
    pub fn admitted(statuses: &[LimitStatus]) -> Self {
        Self::new(statuses, |status| {
            // A full bucket gets no more.
            let full = u64::try_from(status.available).is_ok_and(|there| there >= status.most());
            if full { None } else { next_token(status) }
        })
    }

    /// For the response 429. Only the limits that refused state a time, so that no time is later than `Retry-After`.
    pub fn refused(refusal: &Refusal) -> Self {
        let mut headers = Self::new(refusal.statuses(), |status| match status.retry_after {
            RetryAfter::After(time) if status.refused => Some(time.as_millis().div_ceil(1000)),
            _ => None,
        });
        let retry_after = refusal.retry_after_header();
        headers
            .fields
            .extend(retry_after.map(|seconds| ("retry-after", seconds)));
        headers
    }

    fn new(statuses: &[LimitStatus], seconds: impl Fn(&LimitStatus) -> Option<u128>) -> Self {
        let Some(first) = statuses.first() else {
            return Self { fields: vec![] };
        };
        let policies = statuses.iter().map(|status| {
            let quota = status.limit.capacity().get().saturating_add(status.topped_up);
            let quota = integer(quota.into());
            let window = status
                .window_seconds()
                .map(|seconds| format!(";w={}", integer(seconds)));
            let name = policy_name(status, first);
            format!("\"{name}\";q={quota}{}", window.unwrap_or_default())
        });
        let states = statuses.iter().map(|status| {
            let left = integer(u128::try_from(status.available).unwrap_or(0));
            let time = seconds(status).map(|seconds| format!(";t={}", integer(seconds)));
            let name = policy_name(status, first);
            format!("\"{name}\";r={left}{}", time.unwrap_or_default())
        });
        let fields = vec![
            ("ratelimit-policy", policies.collect::<Vec<_>>().join(", ")),
            ("ratelimit", states.collect::<Vec<_>>().join(", ")),
        ];
        Self { fields }
    }
}

/// Names, in lower case, and values.
impl IntoIterator for RateLimitHeaders {
    type Item = (&'static str, String);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

impl Refusal {
    /// The names of the policies that refused, as in the header fields and in the problem type `quota-exceeded`.
    pub fn violated_policies(&self) -> Vec<String> {
        let Some(first) = self.statuses().first() else {
            return vec![];
        };
        let names = self.refused_limits().map(|status| policy_name(status, first));
        names.collect()
    }
}

/// Names have no characters that a quoted string would have to escape.
fn policy_name(status: &LimitStatus, first: &LimitStatus) -> String {
    let mut name = status.limit.name().to_string();
    if status.resource != first.resource {
        name = format!("{}/{name}", status.resource);
    }
    if status.entity != first.entity {
        name = format!("{name}@{}", status.entity);
    }
    name
}

/// The seconds until some of the limit comes back.
fn next_token(status: &LimitStatus) -> Option<u128> {
    let reset = status.reset.map(|reset| reset.after.as_millis().div_ceil(1000));
    reset.or_else(|| status.limit.kind().seconds_to_refill(1))
}

fn integer(value: u128) -> u128 {
    value.min(MAX_INTEGER)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use zae_limiter_schema::bucket::Reset;
    use zae_limiter_schema::{Limit, Resource, Timestamp};

    use super::*;
    use crate::EntityId;

    fn status(entity: &str, limit: Limit, available: i64, retry_after: RetryAfter) -> LimitStatus {
        LimitStatus {
            entity: EntityId::parse(entity).unwrap(),
            resource: Resource::parse("gpt-4").unwrap(),
            limit,
            available,
            used: None,
            requested: 5,
            refused: retry_after != RetryAfter::Now,
            observed: false,
            retry_after,
            reset: None,
            topped_up: 0,
        }
    }

    fn text(headers: RateLimitHeaders) -> Vec<String> {
        let fields = headers.into_iter();
        fields.map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn the_window_is_the_time_in_which_the_quota_is_refilled() {
        let limit = Limit::custom("jobs", 100, 200, 30, 60).unwrap();
        let shown = text(RateLimitHeaders::admitted(&[status(
            "user-1",
            limit,
            -4,
            RetryAfter::Now,
        )]));
        assert_eq!(
            shown,
            [
                r#"ratelimit-policy: "jobs";q=100;w=200"#,
                r#"ratelimit: "jobs";r=0;t=2"#
            ]
        );
    }

    #[test]
    fn a_quota_has_the_length_of_its_period_as_window_and_states_when_it_ends() {
        let quota: Limit = "spend:500 per day".parse().unwrap();
        let reset = Reset {
            at: Timestamp::parse("2026-02-01T00:00:00Z").unwrap(),
            after: Duration::from_millis(3_599_001),
            period: Duration::from_hours(24),
        };
        let quota = LimitStatus {
            reset: Some(reset),
            ..status("user-1", quota, 120, RetryAfter::Now)
        };
        let parallel: Limit = "parallel:8 at once for 10min".parse().unwrap();
        let parallel = status("user-1", parallel, 3, RetryAfter::Now);
        assert_eq!(
            text(RateLimitHeaders::admitted(&[quota, parallel])),
            [
                r#"ratelimit-policy: "spend";q=500;w=86400, "parallel";q=8"#,
                r#"ratelimit: "spend";r=120;t=3600, "parallel";r=3"#
            ]
        );
    }

    #[test]
    fn what_a_quota_was_topped_up_with_is_part_of_it() {
        let quota = |available| LimitStatus {
            topped_up: 200,
            ..status(
                "user-1",
                "spend:500 per day".parse().unwrap(),
                available,
                RetryAfter::Now,
            )
        };
        let shown = |available| text(RateLimitHeaders::admitted(&[quota(available)]));
        assert!(shown(650)[0].contains(r#""spend";q=700"#), "{:?}", shown(650));
        assert_eq!(shown(700)[1], r#"ratelimit: "spend";r=700"#, "nothing is used");
    }

    #[test]
    fn a_full_bucket_states_no_time() {
        let limit = Limit::per_minute("rpm", 100).unwrap();
        let shown = text(RateLimitHeaders::admitted(&[status(
            "user-1",
            limit,
            100,
            RetryAfter::Now,
        )]));
        assert_eq!(shown[1], r#"ratelimit: "rpm";r=100"#);
    }

    #[test]
    fn a_refusal_names_the_policies_of_parents_and_only_limits_that_refused_state_a_time() {
        let minute = Limit::per_minute("rpm", 10).unwrap();
        let day = Limit::per_day("rpd", 1).unwrap();
        let wait = RetryAfter::After(Duration::from_millis(1_001));
        let refusal = Refusal::new(vec![
            status("user-1", day, 1, RetryAfter::Now),
            status("user-1", minute.clone(), 3, RetryAfter::Now),
            status("org-1", minute, 0, wait),
        ]);
        assert_eq!(refusal.violated_policies(), ["rpm@org-1"]);
        assert_eq!(
            text(RateLimitHeaders::refused(&refusal)),
            [
                r#"ratelimit-policy: "rpd";q=1;w=86400, "rpm";q=10;w=60, "rpm@org-1";q=10;w=60"#,
                r#"ratelimit: "rpd";r=1, "rpm";r=3, "rpm@org-1";r=0;t=2"#,
                "retry-after: 2",
            ]
        );
    }

    #[test]
    fn a_call_that_can_never_pass_has_no_retry_after() {
        let limit = Limit::per_minute("rpm", 1).unwrap();
        let refusal = Refusal::new(vec![status("user-1", limit, 1, RetryAfter::Never)]);
        let shown = text(RateLimitHeaders::refused(&refusal));
        assert_eq!(shown[1..], [r#"ratelimit: "rpm";r=1"#]);
    }

    #[test]
    fn without_statuses_there_are_no_fields() {
        assert!(text(RateLimitHeaders::admitted(&[])).is_empty());
    }
}
