//! Noticing a wrong clock by the time that the server's responses carry.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint;
use aws_smithy_types::DateTime;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use aws_smithy_types::date_time::Format;

use crate::clock_offset::{ClockOffset, LocalTime};

/// Reads the `Date` header of each response and keeps by how much this machine's clock is off.
#[derive(Clone)]
pub struct ServerTime {
    local: Arc<dyn Fn() -> LocalTime + Send + Sync>,
    judged: Arc<Mutex<Judged>>,
    offset: Arc<AtomicI64>,
}

/// What the responses so far say.
#[derive(Debug, Default)]
struct Judged {
    clock: ClockOffset,
    /// The last header and its moment in epoch milliseconds: a busy process reads the same one many times a second.
    last: Option<(String, i64)>,
}

impl Judged {
    /// The moment of a header, if it is one.
    fn moment(&mut self, date: &str) -> Option<i64> {
        if let Some((_, moment)) = self.last.as_ref().filter(|(last, _)| last == date) {
            return Some(*moment);
        }
        let moment = DateTime::from_str(date, Format::HttpDate).ok()?;
        let moment = moment.secs().saturating_mul(1000);
        self.last = Some((date.to_owned(), moment));
        Some(moment)
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
        f.debug_struct("ServerTime")
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl ServerTime {
    /// Compares responses with what `local` says.
    pub fn new(local: impl Fn() -> LocalTime + Send + Sync + 'static) -> Self {
        Self {
            local: Arc::new(local),
            judged: Arc::default(),
            offset: Arc::default(),
        }
    }

    /// The same client, whose responses are read. The SDK corrects the time of signatures by itself.
    pub fn watch(&self, client: &Client) -> Client {
        let mut config = client.config().to_builder();
        config.push_interceptor(SharedInterceptor::permanent(self.clone()));
        Client::from_conf(config.build())
    }

    /// What must be added to this machine's time, in milliseconds: 0 unless it is certainly off by more than two seconds.
    pub fn offset(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// Reads the `Date` header of the response to a request that was sent then.
    fn observe(&self, date: &str, sent: Duration) {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(moment) = judged.moment(date) else {
            return;
        };
        let offset = judged.clock.observe(moment, sent, (self.local)());
        let before = self.offset.swap(offset, Ordering::Relaxed);
        drop(judged);
        if offset != 0 && before == 0 {
            tracing::warn!(
                offset_ms = offset,
                "this machine's clock is wrong; the server's time is used instead"
            );
        }
    }
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
        let date = context.response().headers().get("date");
        if let (Some(date), Some(Sent(sent))) = (date, config.load::<Sent>()) {
            self.observe(date, *sent);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
