//! Single writes on the engine: values, consumed capacity, errors.

use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::bucket::{Action, Attr, Attributes, Condition, Scalar, Statement};

use super::Engine;

#[test]
fn values_of_every_type_are_written_and_read() {
    let engine = Engine::new();
    let other = Scalar::Other;
    let map = |value| {
        AttributeValue::M(std::collections::HashMap::from([(
            "a \"b\" \\".to_owned(),
            value,
        )]))
    };
    let values = [
        ("empty", Scalar::Text("".into())),
        ("a \"quoted\" name", Scalar::Number(0)),
        (
            "text",
            Scalar::Text("line\n\u{1}\u{1f}\"quoted\" \\ \u{e9}\u{1f600}".into()),
        ),
        ("large", Scalar::Number(i128::from(u64::MAX) * 1_000_000_000)),
        ("flag", Scalar::Flag(true)),
        ("decimal", other(AttributeValue::N("12.5".to_owned()))),
        ("null", other(AttributeValue::Null(true))),
        ("bytes", other(AttributeValue::B(vec![0, 1, 255]))),
        (
            "texts",
            other(AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()])),
        ),
        (
            "numbers",
            other(AttributeValue::Ns(vec!["1".to_owned(), "2".to_owned()])),
        ),
        ("binaries", other(AttributeValue::Bs(vec![vec![1], vec![2]]))),
        (
            "list",
            other(AttributeValue::L(vec![
                AttributeValue::Bool(false),
                AttributeValue::S("s".to_owned()),
            ])),
        ),
        ("map", other(map(map(AttributeValue::N("5".to_owned()))))),
        (
            "empty-map",
            other(AttributeValue::M(std::collections::HashMap::new())),
        ),
    ];
    let attr = |name: &str| Attr::Other(name.into());
    let statement = Statement {
        conditions: Vec::new(),
        actions: values
            .iter()
            .map(|(name, value)| Action::Set(attr(name), value.clone()))
            .collect(),
    };
    let written = engine.apply(&statement).unwrap();
    for (name, value) in &values {
        assert_eq!(written.get(&attr(name)), Some(value), "{name}");
    }
    assert_eq!(Attributes::default().apply(&statement).unwrap(), written);
}

#[test]
fn consumed_capacity_is_counted() {
    let engine = Engine::new();
    let before = engine.meter.consumed();
    let set = |conditions| Statement {
        conditions,
        actions: vec![Action::Set(Attr::Events, Scalar::Number(1))],
    };
    engine.apply(&set(Vec::new())).unwrap();
    let written = engine.meter.consumed();
    assert_eq!((written.calls - before.calls, written.write_units), (1, 1.0));
    engine
        .apply(&set(vec![Condition::Missing(Attr::Events)]))
        .unwrap_err();
    let refused = engine.meter.consumed();
    assert_eq!((refused.calls - written.calls, refused.write_units), (1, 2.0));
}

#[test]
fn an_error_is_the_services_own() {
    let engine = Engine::new();
    let statement = Statement {
        conditions: Vec::new(),
        actions: vec![Action::Set(Attr::Etag, Scalar::Text("text".into()))],
    };
    engine.apply(&statement).unwrap();
    let add_to_text = Statement {
        conditions: Vec::new(),
        actions: vec![Action::Add(Attr::Etag, 1)],
    };
    let error = engine.send(&add_to_text).unwrap_err();
    assert!(
        matches!(error.cause(), Some(crate::CallError::Invalid(_))),
        "{error}"
    );
}
