//! Archives of the functions that are part of this command, if it was built with the feature `bundled-functions`.

#[cfg(feature = "bundled-functions")]
const ARCHIVES: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));
#[cfg(not(feature = "bundled-functions"))]
const ARCHIVES: &[(&str, &str, &[u8])] = &[];

/// The archive of a function for an architecture, by their names.
pub(super) fn archive(architecture: &str, function: &str) -> Option<&'static [u8]> {
    ARCHIVES
        .iter()
        .find(|(for_architecture, of_function, _)| {
            (*for_architecture, *of_function) == (architecture, function)
        })
        .map(|(_, _, bytes)| *bytes)
}
