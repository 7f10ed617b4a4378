//! For tests that feed the command line and its files with input that is wrong. Not part of the public interface.

use std::ffi::OsString;

use crate::args::Invocation;
use crate::commands::limits;

/// Parses arguments; the message, if they are refused.
pub fn command_line(arguments: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    Invocation::parse(arguments)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Parses a limits file; the message, if it is refused.
pub fn limits_file(text: &str) -> Result<(), String> {
    limits::check_file(text)
}
