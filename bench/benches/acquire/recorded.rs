//! Responses from memory, without a connection: for passes over 1,000,000 entities, where a server would take most of the time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use zae_limiter::EmbeddedStore;

/// Asks an embedded store and keeps its last response to each operation; told to replay, it returns what it kept.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    store: EmbeddedStore,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    replays: bool,
    /// By operation.
    kept: HashMap<String, Vec<u8>>,
}

impl Recorded {
    pub(crate) fn new() -> Self {
        Self {
            store: EmbeddedStore::memory().unwrap(),
            state: Arc::default(),
        }
    }

    /// From now on every operation has the last response to it again.
    pub(crate) fn replay(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).replays = true;
    }

    fn kept(&self, operation: &str) -> Option<Vec<u8>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.kept.get(operation).filter(|_| state.replays).cloned()
    }

    fn keep(&self, operation: String, response: &HttpResponse) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = response.body().bytes() {
            state.kept.insert(operation, body.to_vec());
        }
    }
}

impl HttpConnector for Recorded {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        if let Some(body) = self.kept(&operation) {
            let ok = StatusCode::try_from(200).unwrap();
            return HttpConnectorFuture::ready(Ok(HttpResponse::new(ok, SdkBody::from(body))));
        }
        let recorded = self.clone();
        HttpConnectorFuture::new(async move {
            let response = recorded.store.call(request).await?;
            recorded.keep(operation, &response);
            Ok(response)
        })
    }
}

impl HttpClient for Recorded {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
