//! Randomness from a source that tests can seed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The source of every random choice: jitter, ids and tokens. The same seed gives the same choices.
#[derive(Debug)]
pub struct Entropy {
    source: Mutex<fastrand::Rng>,
}

impl Entropy {
    /// A source seeded by the operating system.
    pub fn from_system() -> Self {
        Self {
            source: Mutex::new(fastrand::Rng::new()),
        }
    }

    /// A source whose choices are decided by the seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            source: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }

    fn with<T>(&self, choose: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        choose(&mut self.source.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// 128 random bits.
    pub fn bits(&self) -> u128 {
        self.with(|source| source.u128(..))
    }

    /// A time from zero up to `most`: full jitter.
    pub fn up_to(&self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.with(|source| source.u64(..=most)))
    }

    /// Random lower-case letters and digits, for ids and idempotency tokens.
    pub fn text(&self, length: usize) -> String {
        const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        self.with(|source| {
            (0..length)
                .map(|_| char::from(ALPHABET[source.usize(..ALPHABET.len())]))
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_choices() {
        let (one, other) = (Entropy::seeded(7), Entropy::seeded(7));
        assert_eq!((one.text(12), one.bits()), (other.text(12), other.bits()));
        assert_ne!(one.text(12), Entropy::seeded(8).text(12));
    }

    #[test]
    fn jitter_stays_within_its_bound() {
        let entropy = Entropy::from_system();
        let most = Duration::from_millis(20);
        assert!((0..1000).all(|_| entropy.up_to(most) <= most));
    }
}
