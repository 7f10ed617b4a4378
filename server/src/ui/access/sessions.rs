//! The sessions of browsers: pure, bounded, with an idle time and an age.

use std::collections::HashMap;
use std::time::Duration;

use sha2::{Digest, Sha256};
use zae_limiter::audit::Principal;

use crate::auth::{BearerTokens, Scope, TokenDigest};

/// How many browsers can be signed in. The one that was idle for longest is signed out first.
pub(crate) const MAX_SESSIONS: usize = 1_000;
/// A browser that was idle for this long is signed out.
pub(crate) const IDLE_TIME: Duration = Duration::from_hours(12);
/// A browser that signed in this long ago has to do it again, however much it was used.
pub(crate) const MAX_AGE: Duration = Duration::from_hours(24 * 7);

/// Who looks at a page, and what proves that a form came from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// The name of the bearer token that the browser signed in with, if it did.
    pub(crate) principal: Option<Principal>,
    /// That token.
    pub(crate) token: Option<TokenDigest>,
    /// The value that every form must send back.
    pub(crate) form_token: String,
}

impl Visitor {
    /// A session ends with the token that began it.
    pub(crate) fn is_allowed(&self, tokens: Option<&BearerTokens>) -> bool {
        let allowed = |digest| tokens.is_some_and(|tokens| tokens.allows(digest, Scope::Admin));
        self.token.is_none_or(allowed)
    }
}

#[derive(Debug)]
struct Session {
    visitor: Visitor,
    began: Duration,
    used: Duration,
}

impl Session {
    fn is_over(&self, now: Duration) -> bool {
        now >= self.used + IDLE_TIME || now >= self.began + MAX_AGE
    }
}

/// The sessions, by the digest of their secret.
#[derive(Debug, Default)]
pub(crate) struct Sessions(HashMap<[u8; 32], Session>);

impl Sessions {
    pub(crate) fn insert(&mut self, secret: &str, visitor: Visitor, now: Duration) {
        self.0.retain(|_, session| !session.is_over(now));
        if self.0.len() >= MAX_SESSIONS {
            let oldest = self.0.iter().min_by_key(|(_, session)| session.used);
            if let Some(digest) = oldest.map(|(digest, _)| *digest) {
                self.0.remove(&digest);
            }
        }
        let session = Session {
            visitor,
            began: now,
            used: now,
        };
        self.0.insert(digest(secret), session);
    }

    /// The visitor with this secret. The session lasts from now on for another idle time, but not beyond its age.
    pub(crate) fn find(&mut self, secret: &str, now: Duration) -> Option<Visitor> {
        let session = self.0.get_mut(&digest(secret))?;
        if session.is_over(now) {
            return None;
        }
        session.used = now;
        Some(session.visitor.clone())
    }

    pub(crate) fn remove(&mut self, secret: &str) {
        self.0.remove(&digest(secret));
    }
}

/// Looking up a digest takes no time that tells about the secret.
fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(form_token: &str) -> Visitor {
        Visitor {
            principal: None,
            token: None,
            form_token: form_token.to_owned(),
        }
    }

    #[test]
    fn a_session_lasts_while_it_is_used() {
        let mut sessions = Sessions::default();
        let hour = Duration::from_hours(1);
        sessions.insert("secret", visitor("form"), Duration::ZERO);
        assert_eq!(sessions.find("other", hour), None);
        assert_eq!(sessions.find("secret", hour * 11), Some(visitor("form")));
        assert_eq!(sessions.find("secret", hour * 22), Some(visitor("form")));
        assert_eq!(sessions.find("secret", hour * 34), None);
    }

    #[test]
    fn a_session_ends_at_its_age_however_much_it_is_used() {
        let mut sessions = Sessions::default();
        sessions.insert("secret", visitor("form"), Duration::ZERO);
        let hours = |number| Duration::from_hours(number);
        for hour in 1..24 * 7 {
            assert!(sessions.find("secret", hours(hour)).is_some(), "{hour}");
        }
        assert_eq!(sessions.find("secret", MAX_AGE), None);
    }

    #[test]
    fn the_longest_idle_session_makes_room() {
        let mut sessions = Sessions::default();
        for number in 0..=MAX_SESSIONS {
            let now = Duration::from_secs(number as u64);
            sessions.insert(&number.to_string(), visitor("form"), now);
        }
        let now = Duration::from_secs(MAX_SESSIONS as u64);
        assert_eq!(sessions.0.len(), MAX_SESSIONS);
        assert_eq!(sessions.find("0", now), None);
        assert!(sessions.find("1", now).is_some());
    }
}
