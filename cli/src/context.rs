//! What every command is given: where the table is, and how to talk to whoever asks.

use std::path::PathBuf;

use zae_limiter::{RateLimiter, StackName};

use crate::args::Globals;
use crate::connect::{self, Place};
use crate::error::{Error, Result};
use crate::output::{Format, Terminal};

/// The name of a stack that nobody named.
pub(crate) const DEFAULT_NAME: &str = "limiter";

/// What the global options say.
pub(crate) struct Context {
    name: Option<StackName>,
    pub(crate) place: Place,
    /// How things are shown.
    pub(crate) terminal: Terminal,
    /// Where a document is to be written instead of standard output.
    pub(crate) file: Option<PathBuf>,
}

impl Context {
    pub(crate) fn new(globals: Globals) -> Self {
        let (format, file) = globals.output.split();
        Self {
            name: globals.name,
            place: Place {
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

    /// The stack's name, which is the table's.
    pub(crate) fn name(&self) -> Result<StackName> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => StackName::parse(DEFAULT_NAME).map_err(|error| Error::Bug {
                what: "the default name is none".to_owned(),
                source: error.into(),
            }),
        }
    }

    /// The name, if somebody gave one.
    pub(crate) fn given_name(&self) -> Option<&StackName> {
        self.name.as_ref()
    }

    /// The same on a local cloud of this machine.
    pub(crate) fn on_local_cloud(&self, endpoint: String) -> Self {
        Self {
            name: self.name.clone(),
            place: Place {
                embedded: None,
                region: self.place.region.clone(),
                endpoint: Some(endpoint),
                profile: None,
                local_credentials: true,
            },
            // The answer is the caller's; what happens on the way is told to people.
            terminal: Terminal {
                format: Format::Table,
                ..self.terminal
            },
            file: None,
        }
    }

    /// A limiter on the table.
    pub(crate) async fn limiter(&self) -> Result<RateLimiter> {
        connect::limiter(&self.place, &self.name()?).await
    }
}
