//! A panic fails one record, not its batch: otherwise every retry would panic again and block the shard.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;

use crate::CallError;

/// Reads a record. A panic means that it cannot be read.
pub fn reading<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        Err(format!(
            "reading the record panicked: {}",
            message(panic.as_ref())
        ))
    })
}

/// Processes what was read. A panic means that it cannot be processed.
pub async fn processing<T>(work: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|panic| {
        Err(CallError::Invalid(format!(
            "processing it panicked: {}",
            message(panic.as_ref())
        )))
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_reason_with_what_it_says_and_all_else_passes() {
        assert_eq!(reading(|| Ok(1)), Ok(1));
        assert_eq!(reading::<()>(|| Err("odd".to_owned())), Err("odd".to_owned()));
        assert_eq!(
            reading::<()>(|| panic!("at {}", 7)),
            Err("reading the record panicked: at 7".to_owned())
        );
        assert_eq!(processing(async { Ok(1) }).await, Ok(1));
        let failed: Result<(), _> = processing(async { panic!("plain") }).await;
        assert_eq!(
            failed,
            Err(CallError::Invalid("processing it panicked: plain".to_owned()))
        );
        let silent: Result<(), _> = processing(async { std::panic::panic_any(7) }).await;
        assert!(silent.is_err());
    }
}
