//! The table's version record.

use zae_limiter_schema::keys::{self, attribute};
use zae_limiter_schema::{ConfigLevel, ConfigRecord, VersionRecord};

use crate::dynamo::Update;
use crate::versions::{self, CLIENT_VERSION, Compatibility};
use crate::{Repository, Result};

impl Repository {
    /// What the table says about its format; nothing if nobody has written it yet.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// let record = limiter.version().await?.expect("an embedded table has one");
    /// assert_eq!(record.schema_version, "0.8.0");
    /// # Ok(()) }
    /// ```
    pub async fn version(&self) -> Result<Option<VersionRecord>> {
        let item = self.inner.table.get(&keys::version(), true).await?;
        Ok(item.map(|item| VersionRecord::from_item(&item)).transpose()?)
    }

    /// Whether the table and this client fit together; nothing if the table has no version record.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// assert_eq!(limiter.compatibility().await?, Some(zae_limiter::Compatibility::Compatible));
    /// # Ok(()) }
    /// ```
    pub async fn compatibility(&self) -> Result<Option<Compatibility>> {
        Ok(self.version().await?.as_ref().map(Compatibility::of))
    }

    /// Writes the record of this crate's format, whatever was there.
    pub async fn write_version(&self) -> Result<()> {
        self.inner.table.update(self.current_version()).await?;
        Ok(())
    }

    pub(super) async fn write_version_if_absent(&self) -> Result<()> {
        self.inner
            .table
            .update(self.current_version().when_absent(attribute::PK))
            .await?;
        Ok(())
    }

    fn current_version(&self) -> Update {
        let record = VersionRecord::current(self.inner.clock.now(), format!("client:{CLIENT_VERSION}"));
        let mut attributes: Vec<_> = record.to_item().into_inner().into_iter().collect();
        attributes.retain(|(name, _)| name != attribute::PK && name != attribute::SK);
        attributes.sort_by(|one, other| one.0.cmp(&other.0));
        attributes
            .into_iter()
            .fold(Update::of(keys::version()), |update, (name, value)| {
                update.set(&name, value)
            })
    }

    /// Checks once that the table fits, before anything is written to it. A table without a record gets one.
    pub(crate) async fn ready(&self) -> Result<()> {
        self.inner
            .ready
            .get_or_try_init(|| self.check_version())
            .await
            .copied()
    }

    async fn check_version(&self) -> Result<()> {
        let table = &self.inner.table;
        let (version, system) = (keys::version(), keys::config(&ConfigLevel::System));
        let found = table
            .batch_get([version.clone(), system.clone()], true, table.budget())
            .await?;
        let record = found.get(&version).map(VersionRecord::from_item).transpose()?;
        let system = found.get(&system).map(ConfigRecord::from_item).transpose()?;
        versions::admit(table, record.as_ref(), system.as_ref())?;
        if record.is_none() {
            self.write_version_if_absent().await?;
        }
        Ok(())
    }
}
