use serde_json::json;

use super::*;

fn refused(value: Value) -> Option<String> {
    let notes = vec![("note".to_owned(), value)];
    to_metadata(notes).err().map(|error| error.to_string())
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

#[test]
fn what_the_table_can_hold_is_a_note() {
    for value in [
        json!(0),
        json!(-0.0),
        json!(u64::MAX),
        json!(-9.9e125),
        json!(1e-130),
        json!({ "a": [null, true, "text"] }),
        json!("x".repeat(MAX_BYTES - 10)),
        nested(MAX_LEVELS - 1),
    ] {
        assert_eq!(refused(value.clone()), None, "{value:.60}");
    }
}

#[test]
fn what_the_table_cannot_hold_is_refused_with_the_rule() {
    for (value, rule) in [
        (json!(1e126), "magnitude"),
        (json!([{ "a": -1e300 }]), "magnitude"),
        (json!(1e-131), "magnitude"),
        (json!("x".repeat(MAX_BYTES)), "bytes in all"),
        (json!({ "": 1 }), "must not be empty"),
        (nested(MAX_LEVELS), "nesting exceeds 30 levels"),
    ] {
        let told = refused(value);
        assert!(
            told.as_ref().is_some_and(|told| told.contains(rule)),
            "{rule}: {told:?}"
        );
    }
}
