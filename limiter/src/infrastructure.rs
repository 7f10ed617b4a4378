//! The limiter's own stack: declared with the builder, deployed on demand.

use std::fmt;
use std::sync::Arc;

use aws_config::SdkConfig;
use zae_limiter_dynamo::CallError;
use zae_limiter_schema::{ConfigRecord, StackName, keys};
use zae_limiter_stack::{
    self as stack, Change, Code, CodeError, Discovered, Event, Mode, Outcome, Stack, StackOptions,
};

use crate::admin::Repository;
use crate::{ConfigChange, ConfigLevel, Error, RateLimiter, Result};

/// The stack that an application declares: its options, the source of the functions' code, and an observer of its
/// events.
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
    mode: Mode,
    observer: Option<Watcher>,
    configure: Option<Configure>,
}

type Configure = Arc<dyn Fn(Stack) -> Stack + Send + Sync>;
type Watcher = Arc<dyn Fn(&Event) + Send + Sync>;

impl StackSetup {
    /// A stack with these options. Its functions get the code that the feature `bundled-functions` compiled into the program;
    /// without that feature they keep what they have, or get what the options name.
    pub fn new(options: StackOptions) -> Self {
        Self {
            options,
            code: Code::default(),
            mode: Mode::Auto,
            observer: None,
            configure: None,
        }
    }

    /// Where the functions' code comes from.
    #[must_use]
    pub fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// What [`ensure_infrastructure`](RateLimiter::ensure_infrastructure) may do; the default is [`Mode::Auto`].
    ///
    /// ```
    /// use zae_limiter::StackSetup;
    /// use zae_limiter::stack::{Mode, StackOptions};
    ///
    /// let setup = StackSetup::new(StackOptions::default()).mode(Mode::Observe);
    /// ```
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Configures the [`Stack`] further: changes to the template before it is rendered, which data may be lost,
    /// whether a change that was rolled back is tried again, and how long to wait.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zae_limiter::StackSetup;
    /// use zae_limiter::stack::StackOptions;
    ///
    /// let setup = StackSetup::new(StackOptions::default())
    ///     .configure(|stack| stack.retry_rolled_back(true).within(Duration::from_secs(600)));
    /// ```
    #[must_use]
    pub fn configure(mut self, configure: impl Fn(Stack) -> Stack + Send + Sync + 'static) -> Self {
        self.configure = Some(Arc::new(configure));
        self
    }

    pub(crate) fn retention_days(&self) -> u32 {
        self.options.audit_retention_days()
    }

    /// The stack with this setup.
    fn stack(&self, name: StackName, aws: &SdkConfig) -> Stack {
        let mut stack = Stack::new(name, self.options.clone(), aws)
            .code(self.code.clone())
            .mode(self.mode);
        if let Some(observer) = self.observer.clone() {
            stack = stack.observer(move |event: &Event| observer(event));
        }
        match &self.configure {
            Some(configure) => configure(stack),
            None => stack,
        }
    }

    /// Whether this setup brings code that could replace what is deployed.
    fn brings_code(&self) -> bool {
        !matches!(self.code, Code::AsDeployed) || self.options.code_directory().is_some()
    }

    /// Receives the events of a deployment as they happen.
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
    /// Brings the stack to what was declared with [`RateLimiterBuilder::stack`](crate::RateLimiterBuilder::stack): creates it, changes it, or waits
    /// for another process that does. Without a declared stack it does nothing.
    ///
    /// ```rust,no_run,cloud
    /// use zae_limiter::RateLimiter;
    /// use zae_limiter::stack::StackOptions;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = RateLimiter::builder("my-app").stack(StackOptions::default()).await?;
    /// limiter.ensure_infrastructure().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// A process without the permission to deploy only observes: differences are warnings in the outcome. If another service
    /// has deployed this release with other options, the change is refused. [`StackSetup::mode`] changes both.
    ///
    /// If the stack is as it should be, that takes two calls to AWS, and one read of the table if code for the functions
    /// is declared: where `auto_update` is false (in the system configuration, or else in the builder), functions that are
    /// deployed keep their code, and only the other resources are changed. (Archives that the options name by their keys are
    /// used all the same.)
    ///
    /// After a change it also writes the table's version record and the retention of audit events.
    pub async fn ensure_infrastructure(&self) -> Result<Option<Outcome>> {
        self.repository().ensure_infrastructure().await
    }
}

impl Repository {
    /// Brings the stack to what was declared: see [`RateLimiter::ensure_infrastructure`].
    pub async fn ensure_infrastructure(&self) -> Result<Option<Outcome>> {
        let Some(setup) = &self.inner.stack else {
            return Ok(None);
        };
        let stack = setup.stack(self.name().clone(), self.aws()?);
        let outcome = if setup.brings_code() && !self.may_update_functions().await? {
            keep_code(stack).await
        } else {
            stack.ensure().await
        };
        let outcome = outcome.map_err(|error| Error::Stack(Arc::new(error)))?;
        if !outcome.changed() {
            return Ok(Some(outcome));
        }
        self.record_deployment(outcome).await.map(Some)
    }

    /// The same while a limiter is built, which logs the warnings instead of returning them.
    pub(crate) async fn ensure_on_build(&self) -> Result<()> {
        let outcome = self.ensure_infrastructure().await?;
        for warning in outcome.into_iter().flat_map(|outcome| outcome.warnings) {
            tracing::warn!(stack = %self.name(), %warning, "the stack is not as declared");
        }
        Ok(())
    }

    /// The stacks of this project in the account and region of this repository, deployed by any tool.
    ///
    /// ```no_run
    /// # async fn example() -> zae_limiter::Result<()> {
    /// let repository = zae_limiter::RateLimiter::builder("my-app").build_repository().await?;
    /// for stack in repository.list_stacks().await? {
    ///     println!("{} in {}: {}", stack.user_name, stack.region, stack.status);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn list_stacks(&self) -> Result<Vec<Discovered>> {
        let aws = self.aws()?;
        let found = Stack::discover(aws).await;
        found.map_err(|error| Error::Stack(Arc::new(error)))
    }

    /// The configuration for other AWS services.
    fn aws(&self) -> Result<&SdkConfig> {
        let rule = "an embedded table has no stack";
        let aws = self.inner.aws.as_ref();
        aws.ok_or_else(|| Error::invalid("stack", self.name().as_str(), rule))
    }

    /// Writes what no resource of a stack can hold: the table's version record and the retention of audit events. Every
    /// deployment ends with this; [`ensure_infrastructure`](RateLimiter::ensure_infrastructure) does it itself.
    ///
    /// The process that changed the stack must be able to write them. For every other process a failure is a warning in the
    /// outcome.
    pub async fn record_deployment(&self, outcome: Outcome) -> Result<Outcome> {
        let written = self.write_records(&outcome).await;
        with_records(outcome, written)
    }

    async fn write_records(&self, outcome: &Outcome) -> Result<()> {
        // The process that changed the stack may have been stopped before it wrote them.
        if outcome.changed() || self.get_version().await?.is_none() {
            self.write_version().await?;
        }
        self.store_retention(outcome.audit_retention_days).await
    }

    /// What the system configuration says, or else the builder.
    async fn may_update_functions(&self) -> Result<bool> {
        let key = keys::config(&ConfigLevel::System);
        let item = match self.table().get(&key, true).await {
            Err(error) if error.cause() == Some(&CallError::TableMissing) => None,
            item => item?,
        };
        let config = item.map(|item| ConfigRecord::readable(ConfigLevel::System, &item));
        let stored = config.and_then(|config| config.system.auto_update);
        Ok(stored.unwrap_or(self.inner.settings.auto_update))
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

/// The outcome after the table's records were written.
fn with_records(mut outcome: Outcome, written: Result<()>) -> Result<Outcome> {
    match written {
        Err(error) if matches!(outcome.change, Change::None | Change::Awaited) => {
            let warning = format!("the table's version record and retention were not written: {error}");
            outcome.warnings.push(warning);
            Ok(outcome)
        }
        written => written.map(|()| outcome),
    }
}

/// Changes everything but the code of functions. A missing stack has none to keep, and gets what was declared.
async fn keep_code(stack: Stack) -> std::result::Result<Outcome, stack::Error> {
    // An empty list of archives takes precedence over a directory in the options.
    match stack.clone().code(Code::bundled([])).ensure().await {
        Err(stack::Error::Code(CodeError::Missing { deployed: false, .. })) => stack.ensure().await,
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests;
