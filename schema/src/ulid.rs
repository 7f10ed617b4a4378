//! ULIDs: ids of 26 characters that sort by the time they were made.

use std::fmt;

use crate::Timestamp;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 26;

/// The id of an audit event: 48 bits of milliseconds, then 80 bits of random, in Crockford's base 32.
///
/// ```
/// use zae_limiter_schema::{Timestamp, Ulid};
///
/// let id = Ulid::new(Timestamp::from_millis(1_469_918_176_385), 0);
/// assert_eq!(id.to_string(), "01ARYZ6S410000000000000000");
/// assert_eq!(Ulid::parse("01ARYZ6S410000000000000000"), Some(id));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ulid(u128);

impl Ulid {
    const CHANCE_BITS: u32 = 80;

    /// An id made at this time. Only the low 80 bits of `random` are used.
    pub const fn new(time: Timestamp, random: u128) -> Self {
        let millis = time.millis().cast_unsigned() as u128;
        Self((millis << Self::CHANCE_BITS) | (random & ((1 << Self::CHANCE_BITS) - 1)))
    }

    /// Reads the text form; `None` if it is not 26 characters of the alphabet within 128 bits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != LENGTH || text.as_bytes()[0] > b'7' {
            return None;
        }
        text.bytes()
            .map(|byte| ALPHABET.iter().position(|c| *c == byte.to_ascii_uppercase()))
            .try_fold(0u128, |value, digit| Some((value << 5) | digit? as u128))
            .map(Self)
    }

    /// The id that sorts right after this one; `None` after the last.
    ///
    /// ```
    /// use zae_limiter_schema::{Timestamp, Ulid};
    ///
    /// let id = Ulid::new(Timestamp::from_millis(1_000), u128::MAX);
    /// assert_eq!(id.successor(), Some(Ulid::new(Timestamp::from_millis(1_001), 0)));
    /// ```
    pub const fn successor(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }

    /// When it was made.
    pub const fn timestamp(self) -> Timestamp {
        Timestamp::from_millis((self.0 >> Self::CHANCE_BITS) as i64)
    }
}

impl fmt::Display for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for position in (0..LENGTH).rev() {
            let digit = (self.0 >> (5 * position)) & 31;
            f.write_char(char::from(ALPHABET[digit as usize]))?;
        }
        Ok(())
    }
}
