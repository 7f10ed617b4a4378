//! Noticing a wrong clock by the time that the server's answers carry.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use zae_limiter_schema::Timestamp;

/// Smaller differences are left alone: the header has whole seconds, and answers take time.
const TOLERATED_MILLIS: i64 = 2_000;

/// Reads the `Date` header of each answer and keeps by how much this machine's clock is off.
#[derive(Clone)]
pub struct ServerTime {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    offset: Arc<AtomicI64>,
}

impl fmt::Debug for ServerTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTime")
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl ServerTime {
    /// Compares answers with what `now` says.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            offset: Arc::default(),
        }
    }

    /// The same client, whose answers are read.
    pub fn watch(&self, client: &Client) -> Client {
        Client::from_conf(client.config().to_builder().interceptor(self.clone()).build())
    }

    /// What must be added to this machine's time, in milliseconds: 0 unless it is off by more than two seconds.
    pub fn offset(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    fn observe(&self, date: &str) {
        let Ok(moment) = DateTime::from_str(date, Format::HttpDate) else {
            return;
        };
        let (server, local) = (moment.secs().saturating_mul(1000), (self.now)().millis());
        // The header is cut to the second: the server's time lies between it and the next one.
        let behind = server - local;
        let ahead = local - (server + 1000);
        let offset = if behind > TOLERATED_MILLIS || ahead > TOLERATED_MILLIS {
            server + 500 - local
        } else {
            0
        };
        let before = self.offset.swap(offset, Ordering::Relaxed);
        if offset != 0 && before == 0 {
            tracing::warn!(
                offset_ms = offset,
                "this machine's clock is wrong; the server's time is used instead"
            );
        }
    }
}

impl Intercept for ServerTime {
    fn name(&self) -> &'static str {
        "ServerTime"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(date) = context.response().headers().get("date") {
            self.observe(date);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(local: &str) -> ServerTime {
        let now = Timestamp::parse(local).unwrap_or_default();
        ServerTime::new(move || now)
    }

    #[test]
    fn a_clock_within_two_seconds_is_left_alone() {
        for local in [
            "2026-01-31T11:59:58Z",
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00:03Z",
        ] {
            let watch = watch(local);
            watch.observe("Sat, 31 Jan 2026 12:00:00 GMT");
            assert_eq!(watch.offset(), 0, "{local}");
        }
    }

    #[test]
    fn a_clock_that_is_off_by_more_is_corrected_and_released_when_it_is_right_again() {
        let watch = watch("2026-01-31T12:01:00Z");
        watch.observe("Sat, 31 Jan 2026 12:00:00 GMT");
        assert_eq!(watch.offset(), -59_500);
        watch.observe("Sat, 31 Jan 2026 12:01:00 GMT");
        assert_eq!(watch.offset(), 0);
    }

    #[test]
    fn what_is_no_date_changes_nothing() {
        let watch = watch("2026-01-31T12:01:00Z");
        watch.observe("yesterday");
        assert_eq!(watch.offset(), 0);
    }
}
