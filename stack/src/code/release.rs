//! Archives that were published with a release.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_smithy_http_client::default_connector;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::byte_stream::ByteStream;
use zae_limiter_template::{Architecture, LambdaFunction};

use super::{Archive, CodeError};

/// How long connecting, and each wait for data, may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many redirects are followed. Releases on GitHub have one.
const REDIRECTS: usize = 5;
/// What Lambda accepts as an archive, in bytes.
const LARGEST: usize = 250 * 1024 * 1024;

/// Archives of a release, by address and checksum: `{address}/zae-limiter-{function}-{architecture}.zip`.
///
/// The checksums pin the code, even if others can write to the address. A release publishes each as `.sha256` beside the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    address: String,
    sha256: BTreeMap<LambdaFunction, [u8; 32]>,
}

impl Release {
    /// The folder of the archives, such as `https://github.com/OWNER/REPO/releases/download/v0.1.0` or
    /// `https://BUCKET.s3.REGION.amazonaws.com/zae-limiter/v0.1.0`, and the SHA-256 of each in hexadecimal.
    pub fn new<'a>(
        address: &str,
        sha256: impl IntoIterator<Item = (LambdaFunction, &'a str)>,
    ) -> Result<Self, CodeError> {
        let has_scheme = address.starts_with("https://") || address.starts_with("http://");
        if !has_scheme || HttpRequest::get(address).is_err() {
            let rule = "must be a URL that starts with https:// or http://";
            return Err(invalid("address", address, rule));
        }
        let sha256 = sha256.into_iter().map(|(function, text)| {
            let rule = "must be a SHA-256 of 64 hexadecimal digits";
            let hash = from_hex(text).ok_or_else(|| invalid("sha256", text, rule))?;
            Ok((function, hash))
        });
        Ok(Self {
            address: address.trim_end_matches('/').to_owned(),
            sha256: sha256.collect::<Result<_, CodeError>>()?,
        })
    }

    /// The archive of a function, which is downloaded when it is needed.
    pub(crate) fn archive(
        &self,
        function: LambdaFunction,
        architecture: Architecture,
    ) -> Result<Archive, CodeError> {
        let address = format!("{}/zae-limiter-{function}-{architecture}.zip", self.address);
        let Some(hash) = self.sha256.get(&function) else {
            let rule = format!("must have the checksum of the {function}");
            return Err(invalid("sha256", &address, &rule));
        };
        let download = Download {
            address,
            function,
            architecture,
        };
        Ok(Archive::of_release(download, *hash))
    }
}

/// An archive that can be downloaded.
#[derive(Debug, Clone)]
pub(crate) struct Download {
    pub(crate) address: String,
    pub(crate) function: LambdaFunction,
    pub(crate) architecture: Architecture,
}

impl Download {
    pub(crate) async fn fetch(&self) -> Result<Vec<u8>, CodeError> {
        download(&self.address)
            .await
            .map_err(|problem| CodeError::DownloadFailed {
                address: self.address.clone(),
                problem,
            })
    }
}

async fn download(address: &str) -> Result<Vec<u8>, String> {
    let settings = HttpConnectorSettings::builder()
        .connect_timeout(TIMEOUT)
        .read_timeout(TIMEOUT)
        .build();
    let connector = default_connector(&settings, None).ok_or("this program was built without TLS")?;
    let mut address = address.to_owned();
    for _ in 0..=REDIRECTS {
        let response = get(&connector, &address).await?;
        let status = response.status();
        if status.is_success() {
            return read(ByteStream::new(response.into_body())).await;
        }
        let location = response.headers().get("location");
        let Some(location) = location.filter(|_| status.as_u16() / 100 == 3) else {
            return Err(format!("the server responded with status {}", status.as_u16()));
        };
        let is_plain = location.starts_with("http://") && address.starts_with("http://");
        if !is_plain && !location.starts_with("https://") {
            return Err(format!(
                "the server redirects to {location}, which is not an https:// address"
            ));
        }
        location.clone_into(&mut address);
    }
    Err(format!("the server redirects more than {REDIRECTS} times"))
}

async fn get(connector: &SharedHttpConnector, address: &str) -> Result<HttpResponse, String> {
    let mut request = HttpRequest::get(address).map_err(|error| error.to_string())?;
    request.headers_mut().insert("user-agent", "zae-limiter");
    let response = connector.call(request).await;
    response.map_err(|error| chain(&error))
}

async fn read(mut body: ByteStream) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(part) = body.next().await {
        bytes.extend(part.map_err(|error| error.to_string())?);
        if bytes.len() > LARGEST {
            return Err(format!("it has more than {LARGEST} bytes"));
        }
    }
    Ok(bytes)
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn invalid(field: &'static str, value: &str, rule: &str) -> CodeError {
    CodeError::ReleaseInvalid {
        field,
        value: value.to_owned(),
        rule: rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const HASH: &str = "8dcc7e601606217f3b754766511182a916b17e9a26a94c9d887104eba92e9bb2";

    #[test]
    fn an_archive_of_a_release_is_named_by_its_checksum_before_it_is_downloaded() {
        let release = Release::new(
            "https://example.com/v0.1.0/",
            [(LambdaFunction::Aggregator, HASH)],
        )
        .unwrap();
        let archive = release
            .archive(LambdaFunction::Aggregator, Architecture::Arm64)
            .unwrap();
        assert_eq!(archive.key(), format!("{HASH}.zip"));
    }

    #[test]
    fn what_cannot_be_a_release_is_refused_with_field_value_and_rule() {
        let refused = |address: &str, hash: &str| {
            let release = Release::new(address, [(LambdaFunction::Aggregator, hash)]);
            release.unwrap_err().to_string()
        };
        assert!(refused("s3://bucket/key", HASH).contains("address \"s3://bucket/key\" must be a URL"));
        let signed = HASH.replacen("8d", "+d", 1);
        for hash in [
            "",
            "8dcc",
            &HASH.replace('8', "ä"),
            &HASH.replace('8', "g"),
            &signed,
        ] {
            assert!(
                refused("https://example.com", hash).contains("64 hexadecimal digits"),
                "{hash}"
            );
        }
        let none = Release::new("https://example.com", []).unwrap();
        let missing = none.archive(LambdaFunction::Archiver, Architecture::X86_64);
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .contains("checksum of the archiver")
        );
    }
}
