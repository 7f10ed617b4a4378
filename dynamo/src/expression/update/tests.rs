use super::*;

#[test]
fn clauses_and_placeholders_are_by_index() {
    let key = Key {
        pk: "SYSTEM#".to_owned(),
        sk: "#CONFIG".to_owned(),
    };
    let parts = Update::of(key)
        .set("l_a-b.c_cp", AttributeValue::N("1".to_owned()))
        .set_if_absent("kept", AttributeValue::N("0".to_owned()))
        .remove("gone")
        .add("config_version", AttributeValue::N("1".to_owned()))
        .when_still("config_version", Some(AttributeValue::N("4".to_owned())))
        .when_exists("PK")
        .into_parts();
    assert_eq!(
        parts.update,
        "SET #0=:0,#1=if_not_exists(#1,:1) REMOVE #2 ADD #3 :2"
    );
    assert_eq!(parts.condition.as_deref(), Some("#3=:3 AND attribute_exists(#4)"));
    assert_eq!(
        parts.names.map(|names| names["#0"].clone()).as_deref(),
        Some("l_a-b.c_cp")
    );
}
