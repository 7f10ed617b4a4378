//! A connection to a store in memory that asks what each call consumed, and adds it up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use zae_limiter::EmbeddedStore;

/// How long a call takes, in simulated time.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(10);

/// DynamoDB charges a write whose condition fails as if it had been made. The engine reports nothing for it.
const FAILED_WRITE: f64 = 1.0;

/// What calls consumed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bill {
    pub(crate) calls: Vec<String>,
    pub(crate) read_units: f64,
    /// Indexes included.
    pub(crate) write_units: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct CapacityMeter {
    store: EmbeddedStore,
    bill: Arc<Mutex<Bill>>,
}

impl CapacityMeter {
    pub(crate) fn new(store: EmbeddedStore) -> Self {
        Self {
            store,
            bill: Arc::default(),
        }
    }

    fn bill(&self) -> MutexGuard<'_, Bill> {
        self.bill.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was consumed since this was asked last.
    pub(crate) fn take(&self) -> Bill {
        std::mem::take(&mut self.bill())
    }

    fn charge(&self, operation: String, response: &HttpResponse) {
        let reads = operation.contains("Get");
        let body = response.body().bytes().unwrap_or_default();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let consumed = &body["ConsumedCapacity"];
        let parts = consumed
            .as_array()
            .map_or(std::slice::from_ref(consumed), Vec::as_slice);
        let units: f64 = parts
            .iter()
            .filter_map(|part| part["CapacityUnits"].as_f64())
            .sum();
        let failed = !reads && response.status().as_u16() == 400;
        let mut bill = self.bill();
        bill.calls.push(operation);
        if reads {
            bill.read_units += units;
        } else {
            bill.write_units += if failed { FAILED_WRITE } else { units };
        }
    }
}

impl HttpConnector for CapacityMeter {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        if operation.ends_with("Item") {
            let body = request.body().bytes().unwrap_or_default();
            let mut body: Value = serde_json::from_slice(body).unwrap_or_default();
            body["ReturnConsumedCapacity"] = json!("INDEXES");
            *request.body_mut() = SdkBody::from(body.to_string());
        }
        let meter = self.clone();
        HttpConnectorFuture::new(async move {
            tokio::time::sleep(ROUND_TRIP).await;
            let response = meter.store.call(request).await?;
            meter.charge(operation, &response);
            Ok(response)
        })
    }
}

impl HttpClient for CapacityMeter {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
