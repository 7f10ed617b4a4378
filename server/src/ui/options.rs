//! How the UI is set up.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::access::LoginToken;

/// A report about the stack, or why there is none.
type StackReport = Pin<Box<dyn Future<Output = Result<StackHealth, String>> + Send>>;
pub(crate) type AskStack = dyn Fn() -> StackReport + Send + Sync;

/// What the overview can say about the stack.
#[derive(Clone, Default)]
pub(crate) enum StackSource {
    /// This server does not know of a stack.
    #[default]
    NotChecked,
    /// The table has no stack.
    None,
    Ask(Arc<AskStack>),
}

/// How the stack is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackHealth {
    /// In a word or two, such as `CREATE_COMPLETE`.
    pub status: String,
    /// False if an operator has to act.
    pub healthy: bool,
    /// Names and values, such as the release.
    pub facts: Vec<(String, String)>,
}

impl StackHealth {
    /// A report with these facts.
    pub fn new(status: impl Into<String>, healthy: bool, facts: Vec<(String, String)>) -> Self {
        Self {
            status: status.into(),
            healthy,
            facts,
        }
    }
}

/// How the UI under `/ui` is set up. By default it is read-only.
///
/// ```
/// use zae_limiter_server::{LoginToken, UiOptions};
///
/// let token = LoginToken::random()?;
/// let options = UiOptions::default().edit(true).login_once(token.clone());
/// println!("open {}", token.url("http://127.0.0.1:8080"));
/// # Ok::<(), zae_limiter_server::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "options do nothing until a server is built with them"]
pub struct UiOptions {
    pub(crate) edit: bool,
    pub(crate) once: Option<LoginToken>,
    pub(crate) stack: StackSource,
}

impl UiOptions {
    /// Whether limits can be changed, with confirmation. Changes are audited.
    pub fn edit(mut self, edit: bool) -> Self {
        self.edit = edit;
        self
    }

    /// Only the browser that opens the address of this token first gets in. Useful on machines with several users.
    pub fn login_once(mut self, token: LoginToken) -> Self {
        self.once = Some(token);
        self
    }

    /// How to find out the health of the stack, which the overview shows.
    pub fn stack_health<F>(mut self, ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<StackHealth, String>> + Send + 'static,
    {
        self.stack = StackSource::Ask(Arc::new(move || Box::pin(ask())));
        self
    }

    /// The table has no stack, as one in a file. The overview says so.
    pub fn without_stack(mut self) -> Self {
        self.stack = StackSource::None;
        self
    }
}

impl fmt::Debug for UiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiOptions")
            .field("edit", &self.edit)
            .field("once", &self.once)
            .finish_non_exhaustive()
    }
}
