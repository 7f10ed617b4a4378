//! A change of a level's configuration. What it does not mention stays as it is.

use zae_limiter_schema::money::Prices;
use zae_limiter_schema::{
    AttributeValue, ConfigLevel, ConfigRecord, Limit, LimitSet, Mode, OnUnavailable, TemporaryLimits,
    Timestamp,
};

use super::audit::check_retention;
use super::bucket_change::checked_reason;
use super::limit_count::limit_set;
use super::setting::Setting;
use crate::{Error, Result};

/// What to change about the configuration of one level.
///
/// ```
/// use zae_limiter::{ConfigChange, Limit, OnUnavailable};
///
/// let change = ConfigChange::new()
///     .limits([Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 10_000)?])
///     .on_unavailable(OnUnavailable::Allow);
/// # Ok::<(), zae_limiter::error::InvalidLimit>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use = "a change does nothing until it is passed to set_config"]
pub struct ConfigChange {
    limits: Option<Vec<Limit>>,
    /// When these limits end.
    until: Option<Timestamp>,
    /// Limits that end stay where the others change.
    keeps_temporary: bool,
    ends_temporary: bool,
    reason: Option<String>,
    on_unavailable: Setting<OnUnavailable>,
    mode: Setting<Mode>,
    prices: Setting<Prices>,
    audit_retention_days: Option<u32>,
    auto_update: Option<bool>,
    strict_version: Option<bool>,
}

impl ConfigChange {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The limits of the level, in place of all that it has, those [that end](Self::until) included: at most
    /// [`MAX_LIMITS`](crate::MAX_LIMITS).
    pub fn limits(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.limits = Some(limits.into_iter().collect());
        self
    }

    /// The limits of this change end at this time. Until then they apply in place of those that the level has, on every
    /// process; then those apply again, or the next level decides where there are none. Nothing has to run at that time.
    ///
    /// ```
    /// use zae_limiter::{ConfigChange, ConfigLevel, Limit, RateLimiter, Timestamp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// repository.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// let end = Timestamp::parse("2099-12-01T00:00:00Z")?;
    /// let raise = ConfigChange::new().limits([Limit::per_minute("rpm", 500)?]).until(end);
    /// let stored = repository.set_config(&ConfigLevel::System, raise).await?;
    /// assert_eq!(stored.temporary.as_ref().map(|raise| raise.until), Some(end));
    /// assert_eq!(stored.limits.named("rpm").unwrap().capacity().get(), 100, "what applies afterwards");
    /// # Ok(()) }
    /// ```
    pub fn until(mut self, end: impl Into<Timestamp>) -> Self {
        self.until = Some(end.into());
        self
    }

    /// Ends limits that were set [until](Self::until) a time now.
    pub fn without_temporary_limits(mut self) -> Self {
        self.ends_temporary = true;
        self
    }

    /// Changes only the limits that last: those [that end](Self::until) stay until then.
    pub fn keep_temporary_limits(mut self) -> Self {
        self.keeps_temporary = true;
        self
    }

    /// Why, for the audit event: at most 1,000 bytes.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// The policy of the level.
    pub fn on_unavailable(mut self, policy: OnUnavailable) -> Self {
        self.on_unavailable = Setting::To(policy);
        self
    }

    /// Leaves the policy to the next level.
    pub fn without_on_unavailable(mut self) -> Self {
        self.on_unavailable = Setting::Nothing;
        self
    }

    /// Whether the limits are enforced, for calls that no more specific level decides about.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Setting::To(mode);
        self
    }

    /// Leaves the mode to the next level.
    pub fn without_mode(mut self) -> Self {
        self.mode = Setting::Nothing;
        self
    }

    /// The prices of a resource, or of every resource without prices of its own. Resource and system level only.
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Setting::To(prices);
        self
    }

    /// Removes the prices.
    pub fn without_prices(mut self) -> Self {
        self.prices = Setting::Nothing;
        self
    }

    /// How many days audit events are kept. System level only.
    pub fn audit_retention_days(mut self, days: u32) -> Self {
        self.audit_retention_days = Some(days);
        self
    }

    /// Whether a newer client may update the stack's functions. System level only.
    pub fn auto_update(mut self, allowed: bool) -> Self {
        self.auto_update = Some(allowed);
        self
    }

    /// Whether a version mismatch is an error. System level only.
    pub fn strict_version(mut self, strict: bool) -> Self {
        self.strict_version = Some(strict);
        self
    }

    /// Whether the limits are among what changes.
    pub(super) fn replaces_limits(&self) -> bool {
        self.limits.is_some() || self.ends_temporary
    }

    /// Whether limits that cannot be read are replaced.
    pub(super) fn repairs_limits(&self) -> bool {
        self.limits.is_some() && self.until.is_none()
    }

    /// The reason, as a detail of the audit event.
    pub(super) fn reason_detail(&self) -> Result<Option<(String, AttributeValue)>> {
        let reason = checked_reason(self.reason.as_deref())?;
        Ok(reason.map(|reason| ("reason".to_owned(), reason)))
    }

    /// The level after the change.
    pub(super) fn apply(
        &self,
        level: &ConfigLevel,
        present: Option<&ConfigRecord>,
        now: Timestamp,
    ) -> Result<ConfigRecord> {
        self.check(level, now)?;
        let mut record = match present {
            Some(present) => ConfigRecord {
                config_version: present.config_version.saturating_add(1),
                ..present.clone()
            },
            None => ConfigRecord::new(level.clone(), LimitSet::default()),
        };
        if self.replaces_limits() {
            let stays = self.limits.is_none() || self.keeps_temporary;
            let temporary = record.temporary.take();
            record.temporary = temporary.filter(|one| stays && !self.ends_temporary && now < one.until);
        }
        if let Some(limits) = &self.limits {
            let limits = limit_set("limits", limits.clone())?;
            match self.until {
                Some(until) => record.temporary = Some(TemporaryLimits { limits, until }),
                None => record.limits = limits,
            }
        }
        record.on_unavailable = self.on_unavailable.clone().apply(record.on_unavailable);
        record.mode = self.mode.clone().apply(record.mode);
        record.prices = self.prices.clone().apply(record.prices);
        let system = &mut record.system;
        system.audit_retention_days = self.audit_retention_days.or(system.audit_retention_days);
        system.auto_update = self.auto_update.or(system.auto_update);
        system.strict_version = self.strict_version.or(system.strict_version);
        Ok(record)
    }

    fn check(&self, level: &ConfigLevel, now: Timestamp) -> Result<()> {
        let nothing = Self {
            reason: self.reason.clone(),
            keeps_temporary: self.keeps_temporary,
            ..Self::default()
        };
        if *self == nothing {
            return Err(Error::invalid("change", "", "it must change something"));
        }
        if let Some(until) = self.until {
            let rule = if self.limits.is_none() {
                Some("set it together with limits")
            } else {
                (until <= now).then_some("it must be later than now")
            };
            if let Some(rule) = rule {
                return Err(Error::invalid("until", until.to_string(), rule));
            }
        }
        if self.limits.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::invalid(
                "limits",
                "",
                "pass at least one, or delete the configuration of the level",
            ));
        }
        let reserved = self
            .limits
            .iter()
            .flatten()
            .find(|limit| limit.name().is_reserved());
        if let Some(limit) = reserved {
            return Err(Error::invalid(
                "limit name",
                limit.name().as_str(),
                "it is reserved",
            ));
        }
        if let Setting::To(prices) = &self.prices {
            check_prices(level, prices)?;
        }
        let for_system_only = [
            (
                "audit_retention_days",
                self.audit_retention_days.map(|days| days.to_string()),
            ),
            ("auto_update", self.auto_update.map(|flag| flag.to_string())),
            ("strict_version", self.strict_version.map(|flag| flag.to_string())),
        ];
        let misplaced = for_system_only
            .into_iter()
            .find_map(|(field, value)| Some((field, value?)));
        if let (Some((field, value)), false) = (misplaced, *level == ConfigLevel::System) {
            return Err(Error::invalid(
                field,
                value,
                format!("it is set for the whole system, not for {level}"),
            ));
        }
        self.audit_retention_days.map_or(Ok(()), check_retention)
    }
}

fn check_prices(level: &ConfigLevel, prices: &Prices) -> Result<()> {
    if level.entity().is_some() {
        let rule = format!("prices belong to a resource or the system, not to {level}");
        return Err(Error::invalid("prices", "", rule));
    }
    prices
        .check()
        .map_err(|invalid| Error::invalid(invalid.field, invalid.value, invalid.rule))
}
