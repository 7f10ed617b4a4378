//! Concurrent calls, with a limit.

use futures::{StreamExt, stream};

/// The maximum number of concurrent calls of one invocation.
pub const MAX_CONCURRENT: usize = 16;

/// Runs the jobs, at most [`MAX_CONCURRENT`] at the same time, and passes each result to `each`. `false` from `each` stops
/// it and cancels the jobs that are running.
pub async fn spread<J: Future>(jobs: impl IntoIterator<Item = J>, mut each: impl FnMut(J::Output) -> bool) {
    let mut results = stream::iter(jobs).buffer_unordered(MAX_CONCURRENT);
    while let Some(result) = results.next().await {
        if !each(result) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_run_at_once_and_all_are_run() {
        let (running, most, done) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let jobs = (0..100).map(|_| async {
            running.set(running.get() + 1);
            most.set(most.get().max(running.get()));
            tokio::time::sleep(Duration::from_millis(5)).await;
            running.set(running.get() - 1);
        });
        spread(jobs, |()| {
            done.set(done.get() + 1);
            true
        })
        .await;
        assert_eq!((most.get(), done.get()), (MAX_CONCURRENT, 100));
    }
}
