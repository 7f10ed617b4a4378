//! Several servers on one table behind a load balancer: which of them holds a lease, and how the others reach it.
//!
//! The id of a lease names its owner, signed with the secret that all replicas share. A client cannot make a replica send
//! requests to an address of its choice.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::uri::Authority;
use axum::http::{HeaderName, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use sha2::Sha256;

use crate::error::Error;
use crate::leases::LeaseId;
use crate::problem::{Problem, ProblemKind};

/// Proves that a request comes from another replica, which has checked the token of its client.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("zae-limiter-forwarded");

/// How long to wait for a connection to another replica.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for the response of another replica.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest response of another replica.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// The bytes of a signature in an id or a request.
const SIGNATURE_BYTES: usize = 16;

/// How replicas of a server find each other.
///
/// ```
/// use zae_limiter_server::ReplicaOptions;
///
/// let options = ReplicaOptions::new("10.0.0.5:8080", "a secret that all replicas share")?;
/// # Ok::<(), zae_limiter_server::Error>(())
/// ```
#[derive(Clone)]
pub struct ReplicaOptions {
    advertise: Authority,
    secret: Vec<u8>,
}

impl ReplicaOptions {
    /// The shortest secret: 16 bytes.
    pub const MIN_SECRET_LENGTH: usize = 16;

    /// `advertise` is the host and port at which the other replicas reach this one over plain HTTP. The secret is the same
    /// on all replicas.
    pub fn new(advertise: &str, secret: &str) -> Result<Self, Error> {
        let invalid = |problem: String| Error::Replica { problem };
        let authority = advertise.strip_prefix("http://").unwrap_or(advertise);
        let advertise: Authority = authority
            .parse()
            .map_err(|error| invalid(format!("cannot advertise {advertise:?}: {error}")))?;
        if advertise.port_u16().is_none_or(|port| port == 0) || authority.contains('@') {
            return Err(invalid(format!(
                "cannot advertise {authority:?}: write HOST:PORT, such as 10.0.0.5:8080"
            )));
        }
        let secret = secret.trim().as_bytes().to_vec();
        if secret.len() < Self::MIN_SECRET_LENGTH {
            return Err(invalid(format!(
                "the replica secret must have at least {} bytes",
                Self::MIN_SECRET_LENGTH
            )));
        }
        Ok(Self { advertise, secret })
    }
}

/// Never shows the secret.
impl fmt::Debug for ReplicaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaOptions")
            .field("advertise", &self.advertise)
            .finish_non_exhaustive()
    }
}

/// This replica.
#[derive(Debug)]
pub(crate) struct Replica {
    options: ReplicaOptions,
    /// Random: a server that has restarted at the same address does not have the leases of the one before.
    instance: u64,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// Where a lease is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Here(LeaseId),
    At(Authority),
}

impl Replica {
    pub(crate) fn new(options: ReplicaOptions) -> Result<Self, Error> {
        let instance = getrandom::u64().map_err(|error| Error::Randomness {
            reason: error.to_string(),
        })?;
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        Ok(Self {
            options,
            instance,
            client: Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    /// The id of a lease of this server, as its client knows it: the random id, the instance, the address in hexadecimal,
    /// and a signature.
    pub(crate) fn lease_name(&self, id: LeaseId) -> String {
        let named = format!(
            "{id}-{:016x}-{}",
            self.instance,
            hexadecimal(self.options.advertise.as_str().as_bytes())
        );
        let signature = self.signature("lease", &named);
        format!("{named}-{signature}")
    }

    /// Where the lease with this name is. None if no replica made the name.
    pub(crate) fn locate(&self, name: &str) -> Result<Option<Location>, Problem> {
        let Some((named, signature)) = name.rsplit_once('-') else {
            return Ok(None);
        };
        let [id, instance, address] = named.split('-').collect::<Vec<_>>()[..] else {
            return Ok(None);
        };
        if !self.is_signature("lease", named, signature) {
            return Ok(None);
        }
        let id = id.parse::<LeaseId>().ok();
        let instance = u64::from_str_radix(instance, 16).ok();
        let address = from_hexadecimal(address).and_then(|bytes| Authority::try_from(bytes).ok());
        let (Some(id), Some(instance), Some(address)) = (id, instance, address) else {
            return Ok(None);
        };
        if address != self.options.advertise {
            return Ok(Some(Location::At(address)));
        }
        if instance != self.instance {
            return Err(owner_gone());
        }
        Ok(Some(Location::Here(id)))
    }

    /// Whether the request was forwarded by another replica.
    pub(crate) fn is_forwarded<B>(&self, request: &Request<B>) -> bool {
        let signature = request.headers().get(&FORWARDED);
        let signature = signature.and_then(|value| value.to_str().ok());
        let subject = subject(request.method(), request.uri().path());
        signature.is_some_and(|signature| self.is_signature("forward", &subject, signature))
    }

    /// Sends the request to the replica that holds the lease, and returns its response.
    pub(crate) async fn forward(
        &self,
        owner: &Authority,
        request: Request<Bytes>,
    ) -> Result<Response, Problem> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let signature = self.signature("forward", &subject(&parts.method, path));
        let mut forwarded = Request::builder()
            .method(parts.method.clone())
            .uri(format!("http://{owner}{path}"))
            .header(FORWARDED, signature);
        if let Some(content_type) = parts.headers.get(header::CONTENT_TYPE) {
            forwarded = forwarded.header(header::CONTENT_TYPE, content_type);
        }
        let forwarded = forwarded.body(Full::new(body));
        let forwarded = forwarded.map_err(|error| Problem::internal(&error))?;
        let exchange = async {
            let response = self.client.request(forwarded).await;
            let response = response.map_err(|error| {
                tracing::debug!(%owner, %error, "another replica cannot be reached");
                if error.is_connect() {
                    owner_gone()
                } else {
                    owner_silent()
                }
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
            Ok((parts, body.map_err(|_| owner_silent())?.to_bytes()))
        };
        let exchange = tokio::time::timeout(RESPONSE_TIMEOUT, exchange);
        let (parts, body) = exchange.await.unwrap_or_else(|_| Err(owner_silent()))?;
        let status = StatusCode::from_u16(parts.status.as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = (status, body).into_response();
        for name in [header::CONTENT_TYPE, header::RETRY_AFTER] {
            if let Some(value) = parts.headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        Ok(response)
    }

    fn mac(&self, purpose: &str, subject: &str) -> Option<Hmac<Sha256>> {
        // A key of any length can be used.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.options.secret).ok()?;
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac.update(subject.as_bytes());
        Some(mac)
    }

    fn signature(&self, purpose: &str, subject: &str) -> String {
        let mac = self.mac(purpose, subject);
        let bytes = mac.map(|mac| mac.finalize().into_bytes());
        let signature = bytes.as_ref().and_then(|bytes| bytes.get(..SIGNATURE_BYTES));
        hexadecimal(signature.unwrap_or_default())
    }

    fn is_signature(&self, purpose: &str, subject: &str, signature: &str) -> bool {
        let presented = from_hexadecimal(signature).filter(|bytes| bytes.len() == SIGNATURE_BYTES);
        let (Some(mac), Some(presented)) = (self.mac(purpose, subject), presented) else {
            return false;
        };
        // In constant time.
        mac.verify_truncated_left(&presented).is_ok()
    }
}

fn subject(method: &Method, path: &str) -> String {
    format!("{method} {path}")
}

fn owner_gone() -> Problem {
    Problem::new(
        ProblemKind::LeaseOwnerGone,
        "the server that granted the lease is gone; the tokens that it took stay taken; \
         send what the call used more or less to POST /v1/adjust",
    )
}

fn owner_silent() -> Problem {
    Problem::new(
        ProblemKind::Unavailable,
        "the server that granted the lease did not respond; send the request again",
    )
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn replica(address: &str, secret: &str) -> Replica {
        Replica::new(ReplicaOptions::new(address, secret).unwrap()).unwrap()
    }

    #[test]
    fn a_name_leads_to_the_replica_that_made_it() {
        let (one, two) = (replica("10.0.0.1:80", SECRET), replica("[::1]:81", SECRET));
        let id = LeaseId::from_bits(7);
        let (first, second) = (one.lease_name(id), two.lease_name(id));
        assert_eq!(one.locate(&first).unwrap(), Some(Location::Here(id)));
        assert_eq!(
            two.locate(&first).unwrap(),
            Some(Location::At("10.0.0.1:80".parse().unwrap()))
        );
        assert_eq!(
            one.locate(&second).unwrap(),
            Some(Location::At("[::1]:81".parse().unwrap()))
        );
    }

    #[test]
    fn a_replica_that_restarted_says_that_the_owner_is_gone() {
        let (before, after) = (replica("10.0.0.1:80", SECRET), replica("10.0.0.1:80", SECRET));
        let gone = after.locate(&before.lease_name(LeaseId::from_bits(7)));
        assert_eq!(gone.unwrap_err().kind(), ProblemKind::LeaseOwnerGone);
    }

    #[test]
    fn a_client_cannot_make_a_name() {
        let (ours, theirs) = (
            replica("10.0.0.1:80", SECRET),
            replica("evil.example:80", "another-secret-16"),
        );
        let name = theirs.lease_name(LeaseId::from_bits(7));
        assert_eq!(ours.locate(&name).unwrap(), None);
        let real = ours.lease_name(LeaseId::from_bits(7));
        let changed = real.replacen("31302e", "32302e", 1);
        assert_ne!(changed, real);
        for name in [
            &changed[..],
            "",
            "a",
            "a-b-c-d",
            &real[1..],
            &real[..real.len() - 1],
        ] {
            assert_eq!(ours.locate(name).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn a_forwarded_request_is_signed_for_its_method_and_path() {
        let (one, two) = (replica("10.0.0.1:80", SECRET), replica("10.0.0.2:80", SECRET));
        let path = "/v1/leases/7/commit";
        let signature = one.signature("forward", &subject(&Method::POST, path));
        let request = |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path);
            request.header(FORWARDED, &signature).body(()).unwrap()
        };
        assert!(two.is_forwarded(&request(Method::POST, path)));
        assert!(!two.is_forwarded(&request(Method::DELETE, path)));
        assert!(!two.is_forwarded(&request(Method::POST, "/v1/leases/8/commit")));
        assert!(!replica("10.0.0.2:80", "another-secret-16").is_forwarded(&request(Method::POST, path)));
    }

    #[test]
    fn options_name_what_is_wrong_and_never_show_the_secret() {
        for (address, secret, problem) in [
            ("10.0.0.1", SECRET, "write HOST:PORT"),
            ("10.0.0.1:0", SECRET, "write HOST:PORT"),
            ("user@host:80", SECRET, "write HOST:PORT"),
            ("https://host:80", SECRET, "cannot advertise"),
            ("host:80", "short", "at least 16 bytes"),
        ] {
            let error = ReplicaOptions::new(address, secret).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        let shown = format!("{:?}", ReplicaOptions::new("host:80", SECRET).unwrap());
        assert!(!shown.contains(SECRET) && shown.contains("host:80"), "{shown}");
    }
}
