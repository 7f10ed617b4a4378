//! The slots of a bucket (`o_0` to `o_f`): what makes a client's writes happen exactly once.
//!
//! A slot holds one number that says which client wrote last and which of its writes it was. A bucket has sixteen at
//! most, however many clients use it, so its item stays small. A client whose last number still stands in a slot owns
//! that slot: its next write compares and sets it.

use std::fmt;

/// How many digits of a slot's number are the client's tag.
const TAG: i128 = 10_000_000_000;
/// In front of the tag, a nonce of five digits: two copies of a process that write in the same millisecond have the same
/// tag and the same sequence number.
const NONCE: i128 = 100_000;

/// Identifies one limiter instance: a ten-digit number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientTag(i128);

impl ClientTag {
    /// The tag for a random number.
    pub const fn from_random(random: u128) -> Self {
        Self((random % TAG.unsigned_abs()).cast_signed())
    }

    /// The client that made the write with this number.
    pub const fn of(number: i128) -> Self {
        Self(number.rem_euclid(TAG))
    }

    /// The number of this client's write with this sequence number and a nonce from this random number. Sequence numbers
    /// rise and are not below the time in milliseconds, so that numbers of all clients are ordered by time.
    pub const fn number(self, sequence: i128, random: u128) -> i128 {
        let nonce = (random % NONCE.unsigned_abs()).cast_signed();
        (sequence * NONCE + nonce) * TAG + self.0
    }

    /// True if this client made the write with this number.
    pub const fn wrote(self, number: i128) -> bool {
        number.rem_euclid(TAG) == self.0
    }
}

impl fmt::Display for ClientTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}", self.0)
    }
}

/// One of the sixteen slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(u8);

impl SlotIndex {
    /// How many slots a bucket can have.
    pub const COUNT: u8 = 16;
    /// The first slot.
    pub const FIRST: Self = Self(0);

    /// All slots.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// The slot with this index, modulo their number.
    pub const fn new(index: u8) -> Self {
        Self(index % Self::COUNT)
    }

    /// Reads one lowercase hexadecimal digit.
    pub fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            [digit @ b'0'..=b'9'] => Some(Self(digit - b'0')),
            [digit @ b'a'..=b'f'] => Some(Self(digit - b'a' + 10)),
            _ => None,
        }
    }
}

impl SlotIndex {
    /// The index as one lowercase hexadecimal digit.
    pub fn digit(self) -> &'static str {
        const DIGITS: &str = "0123456789abcdef";
        let at = usize::from(self.0);
        DIGITS.get(at..=at).unwrap_or_default()
    }
}

impl fmt::Display for SlotIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.digit())
    }
}

/// What the slot must hold for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotBefore {
    /// Nothing: the client takes an empty slot.
    Empty,
    /// The number of the client's last write: the client owns the slot.
    Own(i128),
    /// Anything but this very write's number: the client takes over another client's slot.
    Any,
}

/// The change of a slot that is part of each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Which slot.
    pub index: SlotIndex,
    /// What it must hold.
    pub before: SlotBefore,
    /// The number of this write, see [`ClientTag::number`].
    pub number: i128,
}

impl Slot {
    /// When the write with this number was made, in epoch milliseconds.
    pub const fn written_at(number: i128) -> i128 {
        number.div_euclid(TAG * NONCE)
    }
}

/// The id in the name of a slot as releases before the numbered slots wrote them (`o_{client}`): four letters or digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LegacyClient([u8; 4]);

impl LegacyClient {
    /// How old such a slot must be before it is removed, in milliseconds. Its owner may still be running.
    pub const REMOVED_AFTER: i128 = 60_000;

    /// Reads four letters or digits.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 4] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_alphanumeric).then_some(Self(bytes))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        // Four letters or digits are text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for LegacyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
