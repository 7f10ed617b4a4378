//! The engine's errors in DynamoDB's words.

use dynoxide::DynoxideError;

/// The error of a request that could not be read.
///
/// The engine finds many invalid requests while it reads them and can only say so in the reader's error: a marker,
/// the message, and the position in the text.
pub(super) fn unreadable(message: &str) -> DynoxideError {
    const INVALID: [&str; 3] = ["VALIDATION_REQUEST:", "VALIDATION_AS_READ:", "VALIDATION:"];
    const MALFORMED: [&str; 2] = ["SERIALIZATION_AS_READ:", "SERIALIZATION:"];
    let message = without_position(message);
    if let Some(text) = INVALID.iter().find_map(|marker| message.strip_prefix(marker)) {
        return DynoxideError::ValidationException(text.to_owned());
    }
    if let Some(text) = MALFORMED.iter().find_map(|marker| message.strip_prefix(marker)) {
        return DynoxideError::SerializationException(text.to_owned());
    }
    let invalid = [
        "missing field",
        "unknown variant",
        "invalid type: null",
        "AttributeValue",
    ];
    if invalid.iter().any(|part| message.contains(part)) {
        DynoxideError::ValidationException(message.to_owned())
    } else {
        DynoxideError::SerializationException(message.to_owned())
    }
}

/// The message without the " at line 1 column 2" that the JSON reader adds.
fn without_position(message: &str) -> &str {
    match message.rfind(" at line ") {
        Some(cut) if message[cut..].contains(" column ") => &message[..cut],
        _ => message,
    }
}

/// True if the engine gave up waiting for a lock on its file.
pub(super) fn is_lock(error: &DynoxideError) -> bool {
    let text = error.to_string();
    text.contains("database is locked") || text.contains("database table is locked")
}

#[cfg(test)]
mod tests;
