//! Opens the browser of the desktop.

use std::process::{Command, Stdio};

/// The commands that open an address, by operating system.
const OPENERS: [&str; 2] = if cfg!(target_os = "macos") {
    ["open", "xdg-open"]
} else {
    ["xdg-open", "open"]
};

/// Opens the address, or says that somebody has to.
pub(super) fn open(url: &str) {
    let opened = OPENERS.iter().any(|opener| {
        Command::new(opener)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .is_ok()
    });
    if !opened {
        eprintln!("no browser was found on this machine; open the address yourself");
    }
}
