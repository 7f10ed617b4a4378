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
