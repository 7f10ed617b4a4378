//! Ids of leases. A client that knows one can end the lease, so they cannot be guessed.

use std::fmt;
use std::str::FromStr;

/// 128 random bits, written as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(u128);

impl LeaseId {
    #[cfg(test)]
    pub(crate) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Fails if the operating system has no random numbers.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_ne_bytes(bytes)))
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text is not an id, so there can be no such lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAnId;

impl FromStr for LeaseId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        bits.map(Self).ok_or(NotAnId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_as_text() {
        let id = LeaseId::from_bits(0xab);
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn other_texts_are_no_ids() {
        for text in ["", "ab", "+0000000000000000000000000000000", &"f".repeat(33)] {
            assert_eq!(text.parse::<LeaseId>(), Err(NotAnId), "{text}");
        }
    }
}
