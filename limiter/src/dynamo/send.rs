//! Sending a request until it is answered, refused, or its time is over.

use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use tokio::time::Instant;

use super::Table;
use crate::Error;
use crate::dynamo::failure::{Failure, classify};

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// What the pause before the second attempt may be at most; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// How much time an operation has left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    total: Duration,
    attempt: Duration,
    deadline: Instant,
}

impl Budget {
    pub(crate) fn starting_now(total: Duration, attempt: Duration) -> Self {
        Self {
            total,
            attempt,
            deadline: Instant::now() + total,
        }
    }

    /// The same for what is part of something that must be over at this moment.
    pub(crate) fn until(deadline: Instant, total: Duration, attempt: Duration) -> Self {
        Self {
            total,
            attempt,
            deadline,
        }
    }

    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    fn attempt_deadline(&self) -> Instant {
        self.deadline.min(Instant::now() + self.attempt)
    }

    /// Waits with full jitter before attempt number `attempt` (1 is the second). False if no time is left for it.
    pub(crate) async fn pause(&self, table: &Table, attempt: u32) -> bool {
        let most = FIRST_PAUSE
            .saturating_mul(1 << attempt.clamp(1, 10).saturating_sub(1))
            .min(LONGEST_PAUSE);
        let until = Instant::now() + table.entropy.up_to(most);
        if until >= self.deadline {
            return false;
        }
        tokio::time::sleep_until(until).await;
        true
    }
}

/// A call that was not carried out, or that nobody answered.
#[derive(Debug)]
pub(crate) struct Refusal<E> {
    failure: Failure,
    error: Error,
    answer: Option<E>,
}

impl<E> Refusal<E> {
    pub(crate) fn condition_failed(&self) -> bool {
        self.failure == Failure::ConditionFailed
    }

    /// What the service answered, if it did.
    pub(crate) fn answer(&self) -> Option<&E> {
        self.answer.as_ref()
    }
}

impl<E> From<Refusal<E>> for Error {
    fn from(refusal: Refusal<E>) -> Self {
        refusal.error
    }
}

impl Table {
    /// Sends the request again and again, as long as that may help and the budget lasts. The request must be one
    /// that may be carried out twice.
    pub(crate) async fn send<T, E, Sent>(
        &self,
        operation: &'static str,
        budget: Budget,
        mut request: impl FnMut() -> Sent,
    ) -> Result<T, Refusal<E>>
    where
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        Sent: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    {
        let mut attempts = 0;
        let mut told = None;
        loop {
            let (failure, answer) = match tokio::time::timeout_at(budget.attempt_deadline(), request()).await
            {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => (classify(&error), error.into_service_error_if_any()),
                // Silence tells less than what an earlier attempt was told.
                Err(_) => (told.take().unwrap_or_else(silence), None),
            };
            attempts += 1;
            if failure.is_transient() && budget.pause(self, attempts).await {
                tracing::debug!(operation, attempts, ?failure, "sending again");
                told = Some(failure);
                continue;
            }
            let error =
                failure
                    .clone()
                    .into_error(operation, self.name.as_str(), &self.place, budget.total());
            return Err(Refusal {
                failure,
                error,
                answer,
            });
        }
    }
}

fn silence() -> Failure {
    Failure::Unavailable("no answer in time".to_owned())
}

trait IntoServiceError<E> {
    fn into_service_error_if_any(self) -> Option<E>;
}

impl<E> IntoServiceError<E> for SdkError<E, HttpResponse> {
    fn into_service_error_if_any(self) -> Option<E> {
        match self {
            SdkError::ServiceError(answer) => Some(answer.into_err()),
            _ => None,
        }
    }
}
