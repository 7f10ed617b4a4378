//! Noticing a wrong clock by the time that the server's responses carry.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::DateTime;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use aws_smithy_types::date_time::Format;
use zae_limiter_schema::Timestamp;

use crate::clock_offset::{ClockOffset, LocalTime};

/// Reads the `Date` header of each response and keeps by how much this machine's clock is off.
#[derive(Clone)]
pub struct ServerTime {
    local: Arc<dyn Fn() -> LocalTime + Send + Sync>,
    judged: Arc<Mutex<Judged>>,
}

/// What the responses so far have shown.
#[derive(Debug, Default)]
struct Judged {
    clock: ClockOffset,
    /// The last header and its time in epoch milliseconds: a busy process reads the same one many times a second.
    last: Option<(String, i64)>,
    /// Whether a wrong clock was reported.
    reported: bool,
}

impl Judged {
    /// The time of a header, if it is one.
    fn parse(&mut self, date: &str) -> Option<i64> {
        if let Some((_, time)) = self.last.as_ref().filter(|(last, _)| last == date) {
            return Some(*time);
        }
        let time = DateTime::from_str(date, Format::HttpDate).ok()?;
        let time = time.secs().saturating_mul(1000);
        self.last = Some((date.to_owned(), time));
        Some(time)
    }

    /// Reports a wrong clock once, until it is right again.
    fn report(&mut self, offset: i64) {
        if offset != 0 && !self.reported {
            tracing::warn!(
                offset_ms = offset,
                "this machine's clock is wrong or was set; it is not used until DynamoDB's responses agree with it"
            );
        }
        self.reported = offset != 0;
    }
}

/// When an attempt was sent, on the scale of [`LocalTime::elapsed`].
#[derive(Debug, Clone, Copy)]
struct Sent(Duration);

impl Storable for Sent {
    type Storer = StoreReplace<Self>;
}

impl fmt::Debug for ServerTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTime").finish_non_exhaustive()
    }
}

impl ServerTime {
    /// Compares responses with the clocks that `local` reads.
    pub fn new(local: impl Fn() -> LocalTime + Send + Sync + 'static) -> Self {
        Self {
            local: Arc::new(local),
            judged: Arc::default(),
        }
    }

    /// The same client, whose responses are read. The SDK corrects the time of signatures by itself.
    pub fn watch(&self, client: &Client) -> Client {
        let mut config = client.config().to_builder();
        config.push_interceptor(SharedInterceptor::permanent(self.clone()));
        Client::from_conf(config.build())
    }

    fn lock(&self) -> MutexGuard<'_, Judged> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What must be added to this machine's time at this reading, in milliseconds: 0 unless its clock was set or is certainly
    /// off by more than two seconds.
    pub fn offset(&self) -> i64 {
        let local = (self.local)();
        let mut judged = self.lock();
        let offset = judged.clock.read(local);
        judged.report(offset);
        offset
    }

    /// The latest time that it can be at the server. None unless three responses in a row have agreed on the time within the last
    /// ten minutes, and this machine's clocks have moved alike since.
    pub fn latest(&self) -> Option<Timestamp> {
        let local = (self.local)();
        self.lock().clock.latest(local)
    }

    /// This machine's calendar as it is.
    pub fn local_calendar(&self) -> Timestamp {
        (self.local)().now
    }

    /// Reads the `Date` header of the response to a request that was sent then.
    fn observe(&self, date: &str, sent: Duration) {
        let time = self.lock().parse(date);
        if let Some(time) = time {
            self.heard(Timestamp::from_millis(time), sent);
        }
    }

    /// A response with this date, in whole seconds, to a request that was sent at `sent` on the scale of
    /// [`LocalTime::elapsed`], is read now.
    pub fn heard(&self, date: Timestamp, sent: Duration) {
        let local = (self.local)();
        let mut judged = self.lock();
        let offset = judged.clock.observe(date.millis(), sent, local);
        judged.report(offset);
    }
}

/// Whether DynamoDB itself has sent a response. Those of proxies, and of servers that fail, have dates of their own.
fn is_from_dynamodb(response: &HttpResponse) -> bool {
    response.headers().contains_key("x-amzn-requestid") && response.status().as_u16() < 500
}

#[dyn_dispatch_hint]
impl Intercept for ServerTime {
    fn name(&self) -> &'static str {
        "ServerTime"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        config.interceptor_state().store_put(Sent((self.local)().elapsed));
        Ok(())
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        let date = response
            .headers()
            .get("date")
            .filter(|_| is_from_dynamodb(response));
        if let (Some(date), Some(Sent(sent))) = (date, config.load::<Sent>()) {
            self.observe(date, *sent);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
