//! What every command receives: the location of the table and the terminal.

use std::path::PathBuf;

use zae_limiter::{RateLimiter, Repository, StackName};

use crate::args::Globals;
use crate::connect::{self, TableLocation};
use crate::error::{Error, Result};
use crate::output::{Format, Terminal};

/// The stack name if `--name` is not given.
pub(crate) const DEFAULT_NAME: &str = "limiter";

/// The global options, resolved.
pub(crate) struct Context {
    name: Option<StackName>,
    pub(crate) location: TableLocation,
    /// How output is rendered.
    pub(crate) terminal: Terminal,
    /// The file that a document is written to instead of standard output.
    pub(crate) file: Option<PathBuf>,
}

impl Context {
    pub(crate) fn new(globals: Globals) -> Self {
        let (format, file) = globals.output.split();
        Self {
            name: globals.name,
            location: TableLocation {
                embedded: globals.embedded,
                region: globals.region,
                endpoint: globals.endpoint_url,
                profile: globals.profile,
                local_credentials: false,
            },
            terminal: Terminal::of_process(format, globals.color, globals.verbose > 0, globals.local_time),
            file,
        }
    }

    /// The name of the stack and its table.
    pub(crate) fn name(&self) -> Result<StackName> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => StackName::parse(DEFAULT_NAME).map_err(|error| Error::Internal {
                what: "the default stack name is invalid".to_owned(),
                source: error.into(),
            }),
        }
    }

    /// The name, if one was given.
    pub(crate) fn given_name(&self) -> Option<&StackName> {
        self.name.as_ref()
    }

    /// The same context for the stack of this name, which must be the one that was given, if one was.
    pub(crate) fn named(&self, name: StackName) -> Result<Self> {
        match &self.name {
            Some(given) if *given != name => Err(Error::usage(format!(
                "the plan is for stack {name}, and --name is {given}; leave out --name, or plan stack {given}"
            ))),
            _ => Ok(Self {
                name: Some(name),
                location: self.location.clone(),
                terminal: self.terminal,
                file: self.file.clone(),
            }),
        }
    }

    /// The same context, for a local cloud at this endpoint.
    pub(crate) fn on_local_cloud(&self, endpoint: String) -> Self {
        Self {
            name: self.name.clone(),
            location: TableLocation {
                embedded: None,
                region: self.location.region.clone(),
                endpoint: Some(endpoint),
                profile: None,
                local_credentials: true,
            },
            // The caller prints the result; progress on the way is always text.
            terminal: Terminal {
                format: Format::Table,
                ..self.terminal
            },
            file: None,
        }
    }

    /// A limiter on the table.
    pub(crate) async fn limiter(&self) -> Result<RateLimiter> {
        Ok(RateLimiter::from_repository(self.repository().await?))
    }

    /// What the table stores.
    pub(crate) async fn repository(&self) -> Result<Repository> {
        connect::repository(&self.location, &self.name()?).await
    }
}
