//! The etag of a bucket (`cf`): which configuration its parameters come from, which incarnation it is, and when its
//! configuration was last to be read again.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::{EntityId, LimitSet, Timestamp};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What separates a fingerprint from the time of a bump. It is in no fingerprint.
const BUMP: char = '!';

/// Eleven characters that stand for limits, parent and cascade flag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 11]);

impl Fingerprint {
    /// The fingerprint of a configuration. It is stable: it is compared with what other processes have written.
    pub fn of(limits: &LimitSet, parent: Option<&EntityId>, cascade: bool) -> Self {
        let mut hash = Sha256::new();
        for limit in limits {
            let name = limit.name();
            hash.update(match limit.rate() {
                Some(rate) => format!(
                    "l {name} {} {} {} {}\n",
                    rate.capacity(),
                    rate.burst(),
                    rate.refill_amount(),
                    rate.refill_period_seconds()
                ),
                None => format!("k {name} {}\n", limit.kind()),
            });
        }
        if let Some(parent) = parent {
            hash.update(format!("p {parent}\n"));
        }
        hash.update(if cascade { "c 1\n" } else { "c 0\n" });
        let digest = hash.finalize();
        let mut bits = digest
            .iter()
            .take(8)
            .fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
        let mut text = [0; 11];
        for place in text.iter_mut().rev() {
            *place = ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
        Self(text)
    }

    pub(super) fn as_str(&self) -> &str {
        // All of the alphabet is ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Six characters drawn when a bucket is created: a bucket that was deleted and made again has others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incarnation([u8; 6]);

impl Incarnation {
    /// The incarnation for a drawn number.
    pub const fn from_random(mut random: u64) -> Self {
        let mut text = [0; 6];
        let mut place = 0;
        while place < text.len() {
            text[place] = ALPHABET[(random & 63) as usize];
            random >>= 6;
            place += 1;
        }
        Self(text)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte)))
    }
}

/// The etag as it stands on the item. Compared whole and never ordered; only the part after the dot is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Etag(Arc<str>);

impl Etag {
    /// The etag of a configuration on an incarnation.
    pub fn new(fingerprint: &Fingerprint, incarnation: &str) -> Self {
        Self(format!("{fingerprint}.{incarnation}").into())
    }

    /// An etag as found on an item.
    pub fn from_stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The etag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same, shared.
    pub(super) fn text(&self) -> &Arc<str> {
        &self.0
    }

    /// The same configuration on another incarnation.
    #[must_use]
    pub fn in_incarnation(&self, incarnation: Incarnation) -> Self {
        let fingerprint = self.0.split_once('.').map_or(&*self.0, |(before, _)| before);
        Self(format!("{fingerprint}.{incarnation}").into())
    }

    /// Which incarnation of the bucket this is.
    pub fn incarnation(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, incarnation)| incarnation)
    }

    /// Which configuration it stands for.
    pub(super) fn fingerprint(&self) -> &str {
        let before = self.0.split_once('.').map_or(&*self.0, |(before, _)| before);
        before
            .split_once(BUMP)
            .map_or(before, |(fingerprint, _)| fingerprint)
    }

    /// When the configuration of the bucket was last to be read again, whatever a client remembers of it.
    pub fn bumped_at(&self) -> Option<Timestamp> {
        let (before, _) = self.0.split_once('.')?;
        let (_, millis) = before.split_once(BUMP)?;
        Some(Timestamp::from_millis(millis.parse().ok()?))
    }

    /// Another etag for the same configuration and incarnation, which tells clients to read the configuration again.
    ///
    /// ```
    /// use zae_limiter_schema::Timestamp;
    /// use zae_limiter_schema::bucket::Etag;
    ///
    /// let now = Timestamp::from_millis(1_700_000_000_000);
    /// let bumped = Etag::from_stored("AbCdEfGhIjK.a1b2c3").bumped(now);
    /// assert_eq!(bumped.as_str(), "AbCdEfGhIjK!1700000000000.a1b2c3");
    /// assert_eq!((bumped.incarnation(), bumped.bumped_at()), ("a1b2c3", Some(now)));
    /// assert_eq!(bumped.bumped(now).bumped_at(), Some(now.plus_millis(1)), "never the same again");
    /// ```
    #[must_use]
    pub fn bumped(&self, now: Timestamp) -> Self {
        let next = self.bumped_at().map(|last| last.plus_millis(1));
        let at = next.map_or(now, |next| next.max(now)).millis();
        Self(format!("{}{BUMP}{at}.{}", self.fingerprint(), self.incarnation()).into())
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
