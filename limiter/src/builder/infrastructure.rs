//! The stack that an application declares.

use super::RateLimiterBuilder;

impl RateLimiterBuilder {
    /// Declares the stack of this limiter. [`RateLimiter::ensure_infrastructure`](crate::RateLimiter::ensure_infrastructure)
    /// deploys it; with [`ensure`](Self::ensure), building the limiter does.
    ///
    /// With the feature `bundled-functions`, this deploys the whole stack on a fresh account. Otherwise the
    /// [`StackSetup`](crate::StackSetup) says where the functions' [code](crate::stack::Code) is.
    ///
    /// ```rust,no_run,cloud
    /// use zae_limiter::RateLimiter;
    /// use zae_limiter::stack::StackOptions;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let options = StackOptions::builder().lambda_memory(512).build()?;
    /// let limiter = RateLimiter::builder("my-app").stack(options).await?;
    /// if let Some(outcome) = limiter.ensure_infrastructure().await? {
    ///     println!("{:?}: table {}", outcome.change, outcome.outputs["TableName"]);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn stack(mut self, setup: impl Into<crate::StackSetup>) -> Self {
        self.stack = Some(setup.into());
        self
    }

    /// Whether building the limiter deploys its declared [`stack`](Self::stack). The default is false.
    ///
    /// A process that finds the stack as declared makes two calls to AWS for it. The first one on a fresh account waits until
    /// the stack is created, which takes minutes. Warnings of the outcome are logged.
    ///
    /// ```rust,no_run,cloud
    /// use zae_limiter::RateLimiter;
    /// use zae_limiter::stack::StackOptions;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = RateLimiter::builder("my-app").stack(StackOptions::default()).ensure(true).await?;
    /// # Ok(()) }
    /// ```
    pub fn ensure(mut self, ensure: bool) -> Self {
        self.ensure = ensure;
        self
    }

    /// Whether ensuring the stack may replace the code of deployed functions. The default is true, and the system configuration
    /// overrides it.
    ///
    /// ```rust,no_run,cloud
    /// use zae_limiter::RateLimiter;
    /// use zae_limiter::stack::StackOptions;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// // Creates the stack with its functions; later, `zae-limiter upgrade` replaces their code.
    /// let limiter = RateLimiter::builder("my-app")
    ///     .stack(StackOptions::default())
    ///     .auto_update(false)
    ///     .ensure(true)
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn auto_update(mut self, update: bool) -> Self {
        self.settings.auto_update = update;
        self
    }
}
