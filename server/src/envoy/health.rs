//! The gRPC health service: the same status as `/readyz`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::Stream;
use tokio::sync::oneshot;
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
/// How many watches are open at the same time. A further one ends the oldest: anyone may watch, so old watches must not
/// keep out new ones.
const MAX_WATCHES: usize = 256;

#[derive(Debug)]
pub(super) struct HealthService {
    app: Arc<App>,
    /// Ends a watch when it is dropped. The oldest first.
    watches: Mutex<VecDeque<oneshot::Sender<()>>>,
}

impl HealthService {
    pub(super) fn new(app: Arc<App>) -> Self {
        let watches = Mutex::default();
        Self { app, watches }
    }

    /// Completes when the watch has to make room.
    fn open_watch(&self) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|watch| !watch.is_closed());
        if watches.len() >= MAX_WATCHES {
            watches.pop_front();
        }
        watches.push_back(end);
        ended
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
        let watch = Watch {
            app: self.app.clone(),
            known: is_known(&request.into_inner().service),
            sent: None,
            ended: self.open_watch(),
        };
        Ok(Response::new(Box::pin(watch.stream())))
    }
}

/// A client that wants to know every change.
struct Watch {
    app: Arc<App>,
    known: bool,
    sent: Option<ServingStatus>,
    ended: oneshot::Receiver<()>,
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
    async fn next(&mut self) -> Option<ServingStatus> {
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
                _ = &mut self.ended => return None,
            }
        }
    }
}
