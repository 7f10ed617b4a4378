//! Creating the table where no stack does: in the process and on local endpoints.

use zae_limiter_schema::keys;

use crate::{Repository, Result};

impl Repository {
    /// Creates the table, its indexes and its version record if they are missing.
    ///
    /// For local endpoints and embedded stores. On AWS the table belongs to a stack.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().create_table(false).build_repository().await?;
    /// repository.create_table().await?;
    /// repository.create_table().await?;
    /// assert!(repository.version().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub async fn create_table(&self) -> Result<()> {
        let table = &self.inner.table;
        if !table.exists().await? {
            table.create().await?;
            return self.write_version_if_absent().await;
        }
        if table.get(&keys::version(), true).await?.is_none() {
            self.stamp().await?;
        }
        Ok(())
    }
}
