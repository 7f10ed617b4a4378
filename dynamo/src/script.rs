//! An HTTP client that returns what it is told to, and keeps what it was asked.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use zae_limiter_schema::StackName;

use crate::{Entropy, Table};

/// A request that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Sent {
    pub(crate) fn header(&self, wanted: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    }
}

/// A table that a client reaches.
pub(crate) fn table(client: Client) -> Table {
    Table {
        client,
        name: StackName::parse("limiter").unwrap(),
        place: "test".to_owned(),
        entropy: Arc::new(Entropy::seeded(1)),
        budget: Duration::from_secs(10),
        attempt: Duration::from_secs(3),
        deadline: None,
        credentials: None,
    }
}

/// Responses in turn; an empty success once they are used up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    pub(crate) sent: Arc<Mutex<Vec<Sent>>>,
    responses: Arc<Mutex<VecDeque<Result<HttpResponse, ConnectorError>>>>,
}

impl Script {
    pub(crate) fn fails(&self, error: ConnectorError) {
        self.responses.lock().unwrap().push_back(Err(error));
    }

    pub(crate) fn responds(&self, status: u16, headers: &[(&'static str, &'static str)], body: SdkBody) {
        let mut response = HttpResponse::new(StatusCode::try_from(status).unwrap(), body);
        for (name, value) in headers {
            response.headers_mut().insert(*name, *value);
        }
        self.responses.lock().unwrap().push_back(Ok(response));
    }

    /// A table that is reached through this.
    pub(crate) fn table(&self) -> Table {
        table(Client::from_conf(self.config().build()))
    }

    /// The operations that were called, in order.
    pub(crate) fn operations(&self) -> Vec<String> {
        let sent = self.sent.lock().unwrap();
        let targets = sent.iter().filter_map(|sent| sent.header("x-amz-target"));
        targets
            .map(|target| target.replace("DynamoDB_20120810.", ""))
            .collect()
    }

    /// A configuration that sends everything here, signed.
    pub(crate) fn config(&self) -> Builder {
        aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("AKID", "secret", None, None, "test"))
            .retry_config(RetryConfig::disabled())
            .http_client(self.clone())
    }
}

impl HttpConnector for Script {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let headers = request.headers().iter();
        self.sent.lock().unwrap().push(Sent {
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            body: String::from_utf8(request.body().bytes().unwrap().to_vec()).unwrap(),
        });
        let next = self.responses.lock().unwrap().pop_front();
        HttpConnectorFuture::ready(next.unwrap_or_else(|| {
            let success = StatusCode::try_from(200).unwrap();
            Ok(HttpResponse::new(success, SdkBody::from("{}")))
        }))
    }
}

impl HttpClient for Script {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
