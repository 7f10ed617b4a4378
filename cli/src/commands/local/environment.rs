//! Environment variables that point AWS clients to the local cloud.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;

use crate::command_output::Text;
use crate::output::View;

/// The shell syntax of the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    /// sh, bash, and zsh
    Eval,
    /// A .envrc file
    Direnv,
    /// PowerShell
    Powershell,
}

/// The variables and their values. The credentials are dummies, so that real ones never reach a local cloud.
#[derive(Debug, Serialize)]
pub(super) struct Exports {
    #[serde(skip)]
    shell: Shell,
    #[serde(flatten)]
    variables: BTreeMap<&'static str, String>,
}

/// The variables that point AWS clients to a local cloud.
pub(super) fn variables(endpoint: &str) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_DEFAULT_REGION", "us-east-1".to_owned()),
    ])
}

impl Shell {
    pub(super) fn exports(self, endpoint: &str) -> Exports {
        Exports {
            shell: self,
            variables: variables(endpoint),
        }
    }
}

impl Text for Exports {
    fn text(&self, _: &View) -> String {
        let lines = self.variables.iter().map(|(name, value)| match self.shell {
            Shell::Eval | Shell::Direnv => format!("export {name}={value}"),
            Shell::Powershell => format!("$env:{name} = \"{value}\""),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
