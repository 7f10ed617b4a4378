//! Credentials that all calls share: loaded once, by a task of their own, ahead of expiry.
//!
//! The SDK loads credentials inside the call that needs them, and a call that is canceled cancels the load. A provider that
//! takes longer than an attempt would never finish.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::CallError;
use crate::call_error::with_causes;

/// Credentials are replaced this long before they expire, or after half of their lifetime if that is later.
const REFRESH_AHEAD: Duration = Duration::from_mins(5);
/// Credentials that do not expire are loaded again after this, because files and environments change.
const REFRESH_UNLIMITED: Duration = Duration::from_mins(15);
/// The shortest time between two loads while there are valid credentials.
const SHORTEST_REFRESH: Duration = Duration::from_secs(10);
/// A provider that takes longer has failed.
const LOAD_TIMEOUT: Duration = Duration::from_mins(1);
/// A failure is returned to all callers for this long before the provider is called again.
const FAILURE_LIFETIME: Duration = Duration::from_secs(1);

type Loaded = Result<Credentials, Arc<CredentialsError>>;

/// A provider whose credentials all callers share. Canceling a caller never cancels a load. Clones share everything.
#[derive(Clone)]
pub struct SharedCredentials {
    provider: SharedCredentialsProvider,
    /// The profile that was chosen, for messages.
    profile: Option<String>,
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// The load that is under way.
    loading: Option<watch::Receiver<Option<Loaded>>>,
    /// Why the last load failed, and when.
    failure: Option<(Arc<CredentialsError>, Instant)>,
}

struct Current {
    credentials: Credentials,
    refresh_at: SystemTime,
}

impl Current {
    fn is_valid(&self, now: SystemTime) -> bool {
        let expiry = self.credentials.expiry();
        expiry.is_none_or(|expiry| expiry > now)
    }
}

impl fmt::Debug for SharedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCredentials")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl SharedCredentials {
    /// Shares the credentials of a provider. A profile, if one was chosen, is named when loading fails.
    pub fn new(provider: SharedCredentialsProvider, profile: Option<String>) -> Self {
        Self {
            provider,
            profile,
            now: Arc::new(SystemTime::now),
            state: Arc::default(),
        }
    }

    /// The same with another calendar, which decides when credentials expire.
    #[must_use]
    pub fn with_calendar(self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            ..self
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are credentials. If there are none by the deadline, that is a denial, and the load goes on for later
    /// calls.
    pub async fn ready_by(&self, deadline: Instant) -> Result<(), CallError> {
        match tokio::time::timeout_at(deadline, self.load()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(CallError::no_credentials(&with_causes(&*error))),
            Err(_) => Err(self.denial().unwrap_or_else(still_loading)),
        }
    }

    /// Why no request can be signed now: the last load failed, or the first one has not ended. None if there are credentials,
    /// or if nobody has asked for any.
    pub fn denial(&self) -> Option<CallError> {
        let now = (self.now)();
        let state = self.lock();
        if state
            .current
            .as_ref()
            .is_some_and(|current| current.is_valid(now))
        {
            return None;
        }
        match &state.failure {
            Some((error, _)) => Some(CallError::no_credentials(&with_causes(&**error))),
            None => state.loading.as_ref().map(|_| still_loading()),
        }
    }

    async fn load(&self) -> Loaded {
        let mut loading = match self.known_or_loading() {
            Ok(known) => return known,
            Err(loading) => loading,
        };
        let loaded = loading.wait_for(Option::is_some).await;
        match loaded.ok().and_then(|loaded| loaded.clone()) {
            Some(loaded) => loaded,
            // The runtime that the load ran on has ended.
            None => Err(Arc::new(CredentialsError::unhandled(
                "loading the credentials was interrupted",
            ))),
        }
    }

    /// What is known, or the load to wait for. Starts a load if one is due.
    fn known_or_loading(&self) -> Result<Loaded, watch::Receiver<Option<Loaded>>> {
        let now = (self.now)();
        let mut state = self.lock();
        let valid = state.current.as_ref().filter(|current| current.is_valid(now));
        match (valid, &state.failure) {
            (Some(current), _) => {
                let credentials = current.credentials.clone();
                if current.refresh_at <= now {
                    self.start_load(&mut state);
                }
                Ok(Ok(credentials))
            }
            (None, Some((error, at))) if at.elapsed() < FAILURE_LIFETIME => Ok(Err(error.clone())),
            (None, _) => Err(self.start_load(&mut state)),
        }
    }

    /// The load that is under way, or a new one.
    fn start_load(&self, state: &mut State) -> watch::Receiver<Option<Loaded>> {
        // A channel without a sender belongs to a runtime that has ended.
        if let Some(loading) = state
            .loading
            .as_ref()
            .filter(|loading| loading.has_changed().is_ok())
        {
            return loading.clone();
        }
        let (sender, receiver) = watch::channel(None);
        state.loading = Some(receiver.clone());
        let this = self.clone();
        tokio::spawn(async move {
            let loaded = this
                .call_provider()
                .await
                .map_err(|error| Arc::new(this.explained(error)));
            this.store(&loaded);
            sender.send_replace(Some(loaded));
        });
        receiver
    }

    async fn call_provider(&self) -> Result<Credentials, CredentialsError> {
        match tokio::time::timeout(LOAD_TIMEOUT, self.provider.provide_credentials()).await {
            Ok(loaded) => loaded,
            Err(_) => self
                .provider
                .fallback_on_interrupt()
                .ok_or_else(|| CredentialsError::provider_timed_out(LOAD_TIMEOUT)),
        }
    }

    /// The error, with the profile that was to provide the credentials.
    fn explained(&self, error: CredentialsError) -> CredentialsError {
        match &self.profile {
            Some(profile) => CredentialsError::invalid_configuration(format!(
                "profile `{profile}` does not exist or provides no credentials: {}",
                with_causes(&error)
            )),
            None => error,
        }
    }

    fn store(&self, loaded: &Loaded) {
        let now = (self.now)();
        let soonest = now + SHORTEST_REFRESH;
        let mut state = self.lock();
        state.loading = None;
        match loaded {
            Ok(credentials) => {
                state.failure = None;
                state.current = Some(Current {
                    credentials: credentials.clone(),
                    refresh_at: refresh_at(credentials, now).max(soonest),
                });
            }
            Err(error) => {
                tracing::warn!(
                    error = with_causes(&**error),
                    "the credentials could not be loaded"
                );
                state.failure = Some((error.clone(), Instant::now()));
                if let Some(current) = &mut state.current {
                    current.refresh_at = soonest;
                }
            }
        }
    }
}

/// A provider that hangs, such as a metadata service that is not there, is no outage of the table.
fn still_loading() -> CallError {
    CallError::no_credentials("the provider has not responded in time")
}

fn refresh_at(credentials: &Credentials, now: SystemTime) -> SystemTime {
    let Some(expiry) = credentials.expiry() else {
        return now + REFRESH_UNLIMITED;
    };
    let lifetime = expiry.duration_since(now).unwrap_or_default();
    expiry - REFRESH_AHEAD.min(lifetime / 2)
}

impl ProvideCredentials for SharedCredentials {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            self.load().await.map_err(|error| match &*error {
                CredentialsError::CredentialsNotLoaded(_) => CredentialsError::not_loaded(error),
                CredentialsError::InvalidConfiguration(_) => CredentialsError::invalid_configuration(error),
                _ => CredentialsError::provider_error(error),
            })
        })
    }

    fn fallback_on_interrupt(&self) -> Option<Credentials> {
        self.provider.fallback_on_interrupt()
    }
}

#[cfg(test)]
mod tests;
