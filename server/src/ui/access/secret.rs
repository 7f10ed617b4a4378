//! Random texts that cannot be guessed.

use std::fmt;
use std::fmt::Write as _;

use subtle::ConstantTimeEq;

/// Random bytes in hexadecimal.
pub(crate) fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes)?;
    let mut text = String::with_capacity(48);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// A secret that opens the UI once: [`UiOptions::login_once`](crate::UiOptions::login_once).
#[derive(Clone)]
pub struct LoginToken(String);

impl LoginToken {
    /// A new one from the operating system's randomness.
    pub fn random() -> Result<Self, crate::Error> {
        random().map(Self).map_err(|error| crate::Error::Randomness {
            reason: error.to_string(),
        })
    }

    /// The address that a browser opens, on a server at `base`, such as `http://127.0.0.1:8080`.
    pub fn url(&self, base: &str) -> String {
        format!("{base}/ui/login?token={}", self.0)
    }

    pub(crate) fn is(&self, presented: &str) -> bool {
        same(&self.0, presented)
    }
}

/// Never shows the secret.
impl fmt::Debug for LoginToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoginToken")
    }
}
