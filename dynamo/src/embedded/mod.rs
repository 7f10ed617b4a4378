//! The table inside the process: an HTTP client of the AWS SDK that passes each request to a DynamoDB engine on SQLite
//! instead of the network. Nothing else in this crate knows the difference.

mod dispatch;
mod file;
mod stream;
mod wording;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Region, StalledStreamProtectionConfig};
use aws_smithy_runtime_api::client::auth::AuthSchemeId;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;
use tokio::sync::Semaphore;

use crate::{Error, Result};

pub use stream::{Changes, EmbeddedStream};

/// The writes to a file that are sent at the same time. SQLite makes one after the other.
const WRITES_AT_A_TIME: usize = 4;
/// How long a call waits before it checks whether another process holds the file.
const HELD_AFTER: Duration = Duration::from_millis(300);

/// Another process keeps the file locked, and the request was not carried out.
#[derive(Debug, Clone, thiserror::Error)]
#[error("another process holds {}", path.display())]
pub(crate) struct FileHeld {
    pub(crate) path: PathBuf,
}

/// Another process keeps the file locked, and the request still waits: it may be carried out later.
#[derive(Debug, Clone, thiserror::Error)]
#[error("another process holds {}", path.display())]
pub(crate) struct WaitsForFile {
    path: PathBuf,
}

/// A DynamoDB engine in the process, in memory or in one file. Clones share it.
#[derive(Clone)]
pub struct EmbeddedStore {
    database: Database,
    file: Option<PathBuf>,
    /// What a second connection opens: the file, or the name of the database in memory.
    address: String,
    /// Whose turn it is in memory, where connections do not wait for each other.
    turns: Arc<Mutex<()>>,
    /// For writes to a file.
    write_slots: Arc<Semaphore>,
    /// How many writes this process has finished.
    finished_writes: Arc<AtomicU64>,
}

impl EmbeddedStore {
    /// A store that lives as long as the process.
    pub fn memory() -> Result<Self> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let address = format!("file:zae-limiter-{number}?mode=memory&cache=shared");
        let database = Database::new(&address).map_err(|error| Error::Store {
            place: "in-memory store".to_owned(),
            reason: format!("cannot be opened: {error}"),
        })?;
        Ok(Self {
            database,
            file: None,
            address,
            turns: Arc::default(),
            write_slots: write_slots(),
            finished_writes: Arc::default(),
        })
    }

    /// A store in a file, which is created if it is absent.
    ///
    /// Several processes may share the file. A file that is not one of these stores is refused and left untouched.
    pub async fn file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let database = file::open(path.clone()).await?;
        Ok(Self {
            database,
            address: path.display().to_string(),
            file: Some(path),
            turns: Arc::default(),
            write_slots: write_slots(),
            finished_writes: Arc::default(),
        })
    }

    /// Where the store is kept, for messages.
    pub fn place(&self) -> String {
        self.file
            .as_ref()
            .map_or_else(|| "memory".to_owned(), |path| path.display().to_string())
    }

    /// An SDK configuration that sends every request to this store. Nobody would check signatures, so nothing is
    /// signed.
    pub fn sdk_config(&self) -> Builder {
        aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("embedded"))
            .endpoint_url("http://embedded.invalid")
            .allow_no_auth()
            .auth_scheme_preference([AuthSchemeId::from("noAuth")])
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .http_client(self.clone())
    }

    /// The slots for writes to a file, and how many there are; none in memory, where a write takes no time. A caller that times
    /// its writes waits for a slot first: the time that they wait for each other is not the file's.
    pub fn write_slots(&self) -> Option<(Arc<Semaphore>, usize)> {
        self.file
            .is_some()
            .then(|| (self.write_slots.clone(), WRITES_AT_A_TIME))
    }

    /// True if a call waits for a file that another process holds. While writes of this process finish, nobody else holds it:
    /// they only wait for each other, and a slow disk makes the lock look held. `finished` is what the last look found.
    async fn waits_for_another(&self, finished: &mut u64, is_held: impl Future<Output = bool>) -> bool {
        let before = std::mem::replace(finished, self.finished_writes.load(Ordering::Relaxed));
        before == *finished && is_held.await && *finished == self.finished_writes.load(Ordering::Relaxed)
    }

    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let in_memory = self.file.is_none();
        in_memory.then(|| self.turns.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn respond(&self, target: &str, body: &[u8]) -> Result<Response, FileHeld> {
        let _turn = self.turn();
        match dispatch::dispatch(&self.database, target, body) {
            Ok(json) => {
                if dispatch::is_write(target) {
                    self.finished_writes.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Response { status: 200, json })
            }
            Err(error) => match &self.file {
                Some(path) if wording::is_lock(&error) => Err(FileHeld { path: path.clone() }),
                _ => Ok(Response {
                    status: error.status_code(),
                    json: error.to_json(),
                }),
            },
        }
    }
}

fn write_slots() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(WRITES_AT_A_TIME))
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

struct Response {
    status: u16,
    json: String,
}

impl Response {
    fn into_http(self) -> Result<HttpResponse, ConnectorError> {
        let status =
            StatusCode::try_from(self.status).map_err(|error| ConnectorError::other(error.into(), None))?;
        let mut response = HttpResponse::new(status, SdkBody::from(self.json));
        response
            .headers_mut()
            .insert("content-type", "application/x-amz-json-1.0");
        Ok(response)
    }
}

impl HttpConnector for EmbeddedStore {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let store = self.clone();
        let target = request
            .headers()
            .get("x-amz-target")
            .unwrap_or_default()
            .to_owned();
        let body = request.body().bytes().unwrap_or_default().to_vec();
        let respond = move || store.respond(&target, &body);
        let Some(path) = self.file.clone() else {
            // Memory waits for nobody, and simulations must not meet a second thread.
            return HttpConnectorFuture::ready(into_connector_result(respond()));
        };
        let store = self.clone();
        HttpConnectorFuture::new(async move {
            let mut finished = store.finished_writes.load(Ordering::Relaxed);
            let mut response = tokio::task::spawn_blocking(respond);
            loop {
                match tokio::time::timeout(HELD_AFTER, &mut response).await {
                    Ok(Ok(response)) => return into_connector_result(response),
                    Ok(Err(error)) => return Err(ConnectorError::other(error.into(), None)),
                    // The engine would wait in silence for longer than callers have time.
                    Err(_) => {
                        let is_held = file::is_held(path.clone());
                        if store.waits_for_another(&mut finished, is_held).await {
                            return Err(ConnectorError::timeout(WaitsForFile { path }.into()));
                        }
                    }
                }
            }
        })
    }
}

fn into_connector_result(response: Result<Response, FileHeld>) -> Result<HttpResponse, ConnectorError> {
    match response {
        Ok(response) => response.into_http(),
        Err(held) => Err(ConnectorError::other(held.into(), None)),
    }
}

impl HttpClient for EmbeddedStore {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
