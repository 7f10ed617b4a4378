//! The limiter's own stack: declared with the builder, brought about on demand.

use std::fmt;
use std::sync::Arc;

use zae_limiter_stack::{Code, Event, Outcome, Stack, StackOptions};

use crate::{ConfigChange, ConfigLevel, Error, RateLimiter, Result};

/// The stack that an application declares: what it should be, where the functions' code comes from, and who is told
/// what happens.
///
/// ```
/// use zae_limiter::StackSetup;
/// use zae_limiter::stack::{Code, StackOptions};
///
/// let setup = StackSetup::new(StackOptions::default())
///     .code(Code::built_in("."))
///     .observer(|event| println!("{event}"));
/// ```
#[derive(Clone)]
pub struct StackSetup {
    options: StackOptions,
    code: Code,
    observer: Option<Watcher>,
}

type Watcher = Arc<dyn Fn(&Event) + Send + Sync>;

impl StackSetup {
    /// A stack with these options, whose functions keep the code that they have.
    pub fn new(options: StackOptions) -> Self {
        Self {
            options,
            code: Code::AsDeployed,
            observer: None,
        }
    }

    /// Where the functions' code comes from.
    #[must_use]
    pub fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// Who is told what happens, while it happens.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }
}

impl From<StackOptions> for StackSetup {
    fn from(options: StackOptions) -> Self {
        Self::new(options)
    }
}

impl fmt::Debug for StackSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackSetup")
            .field("options", &self.options)
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}

impl RateLimiter {
    /// Brings the stack to what was declared with [`Builder::stack`](crate::Builder::stack): makes it, changes it, or
    /// waits for somebody who does. Two calls to AWS and nothing else when it is as it should be. Without a declared
    /// stack it does nothing.
    ///
    /// After a change it also writes the table's version record and the retention of audit events.
    pub async fn ensure_infrastructure(&self) -> Result<Option<Outcome>> {
        let Some(setup) = &self.inner.stack else {
            return Ok(None);
        };
        let repository = self.repository();
        let Some(aws) = &repository.inner.aws else {
            return Err(Error::invalid(
                "stack",
                repository.name().as_str(),
                "a table in the process has no stack",
            ));
        };
        let mut stack =
            Stack::new(repository.name().clone(), setup.options.clone(), aws).code(setup.code.clone());
        if let Some(observer) = setup.observer.clone() {
            stack = stack.observer(move |event: &Event| observer(event));
        }
        let outcome = stack
            .ensure()
            .await
            .map_err(|error| Error::Stack(Arc::new(error)))?;
        if outcome.changed() {
            repository.write_version().await?;
            self.store_retention(outcome.audit_retention_days).await?;
        }
        Ok(Some(outcome))
    }

    async fn store_retention(&self, days: u32) -> Result<()> {
        let stored = self.get_config(&ConfigLevel::System).await?;
        let stored = stored.and_then(|config| config.system.audit_retention_days);
        if stored != Some(days) {
            let change = ConfigChange::new().audit_retention_days(days);
            self.set_config(&ConfigLevel::System, change).await?;
        }
        Ok(())
    }
}
