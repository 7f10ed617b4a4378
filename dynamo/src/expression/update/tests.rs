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
        "SET #a0 = :v0, #a1 = if_not_exists(#a1, :v1) REMOVE #a2 ADD #a3 :v2"
    );
    assert_eq!(
        parts.condition.as_deref(),
        Some("#a3 = :v3 AND attribute_exists(#a4)")
    );
    assert_eq!(
        parts.names.map(|names| names["#a0"].clone()).as_deref(),
        Some("l_a-b.c_cp")
    );
}
