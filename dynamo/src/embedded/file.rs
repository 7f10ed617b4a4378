//! Opening a store's file: whether it is ours, and whether another process holds it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dynoxide::Database;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::wording;
use crate::{Error, Result};

/// How long another process may keep the file while we open it.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries to open it: not every lock is one that the engine waits for.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Opens or creates the store, off the async threads: a lock held elsewhere blocks.
pub(super) async fn open(path: PathBuf) -> Result<Database> {
    tokio::task::spawn_blocking(move || open_blocking(&path))
        .await
        .map_err(|error| Error::Store {
            place: "embedded store".to_owned(),
            reason: format!("cannot be opened: {error}"),
        })?
}

fn open_blocking(path: &Path) -> Result<Database> {
    let Some(text) = path.to_str() else {
        return Err(refused(path, "its path is not valid UTF-8"));
    };
    let started = Instant::now();
    let database = loop {
        check(path)?;
        match Database::new(text) {
            Ok(database) => break database,
            Err(error) if !wording::is_lock(&error) => return Err(refused(path, &error.to_string())),
            Err(_) if started.elapsed() < PATIENCE => std::thread::sleep(BETWEEN_TRIES),
            Err(_) => return Err(held(path)),
        }
    };
    // The engine removes expired items only when asked. Nobody waits for them here, so a failure changes nothing.
    if let Err(error) = database.sweep_ttl() {
        tracing::debug!(path = text, %error, "expired items were not removed");
    }
    Ok(database)
}

/// Refuses a file that is not a store of ours, and one that another process does not let go of.
///
/// The engine would adopt any SQLite file by adding its tables to it, and wait 30 s for a lock.
fn check(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(file) if !file.is_file() => return Err(refused(path, "it is not a file")),
        Ok(file) if file.len() == 0 => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(path, &error.to_string())),
    }
    let probe = || -> rusqlite::Result<(i64, i64)> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(PATIENCE)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let count = |filter: &str| {
            let sql = format!("SELECT count(*) FROM sqlite_master WHERE type = 'table'{filter}");
            connection.query_row(&sql, [], |row| row.get(0))
        };
        let found = (
            count("")?,
            count(" AND name IN ('_config', '_tables', '_stream_records')")?,
        );
        connection.execute_batch("ROLLBACK")?;
        Ok(found)
    };
    match probe() {
        Ok((0, _) | (_, 3)) => Ok(()),
        Ok(_) => Err(refused(path, "it is the SQLite database of another program")),
        Err(error) if is_busy(&error) => Err(held(path)),
        Err(error) => Err(match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => refused(path, "it is not a store of zae-limiter"),
            _ => refused(path, &error.to_string()),
        }),
    }
}

/// True if the file cannot be written to now.
pub(super) async fn is_held(path: PathBuf) -> bool {
    let probe = move || -> rusqlite::Result<()> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(Duration::from_millis(50))?;
        connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")
    };
    tokio::task::spawn_blocking(probe)
        .await
        .is_ok_and(|probed| probed.is_err_and(|error| is_busy(&error)))
}

/// True if another connection has locked the file.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn held(path: &Path) -> Error {
    Error::FileHeld {
        path: path.to_owned(),
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::Store {
        place: path.display().to_string(),
        reason: format!("cannot be used as an embedded store: {why}; name another file"),
    }
}
