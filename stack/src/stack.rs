//! A stack: its name, its options, and what the caller allows.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use zae_limiter_template::model::Model;
use zae_limiter_template::{StackName, StackOptions};

use crate::cloud::Cloud;
use crate::code::{Code, Loaded};
use crate::deployed::Deployed;
use crate::desired::{Customize, Desired};
use crate::events::{Event, Observer};
use crate::patience::{Deadline, READING};
use crate::{Clients, Error, Mode};

/// Default time limit of an operation. Most take a few minutes.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// What the caller allows explicitly.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a permission of its own")]
pub(crate) struct Permissions {
    pub(crate) lose: BTreeSet<String>,
    pub(crate) downgrade: bool,
    pub(crate) retry: bool,
    pub(crate) recreate: bool,
    pub(crate) adopt: bool,
}

/// A stack and its desired state.
///
/// ```no_run
/// use zae_limiter_stack::{Code, Event, Stack, StackName, StackOptions};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let aws = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
/// let stack = Stack::new(StackName::parse("limiter")?, StackOptions::default(), &aws)
///     .code(Code::built_in("."))
///     .observer(|event: &Event| println!("{event}"));
/// let outcome = stack.ensure().await?;
/// println!("table {}", outcome.outputs["TableName"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Stack {
    pub(crate) name: StackName,
    pub(crate) options: StackOptions,
    pub(crate) cloud: Cloud,
    pub(crate) code: Code,
    pub(crate) observer: Arc<dyn Observer>,
    /// Whether the caller has set an observer. Without one, events are not read while waiting.
    pub(crate) observed: bool,
    pub(crate) mode: Mode,
    pub(crate) revert_drift: bool,
    pub(crate) customize: Option<Customize>,
    pub(crate) permissions: Permissions,
    pub(crate) timeout: Duration,
}

impl Stack {
    /// The end of an operation that starts now.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    /// The end of a call that starts now and only reads.
    pub(crate) fn reading(&self) -> Deadline {
        Deadline::after(self.timeout.min(READING))
    }

    /// An error if the time is over. `status` says what was waited for.
    pub(crate) fn in_time(&self, deadline: &Deadline, status: &str) -> Result<(), Error> {
        if !deadline.is_over() {
            return Ok(());
        }
        Err(Error::TimedOut {
            stack: self.name.to_string(),
            status: status.to_owned(),
            after: deadline.allowed,
        })
    }

    /// A stack in the account and region of this configuration.
    pub fn new(name: StackName, options: StackOptions, aws: &SdkConfig) -> Self {
        Self::with_clients(name, options, Clients::new(aws))
    }

    /// A stack that is accessed through these clients.
    pub fn with_clients(name: StackName, options: StackOptions, clients: Clients) -> Self {
        Self {
            name,
            options,
            cloud: Cloud {
                clients,
                service_role: None,
            },
            code: Code::default(),
            observer: Arc::new(|_: &Event| {}),
            observed: false,
            customize: None,
            permissions: Permissions {
                lose: BTreeSet::new(),
                downgrade: false,
                retry: false,
                recreate: false,
                adopt: false,
            },
            mode: Mode::default(),
            revert_drift: false,
            timeout: TIMEOUT,
        }
    }

    /// Sets where the functions' code comes from.
    #[must_use]
    pub fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// Sets an observer that receives events while an operation runs.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Arc::new(observer);
        self.observed = true;
        self
    }

    /// Changes the model before it is rendered, for example to add resources or patch a property.
    #[must_use]
    pub fn customize(
        mut self,
        change: impl Fn(&mut Model) -> Result<(), zae_limiter_template::Error> + Send + Sync + 'static,
    ) -> Self {
        self.customize = Some(Customize(Arc::new(change)));
        self
    }

    /// Allows these resources with data to be replaced or removed: logical ids such as `AuditArchiveBucket`, or indexes such as
    /// `RateLimitsTable/GSI3`.
    #[must_use]
    pub fn allow_loss(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.permissions.lose.extend(names.into_iter().map(Into::into));
        self
    }

    /// Allows a stack that a later release has deployed to be set back to this release.
    #[must_use]
    pub fn allow_downgrade(mut self, allow: bool) -> Self {
        self.permissions.downgrade = allow;
        self
    }

    /// Retries a change that was rolled back before.
    #[must_use]
    pub fn retry_rolled_back(mut self, retry: bool) -> Self {
        self.permissions.retry = retry;
        self
    }

    /// Deletes a stack whose creation failed and creates it again.
    #[must_use]
    pub fn recreate_failed(mut self, recreate: bool) -> Self {
        self.permissions.recreate = recreate;
        self
    }

    /// Allows changing or deleting a stack that another tool deploys: one with parameters, or without the tag `ManagedBy=zae-limiter`.
    #[must_use]
    pub fn adopt(mut self, adopt: bool) -> Self {
        self.permissions.adopt = adopt;
        self
    }

    /// Sets what [`ensure`](Stack::ensure) may do; the default is [`Mode::Apply`].
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the role that CloudFormation assumes for its operations on the stack (`RoleARN`). The caller needs
    /// `iam:PassRole` on it.
    #[must_use]
    pub fn service_role(mut self, arn: impl Into<String>) -> Self {
        self.cloud.service_role = Some(arn.into());
        self
    }

    /// Makes change sets that also undo drift (`DeploymentMode: REVERT_DRIFT`), even if the template has not changed.
    #[must_use]
    pub fn revert_drift(mut self, revert: bool) -> Self {
        self.revert_drift = revert;
        self
    }

    /// Sets how long to wait for an operation; the default is 30 minutes. An operation that takes longer continues in AWS, and
    /// the next call attaches to it. Calls that only read, such as [`status`](Stack::status), wait for 2 minutes at most.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The stack's name.
    pub fn name(&self) -> &StackName {
        &self.name
    }

    /// The stack's options.
    pub fn options(&self) -> &StackOptions {
        &self.options
    }

    pub(crate) fn tell(&self, event: &Event) {
        tracing::debug!(stack = %self.name, %event);
        self.observer.observe(event);
    }

    pub(crate) fn desired(&self, loaded: &Loaded, deployed: Option<&Deployed>) -> Result<Desired, Error> {
        Desired::render(
            &self.name,
            &self.options,
            self.customize.as_ref(),
            loaded,
            deployed,
        )
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
