//! Style sheet, script and icon, embedded in the binary. Nothing is loaded from elsewhere.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// A file.
#[derive(Debug)]
pub(crate) struct Asset {
    name: &'static str,
    content_type: &'static str,
    content: &'static str,
    /// Names the content, so that browsers keep it until it changes.
    version: String,
}

impl Asset {
    fn new(name: &'static str, content_type: &'static str, content: &'static str) -> Self {
        let mut version = String::new();
        for byte in Sha256::digest(content.as_bytes()).iter().take(6) {
            let _ = write!(version, "{byte:02x}");
        }
        Self {
            name,
            content_type,
            content,
            version,
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("/ui/assets/{}?v={}", self.name, self.version)
    }
}

pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "style.css",
        "text/css; charset=utf-8",
        include_str!("assets/style.css"),
    )
});
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "script.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/script.js"),
    )
});
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")));

/// `GET /ui/assets/{name}`.
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let all: [&Asset; 3] = [&STYLE, &SCRIPT, &ICON];
    match all.into_iter().find(|asset| asset.name == name) {
        Some(asset) => {
            let headers = [
                (header::CONTENT_TYPE, asset.content_type),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ];
            (headers, asset.content).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
