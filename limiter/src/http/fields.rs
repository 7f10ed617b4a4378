//! Header fields.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{Admission, RateLimitHeaders};

/// The field of [`mark_admission`]: `ratelimit-admission`.
pub const ADMISSION: HeaderName = HeaderName::from_static("ratelimit-admission");

/// Sets the fields `RateLimit-Policy`, `RateLimit` and `Retry-After`, in place of any that are there.
pub fn insert_fields(headers: &mut HeaderMap, fields: RateLimitHeaders) {
    for (name, value) in fields {
        // Names of limits and entities have visible ASCII characters only.
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// Marks a response to a call that the table did not count: `RateLimit-Admission` is `local`, `allowed_while_unavailable`,
/// `observed` or `bypassed`, the words of the server's JSON. A call that was counted gets no such field.
pub fn mark_admission(headers: &mut HeaderMap, admission: Admission) {
    let mark = match admission {
        Admission::Local => "local",
        Admission::AllowedWhileUnavailable => "allowed_while_unavailable",
        Admission::Observed => "observed",
        Admission::Bypassed => "bypassed",
        Admission::Counted | Admission::PartlyCounted => return,
    };
    headers.insert(ADMISSION, HeaderValue::from_static(mark));
}
