//! The OpenAPI document and the routes say the same.

use hyper::Method;
use serde_json::Value;

use crate::client::TestServer;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

#[tokio::test]
async fn every_documented_operation_is_routed_and_no_other() {
    let server = TestServer::start().await;
    let document = server.get("/openapi.json").await.expect(200).json();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/v1/acquire"), "{paths:?}");
    for (path, operations) in paths {
        let filled = path.replace(['{', '}'], "");
        for method in METHODS {
            let name = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let status = server.send(name, &filled, &[], "").await.status.as_u16();
            let documented = operations.get(method).is_some();
            assert_eq!(status != 405, documented, "{method} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn the_document_is_openapi_3_1_and_complete() {
    let server = TestServer::start().await;
    let document = server.get("/openapi.json").await.expect(200).json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        document["components"]["securitySchemes"]["bearer"]["scheme"],
        "bearer"
    );
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path} has no summary");
            let responses = operation["responses"].as_object().unwrap();
            assert!(
                responses.keys().any(|status| status.starts_with('2')),
                "{method} {path}"
            );
            for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
                let content = response["content"].as_object().unwrap();
                assert!(
                    content.contains_key("application/problem+json"),
                    "{method} {path} {status}"
                );
            }
        }
    }
    check_references(&document, &document);
}

/// Every reference leads to a component.
fn check_references(document: &Value, value: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
            }
            members
                .values()
                .for_each(|member| check_references(document, member));
        }
        Value::Array(items) => items.iter().for_each(|item| check_references(document, item)),
        _ => {}
    }
}
