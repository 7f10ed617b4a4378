//! A connection that notes what it is asked for, with a table in memory behind it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use zae_limiter::EmbeddedStore;

/// One thing that was done: the permission it needs, and on what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deed {
    pub(crate) action: String,
    /// Whether it was done to an index of the table.
    pub(crate) index: bool,
    /// The partition of the item, where it is about one.
    pub(crate) partition: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    store: EmbeddedStore,
    deeds: Arc<Mutex<BTreeSet<Deed>>>,
}

impl Recorder {
    pub(crate) fn before(store: &EmbeddedStore) -> Self {
        Self {
            store: store.clone(),
            deeds: Arc::default(),
        }
    }

    /// What was done so far.
    pub(crate) fn deeds(&self) -> BTreeSet<Deed> {
        self.deeds.lock().unwrap().clone()
    }

    fn note(&self, action: String, index: bool, partition: Option<&str>) {
        let partition = partition.map(str::to_owned);
        self.deeds.lock().unwrap().insert(Deed {
            action,
            index,
            partition,
        });
    }

    fn note_dynamodb(&self, operation: &str, body: &Value) {
        let action = |operation: &str| format!("dynamodb:{operation}");
        match operation {
            // Transactions need the permissions of their parts.
            "TransactWriteItems" | "TransactGetItems" => {
                for part in body["TransactItems"].as_array().unwrap() {
                    let (kind, part) = part.as_object().unwrap().iter().next().unwrap();
                    let name = match kind.as_str() {
                        "ConditionCheck" => "ConditionCheckItem".to_owned(),
                        kind => format!("{kind}Item"),
                    };
                    self.note(action(&name), false, partition(part));
                }
            }
            "BatchGetItem" => {
                for key in body["RequestItems"].as_object().unwrap().values() {
                    for key in key["Keys"].as_array().unwrap() {
                        self.note(action(operation), false, key["PK"]["S"].as_str());
                    }
                }
            }
            "BatchWriteItem" => {
                for requests in body["RequestItems"].as_object().unwrap().values() {
                    for request in requests.as_array().unwrap() {
                        let (_, request) = request.as_object().unwrap().iter().next().unwrap();
                        self.note(action(operation), false, partition(request));
                    }
                }
            }
            _ => self.note(
                action(operation),
                body.get("IndexName").is_some(),
                partition(body),
            ),
        }
    }
}

fn partition(part: &Value) -> Option<&str> {
    let key = ["Key", "Item"].into_iter().find_map(|name| part.get(name))?;
    key["PK"]["S"].as_str()
}

/// What a service answers whose answer does not matter.
fn done() -> HttpResponse {
    HttpResponse::new(200.try_into().unwrap(), SdkBody::from("{}"))
}

impl HttpConnector for Recorder {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request
            .headers()
            .get("x-amz-target")
            .unwrap_or_default()
            .to_owned();
        let (service, operation) = target.split_once('.').unwrap_or_default();
        match service {
            "DynamoDB_20120810" => {
                let body = request.body().bytes().unwrap_or_default();
                self.note_dynamodb(operation, &serde_json::from_slice(body).unwrap());
                let store = self.store.clone();
                HttpConnectorFuture::new(async move { store.call(request).await })
            }
            "AmazonSQS" => {
                self.note(format!("sqs:{operation}"), false, None);
                HttpConnectorFuture::ready(Ok(done()))
            }
            "" if request.method() == "PUT" => {
                self.note("s3:PutObject".to_owned(), false, None);
                HttpConnectorFuture::ready(Ok(done()))
            }
            _ => panic!("nobody thought of {request:?}"),
        }
    }
}

impl HttpClient for Recorder {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
