//! The engine's errors in DynamoDB's words.

use dynoxide::DynoxideError;

/// What a request that could not be read is answered with.
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
mod tests {
    use super::*;

    #[test]
    fn a_hidden_validation_error_is_one_and_has_no_marker() {
        let error = unreadable("VALIDATION:TableName must be at least 3 characters long at line 1 column 20");
        assert!(
            matches!(error, DynoxideError::ValidationException(_)),
            "{error:?}"
        );
        assert_eq!(error.to_string(), "TableName must be at least 3 characters long");
    }

    #[test]
    fn the_longer_marker_is_not_taken_for_the_shorter() {
        assert_eq!(unreadable("VALIDATION_REQUEST:bad key").to_string(), "bad key");
    }

    #[test]
    fn a_value_of_the_wrong_type_stays_a_serialization_error() {
        let error = unreadable("invalid type: integer `23`, expected a string at line 1 column 9");
        assert!(
            matches!(error, DynoxideError::SerializationException(_)),
            "{error:?}"
        );
    }
}
