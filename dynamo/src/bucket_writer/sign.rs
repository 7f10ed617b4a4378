//! Signature Version 4 of a bucket write. Pure: no clock, no I/O.
//!
//! All these requests are alike, so the beginning of what is signed is written once, and the key is derived once a day.

use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};

use aws_credential_types::Credentials;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use zae_limiter_schema::Timestamp;

/// The header `content-type` of these requests.
pub(super) const CONTENT_TYPE: &str = "application/x-amz-json-1.0";
/// The header `x-amz-target` of these requests.
pub(super) const TARGET: &str = "DynamoDB_20120810.UpdateItem";

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Signs requests to one endpoint.
pub(super) struct Signer {
    /// The canonical request up to its date.
    head: String,
    region: String,
    service: String,
    key: Mutex<Option<SigningKey>>,
}

/// The headers that a signature consists of, beside the session token.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) date: String,
    pub(super) authorization: String,
}

/// A key, and what it was derived from.
struct SigningKey {
    credentials: Credentials,
    day: String,
    mac: Hmac<Sha256>,
}

impl Signer {
    /// For requests to an endpoint, in the name of a service in a region.
    pub(super) fn new(endpoint: &http::Uri, region: &str, service: &str) -> Self {
        let (path, host) = (canonical_path(endpoint.path()), host(endpoint));
        Self {
            head: format!("POST\n{path}\n\ncontent-type:{CONTENT_TYPE}\nhost:{host}\nx-amz-date:"),
            region: region.to_owned(),
            service: service.to_owned(),
            key: Mutex::default(),
        }
    }

    /// The signature of a request with this body. None if the time has no date.
    pub(super) fn sign(&self, body: &str, credentials: &Credentials, now: Timestamp) -> Option<Signature> {
        let date = basic_date(now)?;
        let day = date.get(..8)?;
        let token = credentials.session_token();
        let names = if token.is_some() {
            "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
        } else {
            "content-type;host;x-amz-date;x-amz-target"
        };

        let room = self.head.len() + token.map_or(0, str::len) + 256;
        let mut text = String::with_capacity(room);
        push_all(&mut text, &[&self.head, &date]);
        if let Some(token) = token {
            push_all(&mut text, &["\nx-amz-security-token:", token]);
        }
        push_all(&mut text, &["\nx-amz-target:", TARGET, "\n\n", names, "\n"]);
        push_hex(&mut text, &Sha256::digest(body));
        let request = Sha256::digest(&text);

        text.clear();
        push_all(&mut text, &[ALGORITHM, "\n", &date, "\n"]);
        self.push_scope(&mut text, day);
        text.push('\n');
        push_hex(&mut text, &request);
        let mut mac = self.key(credentials, day)?;
        mac.update(text.as_bytes());
        let signature = mac.finalize().into_bytes();

        text.clear();
        push_all(
            &mut text,
            &[ALGORITHM, " Credential=", credentials.access_key_id(), "/"],
        );
        self.push_scope(&mut text, day);
        push_all(&mut text, &[", SignedHeaders=", names, ", Signature="]);
        push_hex(&mut text, &signature);
        Some(Signature {
            date,
            authorization: text,
        })
    }

    fn push_scope(&self, text: &mut String, day: &str) {
        push_all(
            text,
            &[day, "/", &self.region, "/", &self.service, "/aws4_request"],
        );
    }

    /// The key of the day, ready for a text.
    fn key(&self, credentials: &Credentials, day: &str) -> Option<Hmac<Sha256>> {
        let mut known = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = known.as_ref().filter(|key| key.is_of(credentials, day)) {
            return Some(key.mac.clone());
        }
        let mut key = mac(format!("AWS4{}", credentials.secret_access_key()).as_bytes())?;
        for part in [day, &self.region, &self.service, "aws4_request"] {
            key.update(part.as_bytes());
            key = mac(&key.finalize().into_bytes())?;
        }
        *known = Some(SigningKey {
            credentials: credentials.clone(),
            day: day.to_owned(),
            mac: key.clone(),
        });
        Some(key)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl SigningKey {
    fn is_of(&self, credentials: &Credentials, day: &str) -> bool {
        self.day == day
            && self.credentials.access_key_id() == credentials.access_key_id()
            && self.credentials.secret_access_key() == credentials.secret_access_key()
    }
}

/// A key of any length will do.
fn mac(key: &[u8]) -> Option<Hmac<Sha256>> {
    Hmac::new_from_slice(key).ok()
}

/// `20150830T123600Z`.
fn basic_date(now: Timestamp) -> Option<String> {
    let now = OffsetDateTime::from_unix_timestamp(now.seconds()).ok()?;
    let (year, month, day) = now.to_calendar_date();
    let (month, (hour, minute, second)) = (u8::from(month), now.to_hms());
    Some(format!(
        "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"
    ))
}

/// The header `host` as HTTP clients send it: without the port that the scheme implies.
fn host(endpoint: &http::Uri) -> &str {
    let implied = match endpoint.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    };
    let authority = endpoint.authority().map_or("", http::uri::Authority::as_str);
    if endpoint.port_u16().is_some() && endpoint.port_u16() == implied {
        endpoint.host().unwrap_or(authority)
    } else {
        authority
    }
}

/// A path without `.`, `..` and empty segments, each octet encoded that is not unreserved, a percent sign included.
fn canonical_path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    let mut canonical = String::from("/");
    for octet in segments.join("/").bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~/".contains(&octet) {
            canonical.push(char::from(octet));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(canonical, "%{octet:02X}");
        }
    }
    let names_a_folder = ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    if names_a_folder && !segments.is_empty() {
        canonical.push('/');
    }
    canonical
}

fn push_all(text: &mut String, parts: &[&str]) {
    for part in parts {
        text.push_str(part);
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

#[cfg(test)]
mod tests;
