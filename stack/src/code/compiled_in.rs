//! Archives that are part of the program, if it was built with the feature `bundled-functions`.

use super::Code;

/// Architecture, function, archive.
#[cfg(feature = "bundled-functions")]
const ARCHIVES: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));
#[cfg(not(feature = "bundled-functions"))]
const ARCHIVES: &[(&str, &str, &[u8])] = &[];

impl Code {
    /// The archive of a function (`aggregator`, `archiver`, `provisioner`) that the feature `bundled-functions` compiled into the program. None without the feature, and
    /// for an architecture that was not built.
    ///
    /// ```
    /// use zae_limiter_stack::Code;
    ///
    /// assert!(Code::compiled_in("riscv", "aggregator").is_none());
    /// ```
    pub fn compiled_in(architecture: &str, function: &str) -> Option<&'static [u8]> {
        let wanted = (architecture, function);
        let found = ARCHIVES
            .iter()
            .find(|(architecture, function, _)| (*architecture, *function) == wanted);
        found.map(|(_, _, bytes)| *bytes)
    }
}
