//! Futures that run at the same time, in the task of the caller.

use std::future::{Future, poll_fn};
use std::task::Poll;

/// The outputs of all futures, in their order.
pub(super) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (future, output) in all.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(ready) => *output = Some(ready),
                Poll::Pending => pending = true,
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    all.into_iter().filter_map(|(_, output)| output).collect()
}

/// The output of the future that is ready first. Never ends if there is none.
pub(super) async fn first<F: Future>(futures: impl Iterator<Item = F>) -> F::Output {
    let mut all: Vec<_> = futures.map(Box::pin).collect();
    poll_fn(|context| {
        let mut polled = all.iter_mut().map(|future| future.as_mut().poll(context));
        polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}
