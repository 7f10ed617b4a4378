//! Connections between a client and an embedded store: one that fails as told, and one that records what it is asked.
//!
//! A [`Connection`] carries the SDK's requests to a store in the process. It counts them, slows them down and lets them
//! meet a [`Fault`]: planned ([`Connection::plan`]), permanent ([`Connection::always`]), random with a seed
//! ([`Connection::random_faults`]) or regular ([`Weather`]). A [`Recorder`] lists the IAM actions that the requests need.

mod batch;
mod carry;
mod fault;
mod recorder;

pub use fault::{Fault, FaultRates, Weather};
pub use recorder::{Access, Recorder};

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::Value;

/// One request that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The operation, such as `UpdateItem`.
    pub operation: String,
    /// The partition key, for calls on one item.
    pub partition: String,
    /// The status of the response; 0 if there was none.
    pub status: u16,
    /// The body of the request.
    pub request: Value,
}

/// What another client does while a request is on its way.
type Interruption = Pin<Box<dyn Future<Output = ()> + Send>>;

struct State {
    planned: VecDeque<(String, Fault)>,
    always: Option<(String, Fault)>,
    /// By the partition key, or the sort key.
    always_on: Option<(String, Fault)>,
    rates: FaultRates,
    random: fastrand::Rng,
    weather: Weather,
    /// What happens just before the next calls of an operation arrive.
    before: Vec<(String, Interruption)>,
    latency: Duration,
    /// By the partition key, or the sort key.
    latencies: Vec<(String, Duration)>,
    date: Option<String>,
    calls: Vec<Call>,
    in_flight: usize,
    most_in_flight: usize,
}

/// A connection that counts requests and fails as told. Clones are the same connection.
#[derive(Clone)]
pub struct Connection {
    store: SharedHttpConnector,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection to a store, on which nothing goes wrong yet.
    pub fn to(store: impl HttpConnector + 'static) -> Self {
        let state = State {
            planned: VecDeque::new(),
            always: None,
            always_on: None,
            rates: FaultRates::default(),
            random: fastrand::Rng::with_seed(4),
            weather: Weather::Fair,
            before: vec![],
            latency: Duration::ZERO,
            latencies: vec![],
            date: None,
            calls: vec![],
            in_flight: 0,
            most_in_flight: 0,
        };
        Self {
            store: SharedHttpConnector::new(store),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The same in this weather.
    #[must_use]
    pub fn in_weather(self, weather: Weather) -> Self {
        self.state().weather = weather;
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The next calls of the operation meet these faults, in order.
    pub fn plan(&self, operation: &str, faults: impl IntoIterator<Item = Fault>) {
        let faults = faults.into_iter().map(|fault| (operation.to_owned(), fault));
        self.state().planned.extend(faults);
    }

    /// Every call meets this fault from now on.
    pub fn always(&self, fault: Fault) {
        self.always_for("", fault);
    }

    /// Every call of the operation meets this fault from now on.
    pub fn always_for(&self, operation: &str, fault: Fault) {
        self.state().always = Some((operation.to_owned(), fault));
    }

    /// Every call on items of this entity meets this fault from now on.
    pub fn always_on(&self, entity: &str, fault: Fault) {
        self.state().always_on = Some((partition_of(entity), fault));
    }

    /// Every call on a bucket of this resource meets this fault from now on.
    pub fn always_on_resource(&self, resource: &str, fault: Fault) {
        self.state().always_on = Some((bucket_of(resource), fault));
    }

    /// `UpdateItem` meets random faults from now on, the same for the same seed.
    pub fn random_faults(&self, seed: u64, rates: FaultRates) {
        let mut state = self.state();
        state.random = fastrand::Rng::with_seed(seed);
        state.rates = rates;
    }

    /// Nothing goes wrong any more, except for the weather.
    pub fn heal(&self) {
        let mut state = self.state();
        state.always = None;
        state.always_on = None;
        state.planned.clear();
        state.rates = FaultRates::default();
    }

    /// Runs this just before the next call of the operation arrives, as another client would.
    pub fn before(&self, operation: &str, interruption: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.state();
        state.before.push((operation.to_owned(), Box::pin(interruption)));
    }

    /// Every call takes this long, half of it before it is executed.
    pub fn latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Calls on items of this entity take this long instead.
    pub fn latency_of(&self, entity: &str, latency: Duration) {
        self.state().latencies.push((partition_of(entity), latency));
    }

    /// Calls on buckets of this resource take this long instead.
    pub fn latency_of_resource(&self, resource: &str, latency: Duration) {
        self.state().latencies.push((bucket_of(resource), latency));
    }

    /// Every response carries this date, as a server's does.
    pub fn date(&self, date: &str) {
        self.state().date = Some(date.to_owned());
    }

    /// The calls since the last time this was asked.
    pub fn calls(&self) -> Vec<Call> {
        let mut state = self.state();
        state.most_in_flight = state.in_flight;
        std::mem::take(&mut state.calls)
    }

    /// The operations called since the last time calls were asked for.
    pub fn operations(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.operation).collect()
    }

    /// The largest number of calls in flight at the same time since calls were last asked for.
    pub fn most_in_flight(&self) -> usize {
        self.state().most_in_flight
    }
}

impl State {
    fn next_fault(&mut self, operation: &str, keys: [&str; 2]) -> Option<Fault> {
        if let Some(place) = self.planned.iter().position(|(name, _)| name == operation) {
            return self.planned.remove(place).map(|(_, fault)| fault);
        }
        let always = self.always.as_ref();
        let always = always.filter(|(name, _)| name.is_empty() || name == operation);
        let always_on = self
            .always_on
            .as_ref()
            .filter(|(name, _)| keys.contains(&name.as_str()));
        if let Some((_, fault)) = always.or(always_on) {
            return Some(*fault);
        }
        // The number of this call, which is not in the list yet.
        let number = self.calls.len() + 1;
        let regular = self.weather.fault(operation, number);
        regular.or_else(|| (operation == "UpdateItem").then(|| self.rates.draw(&mut self.random))?)
    }

    fn next_interruption(&mut self, operation: &str) -> Option<Interruption> {
        let place = self.before.iter().position(|(name, _)| name == operation)?;
        Some(self.before.remove(place).1)
    }

    fn latency_on(&self, keys: [&str; 2]) -> Duration {
        let own = self
            .latencies
            .iter()
            .find(|(name, _)| keys.contains(&name.as_str()));
        own.map_or(self.latency, |(_, latency)| *latency)
    }
}

fn partition_of(entity: &str) -> String {
    format!("ENTITY#{entity}")
}

fn bucket_of(resource: &str) -> String {
    format!("#BUCKET#{resource}")
}

/// The service and operation that a request is for.
fn target(request: &HttpRequest) -> (String, String) {
    let target = request.headers().get("x-amz-target").unwrap_or_default();
    let (service, operation) = target.split_once('.').unwrap_or_default();
    (service.to_owned(), operation.to_owned())
}

fn response(status: u16, body: &Value) -> HttpResponse {
    HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body.to_string()))
}
