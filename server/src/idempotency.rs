//! `Idempotency-Key`: which requests were made before, and what came of them. Pure: the caller passes the time.
//!
//! Only grants are remembered. A refusal or an error took nothing, so the same request may be made again.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::HeaderName;

use crate::problem::{Problem, ProblemKind};

/// The field with the key.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What becomes of a request with a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Begin<R> {
    /// The first with this key: run it, then [finish](IdempotencyKeys::finish) or
    /// [abandon](IdempotencyKeys::abandon) it.
    Run,
    /// It was granted before.
    Replay(R),
    /// The first with this key is still running.
    InProgress,
    /// The key was used for another request.
    OtherRequest,
    /// Too many requests with keys are running.
    Full,
}

/// The keys of the latest requests, at most a fixed number. The oldest is forgotten first.
#[derive(Debug)]
pub(crate) struct IdempotencyKeys<K, Q, R> {
    most: usize,
    ttl: Duration,
    entries: HashMap<K, Entry<Q, R>>,
    /// Finished keys with the time when they are forgotten, oldest first.
    finished: VecDeque<(Duration, K)>,
}

#[derive(Debug)]
struct Entry<Q, R> {
    request: Q,
    response: Option<R>,
}

impl<K: Clone + Eq + Hash, Q: PartialEq, R: Clone> IdempotencyKeys<K, Q, R> {
    pub(crate) fn new(most: usize, ttl: Duration) -> Self {
        Self {
            most,
            ttl,
            entries: HashMap::new(),
            finished: VecDeque::new(),
        }
    }

    pub(crate) fn begin(&mut self, key: K, request: Q, now: Duration) -> Begin<R> {
        self.forget(now);
        if let Some(entry) = self.entries.get(&key) {
            return match &entry.response {
                _ if entry.request != request => Begin::OtherRequest,
                Some(response) => Begin::Replay(response.clone()),
                None => Begin::InProgress,
            };
        }
        if self.entries.len() >= self.most {
            match self.finished.pop_front() {
                Some((_, oldest)) => self.entries.remove(&oldest),
                None => return Begin::Full,
            };
        }
        let response = None;
        self.entries.insert(key, Entry { request, response });
        Begin::Run
    }

    pub(crate) fn finish(&mut self, key: &K, response: R, now: Duration) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.response = Some(response);
            self.finished.push_back((now + self.ttl, key.clone()));
        }
    }

    /// Forgets a request that took nothing.
    pub(crate) fn abandon(&mut self, key: &K) {
        if self
            .entries
            .get(key)
            .is_some_and(|entry| entry.response.is_none())
        {
            self.entries.remove(key);
        }
    }

    fn forget(&mut self, now: Duration) {
        while self.finished.front().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, key)) = self.finished.pop_front() {
                self.entries.remove(&key);
            }
        }
    }
}

/// A request whose key is taken. Dropped unfinished, it frees the key: nothing was granted.
#[derive(Debug)]
pub(crate) struct Running<'a, K: Clone + Eq + Hash, Q: PartialEq, R: Clone> {
    keys: &'a Mutex<IdempotencyKeys<K, Q, R>>,
    key: K,
}

/// What becomes of a request with a key.
pub(crate) enum Started<'a, K: Clone + Eq + Hash, Q: PartialEq, R: Clone> {
    /// It runs.
    Now(Running<'a, K, Q, R>),
    /// It was granted before.
    Before(R),
}

impl<'a, K: Clone + Eq + Hash, Q: PartialEq + Clone, R: Clone> Running<'a, K, Q, R> {
    /// Takes the key for the request.
    pub(crate) fn begin(
        keys: &'a Mutex<IdempotencyKeys<K, Q, R>>,
        key: K,
        request: &Q,
        now: Duration,
    ) -> Result<Started<'a, K, Q, R>, Problem> {
        let begun = lock(keys).begin(key.clone(), request.clone(), now);
        let (kind, detail) = match begun {
            Begin::Run => return Ok(Started::Now(Self { keys, key })),
            Begin::Replay(response) => return Ok(Started::Before(response)),
            Begin::InProgress => (ProblemKind::RequestInProgress, "try again when it has finished"),
            Begin::OtherRequest => (
                ProblemKind::IdempotencyKeyReused,
                "use a new key for a new request",
            ),
            Begin::Full => (
                ProblemKind::Overloaded,
                "too many requests with idempotency keys are in progress",
            ),
        };
        Err(Problem::new(kind, detail))
    }
}

impl<K: Clone + Eq + Hash, Q: PartialEq, R: Clone> Running<'_, K, Q, R> {
    /// Keeps the response.
    pub(crate) fn finish(self, response: R, now: Duration) {
        lock(self.keys).finish(&self.key, response, now);
    }
}

impl<K: Clone + Eq + Hash, Q: PartialEq, R: Clone> Drop for Running<'_, K, Q, R> {
    fn drop(&mut self) {
        lock(self.keys).abandon(&self.key);
    }
}

fn lock<T>(keys: &Mutex<T>) -> MutexGuard<'_, T> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);
    const START: Duration = Duration::ZERO;

    fn keys(most: usize) -> IdempotencyKeys<&'static str, u32, &'static str> {
        IdempotencyKeys::new(most, TTL)
    }

    #[test]
    fn a_grant_is_replayed_until_the_key_is_forgotten() {
        let mut keys = keys(10);
        assert_eq!(keys.begin("a", 1, START), Begin::Run);
        assert_eq!(keys.begin("a", 1, START), Begin::InProgress);
        keys.finish(&"a", "granted", START);
        assert_eq!(
            keys.begin("a", 1, TTL - Duration::from_nanos(1)),
            Begin::Replay("granted")
        );
        assert_eq!(keys.begin("a", 1, TTL), Begin::Run);
    }

    #[test]
    fn a_key_stands_for_one_request() {
        let mut keys = keys(10);
        assert_eq!(keys.begin("a", 1, START), Begin::Run);
        assert_eq!(keys.begin("a", 2, START), Begin::OtherRequest);
        keys.finish(&"a", "granted", START);
        assert_eq!(keys.begin("a", 2, START), Begin::OtherRequest);
    }

    #[test]
    fn an_abandoned_request_may_be_made_again_and_a_finished_one_cannot_be_abandoned() {
        let mut keys = keys(10);
        assert_eq!(keys.begin("a", 1, START), Begin::Run);
        keys.abandon(&"a");
        assert_eq!(keys.begin("a", 2, START), Begin::Run);
        keys.finish(&"a", "granted", START);
        keys.abandon(&"a");
        assert_eq!(keys.begin("a", 2, START), Begin::Replay("granted"));
    }

    #[test]
    fn the_oldest_finished_key_makes_room_and_running_requests_do_not() {
        let mut keys = keys(2);
        assert_eq!(keys.begin("a", 1, START), Begin::Run);
        keys.finish(&"a", "granted", START);
        assert_eq!(keys.begin("b", 1, START), Begin::Run);
        assert_eq!(keys.begin("c", 1, START), Begin::Run);
        assert_eq!(keys.begin("d", 1, START), Begin::Full);
        assert_eq!(keys.entries.len(), 2);
    }
}
