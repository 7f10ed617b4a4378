//! Counting what acquires cost: an HTTP client that counts calls and, where it may, asks for their capacity.

use std::sync::{Arc, Mutex, PoisonError};

use aws_smithy_http_client::{Builder, tls};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;

/// What was spent on DynamoDB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) calls: u64,
    /// Capacity units; nothing where nobody told.
    pub(crate) capacity: Option<Capacity>,
}

/// Capacity units, indexes included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Capacity {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

/// Counts the calls that go through it. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    inner: SharedHttpClient,
    asks: bool,
    spent: Arc<Mutex<Spent>>,
}

impl Meter {
    /// Over a store that checks no signatures, so that requests may still be changed: capacity is asked for.
    pub(crate) fn unsigned(client: impl HttpClient + 'static) -> Self {
        Self::new(SharedHttpClient::new(client), true)
    }

    /// Over the network. AWS checks signatures, which cover the body; local clouds do not.
    pub(crate) fn of_endpoint(endpoint: Option<&str>) -> Self {
        let is_aws = endpoint.is_none_or(|url| url.contains(".amazonaws.com"));
        let https = Builder::new()
            .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::AwsLc))
            .build_https();
        Self::new(https, !is_aws)
    }

    fn new(inner: SharedHttpClient, asks: bool) -> Self {
        let spent = Spent {
            calls: 0,
            capacity: asks.then(Capacity::default),
        };
        Self {
            inner,
            asks,
            spent: Arc::new(Mutex::new(spent)),
        }
    }

    /// What was spent so far.
    pub(crate) fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut Spent)) {
        change(&mut self.spent.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl HttpClient for Meter {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(MeteredConnector {
            inner: self.inner.http_connector(settings, components),
            meter: self.clone(),
        })
    }
}

#[derive(Debug)]
struct MeteredConnector {
    inner: SharedHttpConnector,
    meter: Meter,
}

impl HttpConnector for MeteredConnector {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.strip_prefix("DynamoDB_20120810.").map(str::to_owned);
        let Some(operation) = operation else {
            return self.inner.call(request);
        };
        let meter = self.meter.clone();
        if meter.asks {
            ask_for_capacity(&mut request);
        }
        let answered = self.inner.call(request);
        HttpConnectorFuture::new(async move {
            let response = answered.await?;
            meter.count(|spent| spent.calls += 1);
            if !meter.asks {
                return Ok(response);
            }
            // The answer has to be read here; it is passed on as it was.
            let (status, headers) = (response.status(), response.headers().clone());
            let body = collect(response.into_body()).await?;
            // A condition that fails costs a write all the same, and its answer does not tell.
            let refused =
                status.as_u16() == 400 && String::from_utf8_lossy(&body).contains("ConditionalCheckFailed");
            let used = if refused { 1.0 } else { consumed(&body) };
            meter.count(|spent| {
                let capacity = spent.capacity.get_or_insert_default();
                if is_read(&operation) {
                    capacity.read += used;
                } else {
                    capacity.write += used;
                }
            });
            let mut copy =
                aws_smithy_runtime_api::client::orchestrator::HttpResponse::new(status, SdkBody::from(body));
            *copy.headers_mut() = headers;
            Ok(copy)
        })
    }
}

async fn collect(body: SdkBody) -> Result<Vec<u8>, aws_smithy_runtime_api::client::result::ConnectorError> {
    let bytes = aws_smithy_types::byte_stream::ByteStream::new(body)
        .collect()
        .await;
    bytes
        .map(aws_smithy_types::byte_stream::AggregatedBytes::to_vec)
        .map_err(|error| aws_smithy_runtime_api::client::result::ConnectorError::io(error.into()))
}

fn ask_for_capacity(request: &mut HttpRequest) {
    let Some(mut body) = request
        .body()
        .bytes()
        .and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok())
    else {
        return;
    };
    body["ReturnConsumedCapacity"] = "TOTAL".into();
    let text = body.to_string();
    if request.headers().get("content-length").is_some() {
        request
            .headers_mut()
            .insert("content-length", text.len().to_string());
    }
    *request.body_mut() = SdkBody::from(text);
}

fn is_read(operation: &str) -> bool {
    matches!(operation, "GetItem" | "BatchGetItem" | "Query" | "Scan")
}

fn consumed(body: &[u8]) -> f64 {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else {
        return 0.0;
    };
    let units = |entry: &Value| entry["CapacityUnits"].as_f64().unwrap_or(0.0);
    match &answer["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().map(units).sum(),
        one => units(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_read_from_single_and_batch_answers() {
        assert!((consumed(br#"{"ConsumedCapacity":{"CapacityUnits":2.0}}"#) - 2.0).abs() < f64::EPSILON);
        let batch = br#"{"ConsumedCapacity":[{"CapacityUnits":0.5},{"CapacityUnits":1.5}]}"#;
        assert!((consumed(batch) - 2.0).abs() < f64::EPSILON);
        assert!(consumed(b"{}").abs() < f64::EPSILON && consumed(b"no json").abs() < f64::EPSILON);
    }
}
