//! What was admitted, and how much of it an exact bucket would not have.

use tokio::time::Instant;

/// What was admitted, against a bucket that fills at the same rate. How far that would be in debt beyond its burst is what
/// the worst interval had too much.
#[derive(Debug)]
pub(super) struct Admissions {
    /// In thousandths of a token.
    pub(super) taken: u64,
    pub(super) worst: u64,
    pub(super) at: Instant,
    pub(super) per_second: u64,
}

impl Admissions {
    pub(super) fn admit(&mut self) {
        let now = Instant::now();
        let elapsed = u64::try_from((now - self.at).as_millis()).unwrap_or(u64::MAX);
        self.taken = self.taken.saturating_sub(elapsed * self.per_second) + 1000;
        self.at = now;
        self.worst = self.worst.max(self.taken);
    }
}
