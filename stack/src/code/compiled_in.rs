//! Archives that are part of the program, if it was built with the feature `bundled-functions`.

use zae_limiter_template::LambdaFunction;

use super::Code;

/// Architecture, function, archive.
#[cfg(feature = "bundled-functions")]
const ARCHIVES: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));
#[cfg(not(feature = "bundled-functions"))]
const ARCHIVES: &[(&str, &str, &[u8])] = &[];

impl Code {
    /// The archive of a function that the feature `bundled-functions` compiled into the program. None without the feature, and
    /// for an architecture that was not built.
    ///
    /// ```
    /// use zae_limiter_stack::{Code, LambdaFunction};
    ///
    /// assert!(Code::compiled_in("riscv", LambdaFunction::Aggregator).is_none());
    /// ```
    pub fn compiled_in(architecture: &str, function: LambdaFunction) -> Option<&'static [u8]> {
        let wanted = (architecture, function.as_str());
        let found = ARCHIVES
            .iter()
            .find(|(architecture, function, _)| (*architecture, *function) == wanted);
        found.map(|(_, _, bytes)| *bytes)
    }
}
