//! The gRPC health service: the same answer as `/readyz`.

use std::sync::Arc;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::SERVICE_NAME;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::app::App;

#[derive(Debug)]
pub(super) struct HealthService {
    app: Arc<App>,
}

impl HealthService {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        if !service.is_empty() && service != SERVICE_NAME {
            return Err(Status::not_found(format!("there is no service {service}")));
        }
        let status = if self.app.is_ready().await {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        Ok(Response::new(HealthCheckResponse {
            status: status.into(),
        }))
    }

    type WatchStream = BoxStream<HealthCheckResponse>;

    /// Watching would read the table all the time. Clients that get this status stop watching.
    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("call Check"))
    }
}
