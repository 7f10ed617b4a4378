//! The connection between a limiter and a store in memory: counts what passes and can be told to fail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use zae_limiter::EmbeddedStore;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not arrive, and the connection breaks.
    LostRequest,
    /// It is carried out; the answer does not arrive.
    LostAnswer,
    /// It is carried out after this time; the connection breaks at once.
    Late(Duration),
    /// It does not arrive, and nothing is ever heard of it.
    Silence,
    /// It is carried out; nothing is ever heard of it.
    SilentAnswer,
    /// A read of many items is answered without any: every key is left unprocessed.
    Unprocessed,
    /// Too many requests.
    Throttled,
    /// A transaction is at work on the item.
    Conflict,
    /// The service fails.
    ServerError,
    /// The caller may not do this.
    Denied,
    /// There is no such table.
    NoTable,
    /// The request is malformed.
    Invalid,
}

impl Fault {
    /// The fault as an answer of the service, for those that are one.
    fn answer(self) -> Option<HttpResponse> {
        let (status, name) = match self {
            Self::Throttled => (400, "ProvisionedThroughputExceededException"),
            Self::Conflict => (400, "TransactionConflictException"),
            Self::ServerError => (500, "InternalServerError"),
            Self::Denied => (400, "AccessDeniedException"),
            Self::NoTable => (400, "ResourceNotFoundException"),
            Self::Invalid => (400, "ValidationException"),
            _ => return None,
        };
        let body =
            json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{name}"), "message": "as told" });
        Some(HttpResponse::new(
            status.try_into().unwrap(),
            SdkBody::from(body.to_string()),
        ))
    }
}

/// How often which fault happens to a write, in per cent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    pub(crate) lost_answers: u8,
    pub(crate) late: u8,
    pub(crate) throttled: u8,
    pub(crate) conflicts: u8,
}

/// One request that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) operation: String,
    /// Its key, for calls on one item.
    pub(crate) partition: String,
    /// The status of the answer; 0 if there was none.
    pub(crate) status: u16,
}

#[derive(Debug)]
struct State {
    planned: VecDeque<(String, Fault)>,
    always: Option<(String, Fault)>,
    /// By the partition key.
    always_on: Option<(String, Fault)>,
    weather: Weather,
    chance: fastrand::Rng,
    latency: Duration,
    /// By the start of the partition key.
    latencies: Vec<(String, Duration)>,
    date: Option<String>,
    calls: Vec<Call>,
    in_flight: usize,
    most_in_flight: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Wire {
    store: EmbeddedStore,
    state: Arc<Mutex<State>>,
}

impl Wire {
    pub(crate) fn to(store: EmbeddedStore) -> Self {
        let state = State {
            planned: VecDeque::new(),
            always: None,
            always_on: None,
            weather: Weather::default(),
            chance: fastrand::Rng::with_seed(4),
            latency: Duration::ZERO,
            latencies: vec![],
            date: None,
            calls: vec![],
            in_flight: 0,
            most_in_flight: 0,
        };
        Self {
            store,
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The next call of the operation meets this fault; several plans for one operation are met in order.
    pub(crate) fn plan(&self, operation: &str, faults: impl IntoIterator<Item = Fault>) {
        let faults = faults.into_iter().map(|fault| (operation.to_owned(), fault));
        self.state().planned.extend(faults);
    }

    /// Every call meets this fault from now on.
    pub(crate) fn always(&self, fault: Fault) {
        self.always_for("", fault);
    }

    /// Every call of the operation meets this fault from now on.
    pub(crate) fn always_for(&self, operation: &str, fault: Fault) {
        self.state().always = Some((operation.to_owned(), fault));
    }

    /// Every call on items of this entity meets this fault from now on.
    pub(crate) fn always_on(&self, entity: &str, fault: Fault) {
        self.state().always_on = Some((format!("ENTITY#{entity}"), fault));
    }

    /// Nothing goes wrong any more.
    pub(crate) fn heal(&self) {
        let mut state = self.state();
        state.always = None;
        state.always_on = None;
        state.planned.clear();
        state.weather = Weather::default();
    }

    /// Faults happen at random from now on, always the same for a seed.
    pub(crate) fn weather(&self, seed: u64, weather: Weather) {
        let mut state = self.state();
        state.chance = fastrand::Rng::with_seed(seed);
        state.weather = weather;
    }

    /// Every call takes so long, half of it before it is carried out.
    pub(crate) fn latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Calls on items of this entity take so long instead.
    pub(crate) fn latency_of(&self, entity: &str, latency: Duration) {
        let partition = format!("ENTITY#{entity}");
        self.state().latencies.push((partition, latency));
    }

    /// Every answer carries this date.
    pub(crate) fn date(&self, date: &str) {
        self.state().date = Some(date.to_owned());
    }

    /// What was called since this was asked last.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let mut state = self.state();
        state.most_in_flight = state.in_flight;
        std::mem::take(&mut state.calls)
    }

    /// The names of what was called since calls were asked for last.
    pub(crate) fn operations(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.operation).collect()
    }

    /// The most calls that were under way at the same time since calls were asked for last.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.state().most_in_flight
    }

    fn next_fault(&self, operation: &str, partition: &str) -> Option<Fault> {
        let mut state = self.state();
        let planned = state.planned.iter().position(|(name, _)| name == operation);
        if let Some(place) = planned {
            return state.planned.remove(place).map(|(_, fault)| fault);
        }
        if let Some((name, fault)) = &state.always
            && (name.is_empty() || name == operation)
        {
            return Some(*fault);
        }
        if let Some((name, fault)) = &state.always_on
            && name == partition
        {
            return Some(*fault);
        }
        if operation != "UpdateItem" {
            return None;
        }
        let drawn = state.chance.u8(0..100);
        let delay = Duration::from_millis(state.chance.u64(0..400));
        let weather = state.weather;
        let faults = [
            (weather.lost_answers, Fault::LostAnswer),
            (weather.late, Fault::Late(delay)),
            (weather.throttled, Fault::Throttled),
            (weather.conflicts, Fault::Conflict),
        ];
        let mut below = 0;
        faults.into_iter().find_map(|(share, fault)| {
            below += share;
            (drawn < below).then_some(fault)
        })
    }

    async fn answer(
        self,
        request: HttpRequest,
        fault: Option<Fault>,
        latency: Duration,
    ) -> Result<HttpResponse, ConnectorError> {
        pause(latency / 2).await;
        if let Some(answer) = fault.and_then(Fault::answer) {
            pause(latency / 2).await;
            return Ok(answer);
        }
        match fault {
            Some(Fault::Unprocessed) => return Ok(unprocessed(&request)),
            Some(Fault::LostRequest) => return Err(ConnectorError::io("the request was lost".into())),
            Some(Fault::Silence) => return std::future::pending().await,
            Some(Fault::Late(delay)) => {
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    self.store.call(request).await
                });
                return Err(ConnectorError::timeout("no answer".into()));
            }
            _ => {}
        }
        // Once it is on its way a request is carried out, whether or not somebody waits for the answer.
        let carried_out = tokio::spawn(async move { self.store.call(request).await });
        let answer = carried_out.await.unwrap();
        match fault {
            Some(Fault::LostAnswer) => return Err(ConnectorError::timeout("the answer was lost".into())),
            Some(Fault::SilentAnswer) => return std::future::pending().await,
            _ => {}
        }
        pause(latency / 2).await;
        answer
    }
}

/// The answer to a read of many items that has come to none of them.
fn unprocessed(request: &HttpRequest) -> HttpResponse {
    let body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap();
    let answer = json!({ "Responses": {}, "UnprocessedKeys": body["RequestItems"] });
    HttpResponse::new(200.try_into().unwrap(), SdkBody::from(answer.to_string()))
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// Counts a call as under way until it is answered or nobody waits for it any more.
struct UnderWay(Wire);

impl UnderWay {
    fn new(wire: &Wire) -> Self {
        let mut state = wire.state();
        state.in_flight += 1;
        state.most_in_flight = state.most_in_flight.max(state.in_flight);
        Self(wire.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap();
        let partition = body["Key"]["PK"]["S"].as_str().unwrap_or_default().to_owned();
        let fault = self.next_fault(&operation, &partition);
        let (place, latency) = {
            let mut state = self.state();
            let own = state.latencies.iter().find(|(name, _)| *name == partition);
            let latency = own.map_or(state.latency, |(_, latency)| *latency);
            state.calls.push(Call {
                operation,
                partition,
                status: 0,
            });
            (state.calls.len() - 1, latency)
        };
        let wire = self.clone();
        let under_way = UnderWay::new(self);
        HttpConnectorFuture::new(async move {
            let mut answer = wire.clone().answer(request, fault, latency).await?;
            drop(under_way);
            let mut state = wire.state();
            if let Some(call) = state.calls.get_mut(place) {
                call.status = answer.status().as_u16();
            }
            if let Some(date) = &state.date {
                answer.headers_mut().insert("date", date.clone());
            }
            Ok(answer)
        })
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
