//! The version of the table: its record, the check before the first write, and migrations.

use zae_limiter_dynamo::{Transaction, Update};
use zae_limiter_schema::keys::{self, attribute};
use zae_limiter_schema::{AuditAction, ConfigLevel, ConfigRecord, Item, LimitSet, VersionRecord};

use super::audit;
use super::compatibility::{self, CLIENT_VERSION, Compatibility};
use super::config_write::config_write;
use super::migrations::{self, Look, Migrate, MigrationReport};
use super::repository::MAX_ATTEMPTS;
use crate::{Error, Repository, Result};

impl Repository {
    /// The version record of the table. None if it has not been written yet.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let record = repository.get_version().await?.expect("an embedded table has one");
    /// assert_eq!(record.schema_version, "0.8.0");
    /// # Ok(()) }
    /// ```
    pub async fn get_version(&self) -> Result<Option<VersionRecord>> {
        let item = self.inner.table.get(&keys::version(), true).await?;
        Ok(item.map(|item| VersionRecord::from_item(&item)).transpose()?)
    }

    /// Whether the table and this client are compatible. None if the table has no version record.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// assert_eq!(repository.get_compatibility().await?, Some(zae_limiter::versions::Compatibility::Compatible));
    /// # Ok(()) }
    /// ```
    pub async fn get_compatibility(&self) -> Result<Option<Compatibility>> {
        Ok(self.get_version().await?.as_ref().map(Compatibility::of))
    }

    /// Writes the record of this crate's format, unless a later release has written one: its table is left alone, and
    /// if this client cannot use it, that is the error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.write_version().await?;
    /// assert_eq!(repository.get_version().await?.unwrap().schema_version, zae_limiter::versions::VersionRecord::SCHEMA_VERSION);
    /// # Ok(()) }
    /// ```
    pub async fn write_version(&self) -> Result<()> {
        let this = self.for_one_operation();
        let table = this.table();
        for attempt in 1..=MAX_ATTEMPTS {
            let stored = table.get(&keys::version(), true).await?;
            let record = stored
                .as_ref()
                .and_then(|item| VersionRecord::from_item(item).ok());
            if let Some(record) = &record {
                match Compatibility::of(record) {
                    Compatibility::SchemaTooNew { .. } | Compatibility::ClientTooOld { .. } => {
                        return compatibility::admit(&table, Some(record), true);
                    }
                    Compatibility::Compatible if compatibility::is_later(record) => return Ok(()),
                    _ => {}
                }
            }
            let update = match &stored {
                Some(item) => self.current_version().when_still(
                    attribute::SCHEMA_VERSION,
                    item.get(attribute::SCHEMA_VERSION).cloned(),
                ),
                None => self.current_version().when_absent(attribute::PK),
            };
            if table.update(update).await? {
                return Ok(());
            }
            this.after_lost_race(&"the version record", attempt).await?;
        }
        Err(Error::contended(&"the version record"))
    }

    /// Brings the table up to date and writes its version record. Resumable, and harmless to repeat.
    ///
    /// ```
    /// use zae_limiter::RateLimiter;
    /// use zae_limiter::versions::Migrate;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// let plan = repository.migrate(Migrate::pending().dry_run()).await?;
    /// assert!(plan.steps.is_empty(), "a new table is up to date");
    /// # Ok(()) }
    /// ```
    pub async fn migrate(&self, how: Migrate) -> Result<MigrationReport> {
        migrations::run(self, &how).await
    }

    pub(super) async fn write_version_if_absent(&self) -> Result<()> {
        self.table()
            .update(self.current_version().when_absent(attribute::PK))
            .await?;
        Ok(())
    }

    /// Gives a table without a record the one of this crate, unless it holds items of an older format.
    pub(super) async fn stamp(&self) -> Result<Look> {
        let look = migrations::look_for_old_items(&self.table()).await?;
        if look == Look::Current {
            self.write_version_if_absent().await?;
        }
        Ok(look)
    }

    fn current_version(&self) -> Update {
        let record = VersionRecord::current(self.now(), format!("client:{CLIENT_VERSION}"));
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
            .get_or_try_init(|| Box::pin(self.check_version()))
            .await
            .copied()
    }

    async fn check_version(&self) -> Result<()> {
        let table = self.table();
        let (version, system) = (keys::version(), keys::config(&ConfigLevel::System));
        let found = table.batch_get([version.clone(), system.clone()], true).await?;
        let record = found.get(&version).map(VersionRecord::from_item).transpose()?;
        let stored = found.get(&system);
        // What cannot be read of it is repaired by a change, which must come past here.
        let config = stored.map(|item| ConfigRecord::readable(ConfigLevel::System, item));
        let strict = self.inner.settings.is_strict(config.as_ref());
        compatibility::admit(&table, record.as_ref(), strict)?;
        if record.is_none() && self.stamp().await? == Look::Old {
            compatibility::admit_old(&table, strict)?;
        }
        self.repair_retention(stored, config).await
    }

    /// Stores the retention of the declared stack where none is stored: the process that deployed it may have been stopped
    /// before doing so.
    async fn repair_retention(&self, stored: Option<&Item>, config: Option<ConfigRecord>) -> Result<()> {
        let is_stored = stored.is_some_and(|item| item.contains_key(attribute::AUDIT_RETENTION_DAYS));
        let (Some(days), false) = (self.declared_retention(), is_stored) else {
            return Ok(());
        };
        let mut record = config.map_or_else(
            || ConfigRecord::new(ConfigLevel::System, LimitSet::default()),
            |config| ConfigRecord {
                config_version: config.config_version.saturating_add(1),
                ..config
            },
        );
        record.system.audit_retention_days = Some(days);
        let details = audit::config_details(&record);
        let event = self
            .config_event(&ConfigLevel::System, AuditAction::LimitsSet, details)
            .await?;
        let table = self.table();
        let mut transaction = Transaction::on(&table);
        transaction.update(config_write(&record, stored, false));
        transaction.put_new(event.to_item());
        // Refused means that another writer has changed the level: the next client checks again.
        transaction.commit().await?;
        self.inner.audit.forget_retention();
        Ok(())
    }
}
