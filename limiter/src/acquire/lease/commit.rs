//! The end of a lease: its tokens are kept and its adjustments written, or everything is given back.

use tokio::sync::oneshot;

use super::Lease;
use crate::bucket::{Deltas, Grant};
use crate::{Error, Result};

impl Lease {
    /// Keeps the tokens and writes the adjustments, one write for each charge that has any.
    ///
    /// An error says what could not be written yet; it is not lost: it goes on in the background, and what has to be
    /// given up in the end is reported by [`RateLimiter::shutdown`](crate::RateLimiter::shutdown).
    pub async fn commit(mut self) -> Result<()> {
        let answers = self.keep_all();
        let written = self.wait_for(answers).await;
        match self.unknown.first() {
            Some(limit) => Err(Error::invalid(
                "limit",
                limit,
                "it was adjusted, but the entity has no such limit",
            )),
            None => written,
        }
    }

    /// Commits without waiting, for code that cannot await, such as a drop. What has to be given up in the end is
    /// reported by [`RateLimiter::shutdown`](crate::RateLimiter::shutdown); an adjustment of a limit that does not exist
    /// is logged.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// let mut lease = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?;
    /// lease.adjust("rpm", 4);
    /// lease.commit_in_background();
    /// limiter.settled().await;
    /// assert_eq!(limiter.acquire("user-1", "gpt-4").peek().await?.tokens("rpm"), Some(95));
    /// # Ok(()) }
    /// ```
    pub fn commit_in_background(mut self) {
        if let Some(limit) = self.unknown.first() {
            tracing::warn!(entity = %self.entity(), resource = %self.resource(), limit, "an unknown limit was adjusted");
        }
        drop(self.keep_all());
    }

    /// Keeps the tokens and queues the adjustments.
    fn keep_all(&mut self) -> Vec<oneshot::Receiver<Result<()>>> {
        let changes = self.adjustments();
        if let Some(own) = self.own.take() {
            // A lease that is counted in part has its adjustments written.
            let unwritten = if self.is_counted() {
                Deltas::new()
            } else {
                changes.clone()
            };
            own.keep(&unwritten);
        }
        let mut answers = Vec::new();
        for grant in &mut self.held {
            answers.append(&mut grant.keep(&changes));
        }
        answers
    }

    /// Gives everything back.
    pub async fn rollback(mut self) -> Result<()> {
        drop(self.own.take());
        let answers: Vec<_> = self.held.drain(..).flat_map(Grant::give_back).collect();
        self.wait_for(answers).await
    }

    async fn wait_for(&self, answers: Vec<oneshot::Receiver<Result<()>>>) -> Result<()> {
        if answers.is_empty() {
            return Ok(());
        }
        let budget = self.buckets.shared().settings.time_budget;
        let pending = || {
            self.buckets
                .shared()
                .unavailable("the change is not written yet and goes on in the background")
        };
        let all = async {
            let mut result = Ok(());
            for answer in answers {
                if let Err(error) = answer.await.unwrap_or_else(|_| Err(pending())) {
                    result = Err(error);
                }
            }
            result
        };
        tokio::time::timeout(budget, all)
            .await
            .unwrap_or_else(|_| Err(pending()))
    }
}
