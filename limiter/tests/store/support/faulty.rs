//! A connection with faults, between the limiter and a store in memory.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use zae_limiter::EmbeddedStore;

/// What goes wrong all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    /// Nothing.
    Fair,
    /// Every page of a query or scan ends after one item.
    OneItemPages,
    /// One call in four is throttled, loses its answer, meets a conflict or fails; batches are done in halves.
    Storm,
}

/// What goes wrong once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The request is carried out; its answer does not arrive.
    LostAnswer,
    /// The request does not arrive.
    LostRequest,
    /// Too many requests.
    Throttled,
    /// The service fails.
    ServerError,
    /// Another transaction is at work.
    Conflict,
    /// The caller may not do this.
    Denied,
    /// Only half of a batch is done.
    Unprocessed,
    /// Nothing of a batch is done.
    Untouched,
    /// All goes well, once.
    Nothing,
}

impl Fault {
    /// The fault as an answer of the service, for those that are one.
    fn answer(self) -> Option<(u16, Value)> {
        let error = |name: &str| json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{name}"), "message": "as told" });
        match self {
            Self::Throttled => Some((400, error("ProvisionedThroughputExceededException"))),
            Self::ServerError => Some((500, error("InternalServerError"))),
            Self::Denied => Some((400, error("AccessDeniedException"))),
            Self::Conflict => {
                let mut cancelled = error("TransactionCanceledException");
                cancelled["CancellationReasons"] = json!([{ "Code": "TransactionConflict" }]);
                Some((400, cancelled))
            }
            Self::LostAnswer | Self::LostRequest | Self::Unprocessed | Self::Untouched | Self::Nothing => {
                None
            }
        }
    }
}

/// What somebody else does.
type Deed = Pin<Box<dyn Future<Output = ()> + Send>>;

struct State {
    weather: Weather,
    /// Faults for the next calls of an operation.
    planned: Vec<(String, VecDeque<Fault>)>,
    /// What happens just before the next calls of an operation arrive.
    before: Vec<(String, Deed)>,
    /// The server's time, if its answers carry one.
    date: Option<String>,
    calls: Vec<String>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Faulty {
    store: EmbeddedStore,
    state: Arc<Mutex<State>>,
}

impl Faulty {
    pub(crate) fn new(store: EmbeddedStore, weather: Weather) -> Self {
        Self {
            store,
            state: Arc::new(Mutex::new(State {
                weather,
                planned: vec![],
                before: vec![],
                date: None,
                calls: vec![],
            })),
        }
    }

    pub(crate) fn store(&self) -> &EmbeddedStore {
        &self.store
    }

    /// Plans faults for the next calls of an operation.
    pub(crate) fn plan(&self, operation: &str, faults: impl IntoIterator<Item = Fault>) {
        self.state
            .lock()
            .unwrap()
            .planned
            .push((operation.to_owned(), faults.into_iter().collect()));
    }

    /// Lets somebody else act just before the next call of an operation arrives.
    pub(crate) fn before(&self, operation: &str, deed: impl Future<Output = ()> + Send + 'static) {
        self.state
            .lock()
            .unwrap()
            .before
            .push((operation.to_owned(), Box::pin(deed)));
    }

    /// Lets every answer carry this time, as a server's does.
    pub(crate) fn set_date(&self, date: &str) {
        self.state.lock().unwrap().date = Some(date.to_owned());
    }

    fn next_deed(&self, operation: &str) -> Option<Deed> {
        let mut state = self.state.lock().unwrap();
        let place = state.before.iter().position(|(name, _)| name == operation)?;
        Some(state.before.remove(place).1)
    }

    /// Forgets planned faults.
    pub(crate) fn clear(&self) {
        self.state.lock().unwrap().planned.clear();
    }

    /// The operations that were called since the last time this was asked.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    fn next_fault(&self, operation: &str) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        state.calls.push(operation.to_owned());
        let planned = state
            .planned
            .iter_mut()
            .find(|(name, faults)| name == operation && !faults.is_empty());
        if let Some((_, faults)) = planned {
            return faults.pop_front();
        }
        let number = state.calls.len();
        let transaction = operation == "TransactWriteItems";
        match (state.weather, number % 16) {
            (Weather::Storm, 3) => Some(Fault::Throttled),
            (Weather::Storm, 7) => Some(Fault::LostAnswer),
            (Weather::Storm, 11) => Some(Fault::ServerError),
            (Weather::Storm, 15) if transaction => Some(Fault::Conflict),
            (Weather::Storm, _) if operation.starts_with("Batch") && number.is_multiple_of(2) => {
                Some(Fault::Unprocessed)
            }
            _ => None,
        }
    }

    fn small_pages(&self) -> bool {
        self.state.lock().unwrap().weather != Weather::Fair
    }
}

impl HttpConnector for Faulty {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let fault = self.next_fault(&operation);
        if let Some((status, body)) = fault.and_then(Fault::answer) {
            return HttpConnectorFuture::ready(Ok(response(status, &body)));
        }
        if fault == Some(Fault::LostRequest) {
            return HttpConnectorFuture::ready(Err(ConnectorError::io("the request was lost".into())));
        }
        if self.small_pages() && (operation == "Query" || operation == "Scan") {
            rewrite(&mut request, |body| body["Limit"] = json!(1));
        }
        let held_back = match fault {
            Some(Fault::Unprocessed) => hold_back(&mut request, |all| all.div_ceil(2)),
            Some(Fault::Untouched) => {
                let all = hold_back(&mut request, |_| 0);
                return HttpConnectorFuture::ready(Ok(response(200, &json!({ "UnprocessedKeys": all }))));
            }
            _ => Value::Null,
        };
        let (store, deed) = (self.store.clone(), self.next_deed(&operation));
        let date = self.state.lock().unwrap().date.clone();
        HttpConnectorFuture::new(async move {
            // A real connection takes time, and others act meanwhile.
            tokio::task::yield_now().await;
            if let Some(deed) = deed {
                deed.await;
            }
            let mut answer = store.call(request).await?;
            if let Some(date) = date {
                answer.headers_mut().insert("date", date);
            }
            tokio::task::yield_now().await;
            if fault == Some(Fault::LostAnswer) {
                return Err(ConnectorError::timeout("the answer was lost".into()));
            }
            if !held_back.is_null() {
                let name = if operation == "BatchGetItem" {
                    "UnprocessedKeys"
                } else {
                    "UnprocessedItems"
                };
                let mut body: Value =
                    serde_json::from_slice(answer.body().bytes().unwrap_or_default()).unwrap();
                body[name] = held_back;
                *answer.body_mut() = SdkBody::from(body.to_string());
            }
            Ok(answer)
        })
    }
}

fn response(status: u16, body: &Value) -> HttpResponse {
    HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body.to_string()))
}

fn rewrite(request: &mut HttpRequest, change: impl FnOnce(&mut Value)) {
    let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap();
    change(&mut body);
    *request.body_mut() = SdkBody::from(body.to_string());
}

/// Takes all but so many entries of a batch out of the request, to be returned as unprocessed.
fn hold_back(request: &mut HttpRequest, keep: impl Fn(usize) -> usize) -> Value {
    let mut held_back = json!({});
    rewrite(request, |body| {
        for (table, wanted) in body["RequestItems"].as_object_mut().unwrap() {
            let list = if wanted.is_array() {
                &mut *wanted
            } else {
                &mut wanted["Keys"]
            }
            .as_array_mut()
            .unwrap();
            let rest = list.split_off(keep(list.len()));
            if !rest.is_empty() {
                held_back[table] = if wanted.is_array() {
                    json!(rest)
                } else {
                    json!({ "Keys": rest })
                };
            }
        }
    });
    if held_back == json!({}) {
        Value::Null
    } else {
        held_back
    }
}

impl HttpClient for Faulty {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
