//! Slots for requests. Each kind of request has its own, so that one kind cannot use up those of another.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, ProblemKind};
use crate::settings::Settings;

/// How long a request waits in line for a slot.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The slots of one server.
#[derive(Debug)]
pub(crate) struct Pools {
    /// Requests under `/v1`.
    pub(crate) api: Pool,
    /// Requests under `/v1` that wait for tokens. Each also has a slot of `api`.
    pub(crate) waiting: Pool,
    /// Acquires that use the table. Others wait in line.
    pub(crate) acquires: Pool,
    /// Requests under `/ui`.
    pub(crate) ui: Pool,
    /// `/readyz`.
    pub(crate) health: Pool,
    /// gRPC requests of Envoy, from their head to the end of the response.
    pub(crate) grpc: Pool,
}

/// Slots of one kind.
#[derive(Debug)]
pub(crate) struct Pool {
    slots: Arc<Semaphore>,
    most: usize,
    full: &'static str,
}

impl Pools {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            api: Pool::new(
                settings.max_requests,
                "too many requests are in progress; try again later",
            ),
            waiting: Pool::new(
                settings.max_waiting,
                "too many requests are waiting for tokens; try again later, or without wait_ms",
            ),
            acquires: Pool::new(
                settings.max_acquires.max(1),
                "the table cannot keep up with the calls; try again later",
            ),
            ui: Pool::new(
                settings.max_ui_requests,
                "too many pages are being loaded; try again later",
            ),
            health: Pool::new(
                settings.max_health_requests,
                "too many health checks are in progress; try again later",
            ),
            grpc: Pool::new(
                settings.max_grpc_requests,
                "too many requests are in progress; try again later",
            ),
        }
    }
}

impl Pool {
    fn new(most: usize, full: &'static str) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self {
            slots: Arc::new(Semaphore::new(most)),
            most,
            full,
        }
    }

    /// A slot, which is free again when it is dropped.
    pub(crate) fn take(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let slot = self.slots.clone().try_acquire_owned();
        slot.map_err(|_| Problem::new(ProblemKind::Overloaded, self.full))
    }

    /// A slot, as soon as one is free.
    pub(crate) async fn wait(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let slot = tokio::time::timeout(LONGEST_WAIT, self.slots.clone().acquire_owned());
        match slot.await {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(Problem::new(ProblemKind::Overloaded, self.full)),
        }
    }

    /// How many slots are taken.
    pub(crate) fn taken(&self) -> usize {
        self.most - self.slots.available_permits()
    }
}
