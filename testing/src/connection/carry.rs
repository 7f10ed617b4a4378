//! Carrying one request to the store and its response back.

use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use serde_json::{Value, json};

use super::{Call, Connection, Fault, Interruption, Weather, batch, target};

impl HttpConnector for Connection {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let (_, operation) = target(&request);
        let body = batch::body(&request);
        let key = |name| body["Key"][name]["S"].as_str().unwrap_or_default().to_owned();
        let (partition, sort) = (key("PK"), key("SK"));
        let keys = [partition.as_str(), sort.as_str()];
        let (place, trip) = {
            let mut state = self.state();
            let trip = Trip {
                fault: state.next_fault(&operation, keys).unwrap_or(Fault::None),
                latency: state.latency_on(keys),
                interruption: state.next_interruption(&operation),
                operation: operation.clone(),
            };
            if state.weather != Weather::Fair && ["Query", "Scan"].contains(&operation.as_str()) {
                batch::rewrite(&mut request, |body| body["Limit"] = json!(1));
            }
            state.calls.push(Call {
                operation,
                partition,
                status: 0,
                request: body,
            });
            (state.calls.len() - 1, trip)
        };
        let connection = self.clone();
        let in_flight = InFlight::new(self);
        HttpConnectorFuture::new(async move {
            let mut response = trip.carry(connection.store.clone(), request).await?;
            drop(in_flight);
            let mut state = connection.state();
            if let Some(call) = state.calls.get_mut(place) {
                call.status = response.status().as_u16();
            }
            if let Some(date) = &state.date {
                response.headers_mut().insert("date", date.clone());
                response.headers_mut().insert("x-amzn-requestid", "test");
            }
            Ok(response)
        })
    }
}

impl HttpClient for Connection {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

/// What one request goes through.
struct Trip {
    operation: String,
    fault: Fault,
    latency: Duration,
    interruption: Option<Interruption>,
}

impl Trip {
    async fn carry(
        self,
        store: SharedHttpConnector,
        mut request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        pause(self.latency / 2).await;
        if let Some(error) = self.fault.error(&self.operation) {
            pause(self.latency / 2).await;
            return Ok(error);
        }
        let mut held_back = Value::Null;
        match self.fault {
            Fault::NothingProcessed => {
                let response = batch::nothing_processed(&self.operation, &request);
                return Ok(super::response(200, &response));
            }
            Fault::HalfProcessed => held_back = batch::hold_back_half(&mut request),
            Fault::LostRequest => return Err(ConnectorError::io("the request was lost".into())),
            Fault::ConnectionRefused => {
                let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
                return Err(ConnectorError::io(refused.into()));
            }
            Fault::Silence => return std::future::pending().await,
            Fault::Late(delay) => {
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    store.call(request).await
                });
                return Err(ConnectorError::timeout("no response".into()));
            }
            _ => {}
        }
        if let Some(interruption) = self.interruption {
            interruption.await;
        }
        // Once it is on its way a request is executed, whether or not anybody waits for the response.
        let executed = tokio::spawn(async move { store.call(request).await });
        let response = executed.await.unwrap();
        match self.fault {
            Fault::LostResponse => return Err(ConnectorError::timeout("the response was lost".into())),
            Fault::SilentResponse => return std::future::pending().await,
            _ => {}
        }
        pause(self.latency / 2).await;
        let mut response = response?;
        if !held_back.is_null() {
            batch::return_unprocessed(&self.operation, &mut response, held_back);
        }
        Ok(response)
    }
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// Counts a call as in flight until it has a response or nobody waits for it any more.
struct InFlight(Connection);

impl InFlight {
    fn new(connection: &Connection) -> Self {
        let mut state = connection.state();
        state.in_flight += 1;
        state.most_in_flight = state.most_in_flight.max(state.in_flight);
        drop(state);
        Self(connection.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
    }
}
