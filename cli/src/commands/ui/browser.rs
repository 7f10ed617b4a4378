//! Opens the browser of the desktop.
//!
//! The address has a token, and everyone on the machine can see the arguments of a process. So the browser is given a
//! file that only its user can read, which leads to the address.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commands that open a file, by operating system.
const OPENERS: [&str; 2] = if cfg!(target_os = "macos") {
    ["open", "xdg-open"]
} else {
    ["xdg-open", "open"]
};

/// A file that leads a browser to an address. It is deleted when it is dropped.
#[derive(Debug)]
pub(super) struct LeadingPage {
    directory: PathBuf,
}

impl LeadingPage {
    /// Writes the file into a new directory below `parent`. Only the user may enter it.
    fn write(parent: &Path, url: &str) -> io::Result<Self> {
        let directory = parent.join(format!("zae-limiter-ui-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&directory)?;
        let page = Self { directory };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(page.path())?;
        // Addresses have no characters that HTML would have to escape.
        write!(
            file,
            "<!DOCTYPE html><title>zae-limiter</title><meta http-equiv=\"refresh\" content=\"0;url={url}\">"
        )?;
        Ok(page)
    }

    fn path(&self) -> PathBuf {
        self.directory.join("open.html")
    }
}

impl Drop for LeadingPage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Opens the address, or prints that it has to be opened by hand.
pub(super) fn open(url: &str) -> Option<LeadingPage> {
    let page = LeadingPage::write(&std::env::temp_dir(), url);
    let opened = page
        .ok()
        .filter(|page| OPENERS.iter().any(|opener| start(opener, &page.path())));
    if opened.is_none() {
        eprintln!("no browser was found on this machine; open the address yourself");
    }
    opened
}

fn start(opener: &str, file: &Path) -> bool {
    let mut command = Command::new(opener);
    command.arg(file);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_user_can_read_the_page_and_it_goes_away() {
        let parent = tempfile::tempdir().unwrap();
        let url = "http://127.0.0.1:4000/ui/login?token=secret";
        let page = LeadingPage::write(parent.path(), url).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&page.directory), mode(&page.path())), (0o700, 0o600));
        assert!(std::fs::read_to_string(page.path()).unwrap().contains(url));
        assert!(
            LeadingPage::write(parent.path(), url).is_err(),
            "never another's directory"
        );
        let directory = page.directory.clone();
        drop(page);
        assert!(!directory.exists());
    }
}
