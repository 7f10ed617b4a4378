//! The gRPC health service: the same answer as `/readyz`.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::codegen::BoxStream;
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::endpoint::RateLimitEndpoint;
use crate::app::App;

/// How often a watched status is checked. All watches together read the table at most once a second.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How many watches are open at the same time.
const MAX_WATCHES: usize = 256;

#[derive(Debug)]
pub(super) struct HealthService {
    app: Arc<App>,
    watches: Arc<Semaphore>,
}

impl HealthService {
    pub(super) fn new(app: Arc<App>) -> Self {
        let watches = Arc::new(Semaphore::new(MAX_WATCHES));
        Self { app, watches }
    }
}

/// The server as a whole, or its only service.
fn is_known(service: &str) -> bool {
    service.is_empty() || service == RateLimitEndpoint::NAME
}

async fn status(app: &App) -> ServingStatus {
    if app.is_ready().await {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    let status = status.into();
    HealthCheckResponse { status }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        if !is_known(&service) {
            return Err(Status::not_found(format!("there is no service {service}")));
        }
        Ok(Response::new(response(status(&self.app).await)))
    }

    type WatchStream = BoxStream<HealthCheckResponse>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let Ok(place) = self.watches.clone().try_acquire_owned() else {
            let text = format!("{MAX_WATCHES} watches are open already; call Check");
            return Err(Status::resource_exhausted(text));
        };
        let watch = Watch {
            app: self.app.clone(),
            known: is_known(&request.into_inner().service),
            sent: None,
            _place: place,
        };
        Ok(Response::new(Box::pin(watch.stream())))
    }
}

/// A client that wants to know every change.
struct Watch {
    app: Arc<App>,
    known: bool,
    sent: Option<ServingStatus>,
    _place: OwnedSemaphorePermit,
}

impl Watch {
    /// The status, then each change of it, until the server stops.
    fn stream(self) -> impl Stream<Item = Result<HealthCheckResponse, Status>> {
        futures::stream::unfold(self, |mut watch| async move {
            let status = watch.next().await?;
            watch.sent = Some(status);
            Some((Ok(response(status)), watch))
        })
    }

    /// The next status that is not the one that was sent last.
    async fn next(&self) -> Option<ServingStatus> {
        loop {
            let status = if self.known {
                status(&self.app).await
            } else {
                ServingStatus::ServiceUnknown
            };
            if self.sent != Some(status) {
                return Some(status);
            }
            if self.app.is_stopping() {
                return None;
            }
            tokio::select! {
                () = tokio::time::sleep(WATCH_INTERVAL) => {}
                () = self.app.stopped() => {}
            }
        }
    }
}
