//! Helpers to read a template.

use serde_json::Value;

use crate::Template;

/// The resources of one type.
pub(super) fn of_type<'a>(
    template: &'a Template,
    kind: &'a str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    template
        .resources()
        .filter(move |(_, resource)| resource["Type"] == kind)
}

/// The items of a list, or the single value in its place.
pub(super) fn list(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        Value::Null => &[],
        single => std::slice::from_ref(single),
    }
}

/// The logical id that `Ref` or `Fn::GetAtt` points at.
pub(super) fn target(value: &Value) -> Option<&str> {
    let reference = value.get("Ref").or_else(|| value.get("Fn::GetAtt")?.get(0));
    reference.and_then(Value::as_str)
}

/// Whether a resource of type `kind` points at `id` and denies everything that does not come by TLS.
pub(super) fn denies_plain_http(template: &Template, kind: &str, pointer: &str, id: &str) -> bool {
    of_type(template, kind).any(|(_, policy)| {
        let about = list(&policy["Properties"][pointer])
            .iter()
            .any(|subject| target(subject) == Some(id));
        about
            && list(&policy["Properties"]["PolicyDocument"]["Statement"])
                .iter()
                .any(denies_without_tls)
    })
}

fn denies_without_tls(statement: &Value) -> bool {
    let anyone = statement["Principal"] == "*" || statement["Principal"]["AWS"] == "*";
    let everything = list(&statement["Action"])
        .iter()
        .filter_map(Value::as_str)
        .any(|action| action.ends_with('*'));
    let insecure = &statement["Condition"]["Bool"]["aws:SecureTransport"];
    statement["Effect"] == "Deny" && anyone && everything && (*insecure == "false" || *insecure == false)
}
