//! Connection errors: fail fast on a wrong region or endpoint, and retry once a service has responded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::retries::classifiers::{
    ClassifyRetry, RetryAction, RetryClassifierPriority,
};

/// Failed connections before giving up on a service that has never responded.
const FIRST_TRIES: u32 = 3;

/// Stops retries of connection errors as long as no call has ever got a response. Clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    responded: Arc<AtomicBool>,
    failures: Arc<AtomicU32>,
}

impl Reach {
    fn gives_up(&self, failed: bool) -> bool {
        if !failed {
            self.responded.store(true, Ordering::Relaxed);
            return false;
        }
        !self.responded.load(Ordering::Relaxed)
            && self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FIRST_TRIES
    }
}

impl ClassifyRetry for Reach {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let failed = match context.output_or_error() {
            Some(Err(error)) => error.is_connector_error() || error.is_timeout_error(),
            Some(Ok(_)) => false,
            None => return RetryAction::NoActionIndicated,
        };
        if self.gives_up(failed) {
            RetryAction::RetryForbidden
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "Reach"
    }

    fn priority(&self) -> RetryClassifierPriority {
        RetryClassifierPriority::run_after(RetryClassifierPriority::transient_error_classifier())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_never_answered_is_given_up_soon() {
        let reach = Reach::default();
        let tries: Vec<_> = (0..4).map(|_| reach.clone().gives_up(true)).collect();
        assert_eq!(tries, [false, false, true, true]);
    }

    #[test]
    fn a_service_that_has_answered_is_retried() {
        let reach = Reach::default();
        assert!(!reach.gives_up(true) && !reach.gives_up(false));
        assert!((0..9).all(|_| !reach.gives_up(true)));
    }
}
