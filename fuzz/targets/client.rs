//! Stream records, and what the command line reads.

use std::ffi::OsString;

use zae_limiter::pagination::Cursor;
use zae_limiter_aggregator::Reading;
use zae_limiter_function::Batch as StreamBatch;
use zae_limiter_limits::LiteLlmPrices;

fn utf8(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// A batch as the event source mapping delivers it.
pub(crate) fn stream(data: &[u8]) {
    let Ok(batch) = serde_json::from_slice::<StreamBatch>(data) else {
        return;
    };
    for record in batch.records() {
        if let Ok(record) = record.decode() {
            drop(Reading::of(&record));
        }
    }
}

/// A limits file; what is refused is refused with the field at fault.
pub(crate) fn limits_file(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    if let Err(error) = zae_limiter_cli::hostile::limits_file(text) {
        assert!(!error.is_empty());
    }
}

/// LiteLLM's prices. Those of a model are imported, or the error names what is wrong.
pub(crate) fn prices(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let Ok(file) = LiteLlmPrices::parse(text) else {
        return;
    };
    for model in file.models() {
        match file.prices(model) {
            Ok(imported) => assert!(imported.prices.check().is_ok(), "{imported:?}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Arguments, one per line.
pub(crate) fn command_line(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let arguments = ["zae-limiter"]
        .into_iter()
        .chain(text.lines())
        .map(OsString::from);
    if let Err(error) = zae_limiter_cli::hostile::command_line(arguments) {
        assert!(!error.is_empty());
    }
}

/// A cursor of a list, as a client sends it back.
pub(crate) fn cursor(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    if let Ok(cursor) = text.parse::<Cursor>() {
        assert!(cursor.to_string().parse::<Cursor>().is_ok(), "{text:?}");
    }
}
