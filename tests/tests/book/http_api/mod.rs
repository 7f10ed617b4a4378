//! The reference of the HTTP API: everything below its introduction is rendered from the server's OpenAPI document.

mod render;

use std::collections::BTreeSet;

use serde_json::json;

use crate::book::pages;
use crate::book::server::Serving;

const PAGE: &str = "docs/reference/http-api.md";
/// Set to write the page instead of comparing it.
const WRITE: &str = "ZAE_WRITE_BOOK";
/// Where the rendered part begins.
const MARK: &str = "<!-- Rendered from the OpenAPI document. -->\n\n";

#[test]
fn the_http_reference_is_rendered_from_the_openapi_document() {
    let rendered = render::document(&Serving::start().get("/openapi.json"));
    let page = pages::read(PAGE);
    let (introduction, current) = page.split_once(MARK).expect("the mark of the rendered part");
    if std::env::var_os(WRITE).is_some() {
        let text = format!("{introduction}{MARK}{rendered}");
        std::fs::write(pages::root().join(PAGE), text).unwrap();
        return;
    }
    assert!(
        current == rendered,
        "{PAGE} differs from the server. Run: {WRITE}=1 cargo test -p zae-limiter-tests --test main http_api"
    );
}

#[test]
fn the_server_guide_names_no_request_that_does_not_exist() {
    let document = Serving::start().get("/openapi.json");
    let guide = pages::read("docs/guide/server.md");
    let mut seen = BTreeSet::new();
    for span in guide.lines().flat_map(pages::code_spans) {
        let Some((methods, path)) = span.split_once(" /").filter(|(method, _)| is_method(method)) else {
            continue;
        };
        let path = format!("/{}", path.split('?').next().unwrap());
        if path == "/openapi.json" {
            continue;
        }
        let operation = &document["paths"][&path][methods.to_lowercase()];
        assert!(operation.is_object(), "docs/guide/server.md: {span}");
        seen.insert(path);
    }
    assert!(seen.len() > 8, "{seen:?}");
}

fn is_method(word: &str) -> bool {
    ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&word)
}

#[test]
fn types_are_named_in_words() {
    for (schema, words) in [
        (json!({ "type": "integer" }), "integer"),
        (json!({ "type": ["string", "null"] }), "string or null"),
        (
            json!({ "$ref": "#/components/schemas/Entity" }),
            "[`Entity`](#entity)",
        ),
        (
            json!({ "type": "array", "items": { "$ref": "#/components/schemas/Entity" } }),
            "list of [`Entity`](#entity)",
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            "object of integer",
        ),
        (
            json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Entity" }] }),
            "[`Entity`](#entity) or null",
        ),
        (
            json!({ "type": "string", "enum": ["hourly", "daily"] }),
            "`hourly`, `daily`",
        ),
        (json!({}), "any JSON"),
    ] {
        assert_eq!(render::type_of(&schema), words);
    }
}
