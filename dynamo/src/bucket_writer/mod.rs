//! Sending bucket writes. Every acquire that memory does not decide needs one, so they take the shortest way: one buffer out, one
//! pass over the response, and nothing of the SDK between them but its HTTP client and its credentials.

mod json;
mod request;
mod response;
mod route;
mod sign;

pub use request::BucketRequest;

use std::sync::{Arc, Mutex, PoisonError};

use aws_credential_types::Credentials;
use http_body_util::{BodyExt, Limited};
use zae_limiter_schema::bucket::{Attributes, BucketWrite};

use crate::{CallError, CapacityMeter, Result, ServerTime, Table, Updated};
use response::Answer;
use route::Route;

/// A response is not read beyond this. An item has at most 400 KB, and JSON makes at most six bytes of one.
const MAX_RESPONSE: usize = 4 << 20;

/// Sends bucket writes to a table. Clones share what they know about the way there.
#[derive(Debug, Clone)]
pub struct BucketWriter {
    table: Table,
    dates: ServerTime,
    meter: Option<CapacityMeter>,
    /// Found with the first write.
    route: Arc<Mutex<Option<Arc<Route>>>>,
}

impl BucketWriter {
    /// For this table, with the configuration of its client. The client's interceptors do not see bucket writes, so those that
    /// must are named here.
    pub fn new(table: Table, dates: ServerTime, meter: Option<CapacityMeter>) -> Self {
        Self {
            table,
            dates,
            meter,
            route: Arc::default(),
        }
    }

    /// Sends a bucket write once, without a timeout, and returns the bucket. For writes that must not be carried out twice.
    pub async fn write(&self, write: &BucketWrite) -> Result<Updated<Attributes>> {
        self.send(BucketRequest::new(self.table.name.as_str(), write))
            .await
    }

    async fn send(&self, request: BucketRequest) -> Result<Updated<Attributes>> {
        let sent = self.exchange(request).await;
        sent.map_err(|cause| self.table.failed("UpdateItem", cause))
    }

    async fn exchange(&self, request: BucketRequest) -> Result<Updated<Attributes>, CallError> {
        let (route, credentials) = self.route().await?;
        let body = request.into_body(self.meter.is_some());
        let request = route.request(body, credentials.as_ref(), self.dates.now())?;
        let sent = self.dates.elapsed();
        let response = route.send(request).await?;
        if let Some(date) = response.headers().get("date") {
            self.dates.observe(date, sent);
        }
        let (status, code) = (response.status(), response.headers().get("x-amzn-errortype"));
        let code = code.map(str::to_owned);
        let answer = match Limited::new(response.into_body(), MAX_RESPONSE).collect().await {
            Ok(body) => Answer::read(status.as_u16(), code.as_deref(), &body.to_bytes()),
            Err(error) => Answer::unreadable(&error),
        };
        if let Some(meter) = &self.meter {
            meter.count_write(answer.write_units);
        }
        answer.outcome
    }

    /// The way to the table, and the credentials of this moment.
    async fn route(&self) -> Result<(Arc<Route>, Option<Credentials>), CallError> {
        let known = || self.route.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known().clone();
        if let Some(route) = last {
            let credentials = route.credentials().await?;
            if route.is_for(credentials.as_ref()) {
                return Ok((route, credentials));
            }
        }
        let route = Arc::new(Route::find(&self.table.client, self.table.name.as_str()).await?);
        *known() = Some(route.clone());
        let credentials = route.credentials().await?;
        Ok((route, credentials))
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
