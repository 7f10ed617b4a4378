//! A client's slot on a bucket (`o_{client}`): what makes each of its writes happen exactly once.

use std::fmt;

/// The id of one limiter instance: four letters or digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId([u8; 4]);

impl ClientId {
    const ALPHABET: &'static [u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

    /// The id for a drawn number.
    pub const fn from_random(mut random: u128) -> Self {
        let mut text = [0; 4];
        let mut place = 0;
        while place < text.len() {
            text[place] = Self::ALPHABET[(random % 36) as usize];
            random /= 36;
            place += 1;
        }
        Self(text)
    }

    /// Reads four letters or digits.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 4] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_alphanumeric).then_some(Self(bytes))
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte)))
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientId({self})")
    }
}

/// What the slot must hold for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotBefore {
    /// Nothing: this is the client's first write on the bucket.
    Absent,
    /// The number of the client's last write.
    Number(i128),
    /// The number of its last write, or nothing: it is so old that another client may have removed it.
    NumberOrAbsent(i128),
}

/// The compare-and-set on a client's slot that is part of each of its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Whose slot.
    pub client: ClientId,
    /// What it must hold.
    pub before: SlotBefore,
    /// The number of this write: above the last one, and not below the time in milliseconds, which dates it.
    pub number: i128,
}

impl Slot {
    /// How old a slot must be before any other client may remove it, in milliseconds.
    pub const PRUNED_AFTER: i128 = 60_000;
}
