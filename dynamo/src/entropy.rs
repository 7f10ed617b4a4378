//! Randomness from a source that tests can seed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The source of every random choice: jitter, ids and tokens. The same seed gives the same choices.
#[derive(Debug)]
pub struct Entropy {
    /// None: the operating system.
    seeded: Option<Mutex<fastrand::Rng>>,
}

impl Entropy {
    /// Every id is drawn from the operating system. A generator of the process's own would draw the same ids in two copies
    /// of one image.
    pub fn from_system() -> Self {
        Self { seeded: None }
    }

    /// A source whose choices are decided by the seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seeded: Some(Mutex::new(fastrand::Rng::with_seed(seed))),
        }
    }

    fn fill(&self, bytes: &mut [u8]) {
        match &self.seeded {
            Some(source) => source.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes),
            None => {
                if let Err(error) = getrandom::fill(bytes) {
                    tracing::warn!(%error, "the operating system has no random numbers");
                    fastrand::fill(bytes);
                }
            }
        }
    }

    /// 128 random bits.
    pub fn bits(&self) -> u128 {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        u128::from_ne_bytes(bytes)
    }

    /// A time from zero up to `most`: full jitter.
    pub fn up_to(&self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(match &self.seeded {
            Some(source) => source.lock().unwrap_or_else(PoisonError::into_inner).u64(..=most),
            None => fastrand::u64(..=most),
        })
    }

    /// Random lower-case letters and digits, for ids and idempotency tokens.
    pub fn text(&self, length: usize) -> String {
        const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        let mut bytes = vec![0; length * 2];
        self.fill(&mut bytes);
        bytes
            .chunks_exact(2)
            .map(|pair| usize::from(pair[0]) << 8 | usize::from(pair[1]))
            .map(|drawn| char::from(ALPHABET[drawn % ALPHABET.len()]))
            .collect()
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
    fn ids_come_from_the_operating_system_whatever_the_state_of_the_process() {
        // Two copies of one image go on with the same state.
        let drawn = [(); 2].map(|()| {
            fastrand::seed(7);
            let entropy = Entropy::from_system();
            (entropy.bits(), entropy.text(32))
        });
        assert!(drawn[0].0 != drawn[1].0 && drawn[0].1 != drawn[1].1);
    }

    #[test]
    fn jitter_stays_within_its_bound() {
        let entropy = Entropy::from_system();
        let most = Duration::from_millis(20);
        assert!((0..1000).all(|_| entropy.up_to(most) <= most));
    }
}
