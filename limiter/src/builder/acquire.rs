//! What an acquire may take, and what it does without the table.

use std::num::NonZeroU32;
use std::time::Duration;

use zae_limiter_schema::{Limit, OnUnavailable};

use super::RateLimiterBuilder;
use super::settings::ChunkScope;

impl RateLimiterBuilder {
    /// The limits that apply where no level has any: at most [`MAX_LIMITS`](crate::MAX_LIMITS).
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?.commit().await?;
    /// # Ok(()) }
    /// ```
    pub fn default_limits(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.limits = limits.into_iter().collect();
        self
    }

    /// The policy for outages at the lowest precedence: a stored policy overrides it. The default is to block.
    ///
    /// ```
    /// use zae_limiter::{OnUnavailable, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().on_unavailable(OnUnavailable::Allow).await?;
    /// # Ok(()) }
    /// ```
    pub fn on_unavailable(mut self, policy: OnUnavailable) -> Self {
        self.on_unavailable = policy;
        self
    }

    /// How long an acquire may take, retries included. The default is one second.
    pub fn time_budget(mut self, budget: Duration) -> Self {
        self.settings.time_budget = budget;
        self
    }

    /// How long adjustments and refunds are retried before they are reported as unwritten. The default is 30 seconds.
    pub fn settle_budget(mut self, budget: Duration) -> Self {
        self.settings.settle_budget = budget;
        self
    }

    /// How long a refusal is remembered. For this time after a bucket was read, requests for at least the amount that
    /// it could not cover are refused without a call to the table. The default is one second.
    pub fn refusal_cache_ttl(mut self, time: Duration) -> Self {
        self.settings.refusal_cache_ttl = time;
        self
    }

    /// How long an unused bucket lives at least, as a multiple of the time that an empty bucket takes to fill to its
    /// burst: 7 unless set, and 0 for no expiry. Debt lengthens the life to twice the time until the bucket is full.
    /// Applies to buckets on default limits; a bucket whose entity has limits of its own never expires.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// // A bucket of a limit that fills in a day is kept for two weeks after its last use.
    /// let limiter = zae_limiter::RateLimiter::embedded().bucket_ttl_refill_multiplier(14).await?;
    /// # Ok(()) }
    /// ```
    pub fn bucket_ttl_refill_multiplier(mut self, multiplier: u32) -> Self {
        self.settings.ttl_multiplier = multiplier;
        self
    }

    /// Limits what this process admits during an outage under the policy
    /// [`OnUnavailable::Allow`](crate::OnUnavailable::Allow): to one part in `processes` of every limit, both of its
    /// burst and of its refill. Unless set, every call is admitted during an outage.
    ///
    /// If `processes` is the real number of processes and calls are spread over them, then together they admit what the limits
    /// allow, plus what the bucket in the table regains during the outage, at most one burst. The limits are the last ones
    /// that the process read (see [`config_cache_entries`](Self::config_cache_entries)), or the builder's
    /// [`default_limits`](Self::default_limits); a call without known limits is blocked. The table never counts what is
    /// admitted this way, and [`Lease::admission`](crate::Lease::admission) says so.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use zae_limiter::{Limit, OnUnavailable, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// const PROCESSES: NonZeroU32 = NonZeroU32::new(10).unwrap();
    /// let limiter = RateLimiter::embedded()
    ///     .default_limits([Limit::per_minute("rpm", 600)?])
    ///     .on_unavailable(OnUnavailable::Allow)
    ///     .outage_fraction(PROCESSES) // each admits 60 a minute during an outage
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn outage_fraction(mut self, processes: NonZeroU32) -> Self {
        self.settings.processes = Some(processes);
        self
    }

    /// Takes tokens in chunks on all buckets. On a bucket with a steady rate of calls, the process takes the tokens of up to
    /// one second of calls ahead, with one write, and admits calls from memory. The default is off; see also
    /// [`token_chunks_on`](Self::token_chunks_on).
    ///
    /// For buckets with more traffic than one DynamoDB item takes writes, which is 1,000 a second. In all, no more is
    /// admitted than the limits allow; over an interval, at most the unspent tokens of chunks when it began, which
    /// [`LimiterStats::chunk_tokens`](crate::LimiterStats::chunk_tokens) shows. Chunks shrink near the limit, and go back when
    /// they are not used and by [`RateLimiter::shutdown`](crate::RateLimiter::shutdown). A process that crashes leaves its chunk taken, until the bucket has
    /// refilled.
    pub fn token_chunks(mut self) -> Self {
        self.settings.chunks = ChunkScope::Everywhere;
        self
    }

    /// Takes tokens in chunks on the buckets of this resource, as [`token_chunks`](Self::token_chunks) does on all.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = zae_limiter::RateLimiter::embedded().token_chunks_on("gpt-4").await?;
    /// # Ok(()) }
    /// ```
    pub fn token_chunks_on(mut self, resource: impl AsRef<str>) -> Self {
        if let ChunkScope::Resources(names) = &mut self.settings.chunks {
            names.insert(resource.as_ref().to_owned());
        }
        self
    }

    /// Whether refused acquires are counted in the usage, so that
    /// [`Repository::list_usage_snapshots`](crate::Repository::list_usage_snapshots) and `zae-limiter usage` show who is being
    /// limited. The default is true. Refusals are added up in memory and written to the bucket of the entity and resource
    /// at most once a minute and on [`RateLimiter::shutdown`](crate::RateLimiter::shutdown); the aggregator adds them to
    /// the snapshots. At most 10,000 buckets a minute are counted. An embedded table gets no such writes unless this
    /// process counts its usage (`count_usage`).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// // Saves these writes.
    /// let limiter = zae_limiter::RateLimiter::embedded().count_refusals(false).await?;
    /// # Ok(()) }
    /// ```
    pub fn count_refusals(mut self, count: bool) -> Self {
        self.settings.count_refusals = count;
        self
    }

    /// Whether this process counts the usage of its embedded table, as the aggregator of a stack does, every two seconds. The
    /// default is false. [`RateLimiter::shutdown`](crate::RateLimiter::shutdown) counts what is left; so does
    /// [`Repository::catch_up_usage`](crate::Repository::catch_up_usage) at any time.
    ///
    /// From then on the table records its changes until they are counted, the latest 100,000 of them. Of several processes on
    /// one file, any number may count: each change counts once. A process that opened the file before the first of them
    /// records its changes once it opens the file again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = zae_limiter::RateLimiter::embedded().count_usage(true).await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "usage")]
    pub fn count_usage(mut self, count: bool) -> Self {
        self.settings.count_usage = count;
        self
    }
}
