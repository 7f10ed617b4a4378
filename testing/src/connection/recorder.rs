//! A connection that records the permissions its requests need.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use serde_json::{Value, json};

use super::{batch, response, target};

/// A permission that was needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The IAM action, such as `dynamodb:UpdateItem`.
    pub action: String,
    /// True if it was needed on an index of the table.
    pub index: bool,
    /// The partition key of the item, for actions on one.
    pub partition: Option<String>,
}

/// A connection to an embedded store. SQS, S3 and EventBridge take whatever they are sent.
#[derive(Debug, Clone)]
pub struct Recorder {
    store: SharedHttpConnector,
    needed: Arc<Mutex<BTreeSet<Access>>>,
}

impl Recorder {
    /// A connection to this store.
    pub fn to(store: impl HttpConnector + 'static) -> Self {
        Self {
            store: SharedHttpConnector::new(store),
            needed: Arc::default(),
        }
    }

    /// What was needed so far.
    pub fn needed(&self) -> BTreeSet<Access> {
        self.needed.lock().unwrap().clone()
    }

    fn note(&self, action: String, index: bool, partition: Option<&str>) {
        let partition = partition.map(str::to_owned);
        self.needed.lock().unwrap().insert(Access {
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

impl HttpConnector for Recorder {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (service, operation) = target(&request);
        match service.as_str() {
            "DynamoDB_20120810" => {
                self.note_dynamodb(&operation, &batch::body(&request));
                self.store.call(request)
            }
            "AmazonSQS" => {
                self.note(format!("sqs:{operation}"), false, None);
                HttpConnectorFuture::ready(Ok(response(200, &json!({}))))
            }
            "AWSEvents" => {
                self.note(format!("events:{operation}"), false, None);
                let entries = batch::body(&request)["Entries"].as_array().map_or(0, Vec::len);
                let entries: Vec<_> = (0..entries).map(|n| json!({"EventId": n.to_string()})).collect();
                let body = json!({"FailedEntryCount": 0, "Entries": entries});
                HttpConnectorFuture::ready(Ok(response(200, &body)))
            }
            "" if request.method() == "PUT" => {
                self.note("s3:PutObject".to_owned(), false, None);
                HttpConnectorFuture::ready(Ok(response(200, &json!({}))))
            }
            _ => panic!("no permission is known for {request:?}"),
        }
    }
}

impl HttpClient for Recorder {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
