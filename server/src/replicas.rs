//! Several servers on one table behind a load balancer: which of them holds a lease or knows an idempotency key, and how the
//! others reach it.
//!
//! The id of a lease names its owner, signed with the secret that all replicas share. A client cannot make a replica send
//! requests to an address of its choice. For a key the client sends the name of the owner, which it has from an earlier response.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use sha2::Sha256;

use zae_limiter::audit::Principal;

use crate::auth::Caller;
use crate::error::Error;
use crate::idempotency::IDEMPOTENCY_KEY;
use crate::leases::LeaseId;
use crate::problem::{Problem, ProblemKind};

/// The replica that processed a request. A client sends it with an idempotency key to reach the same one.
pub(crate) const REPLICA: HeaderName = HeaderName::from_static("zae-limiter-replica");
/// Proves that a request comes from another replica, which has checked the token of its client.
const FORWARDED: HeaderName = HeaderName::from_static("zae-limiter-forwarded");
/// The name of the token that a forwarded request came with.
const CALLER: HeaderName = HeaderName::from_static("zae-limiter-caller");
/// Fields of a response that belong to one connection, or that the server writes itself.
const OF_A_CONNECTION: [HeaderName; 4] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::DATE,
    header::TRANSFER_ENCODING,
];

/// How long to wait for a connection to another replica.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for the response of another replica, beyond the time that the request may wait for tokens.
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
    name: HeaderValue,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// A request that is sent on.
pub(crate) struct Forward<'a> {
    pub(crate) owner: &'a Authority,
    /// Who made it, if its idempotency key is theirs.
    pub(crate) caller: Option<&'a Caller>,
    /// For how long it may wait for tokens.
    pub(crate) wait: Duration,
    /// What to respond if there is no owner any more.
    pub(crate) gone: fn() -> Problem,
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
        let mut replica = Self {
            options,
            instance,
            name: HeaderValue::from_static(""),
            client: Client::builder(TokioExecutor::new()).build(connector),
        };
        let name = replica.signed_name("replica", None);
        replica.name = HeaderValue::try_from(name).map_err(|error| Error::Replica {
            problem: error.to_string(),
        })?;
        Ok(replica)
    }

    /// The name of this server, as clients send it with idempotency keys.
    pub(crate) fn name(&self) -> HeaderValue {
        self.name.clone()
    }

    /// The id of a lease of this server, as its client knows it.
    pub(crate) fn lease_name(&self, id: LeaseId) -> String {
        self.signed_name("lease", Some(id))
    }

    /// The id of a lease, the instance, the address in hexadecimal, and a signature.
    fn signed_name(&self, purpose: &str, id: Option<LeaseId>) -> String {
        let id = id.map(|id| format!("{id}-")).unwrap_or_default();
        let address = hexadecimal(self.options.advertise.as_str().as_bytes());
        let named = format!("{id}{:016x}-{address}", self.instance);
        let signature = self.signature(purpose, named.as_bytes());
        format!("{named}-{signature}")
    }

    /// The parts of a name before the instance, the instance and its address. None if no replica made the name.
    fn parse<'a>(&self, purpose: &str, name: &'a str) -> Option<(Vec<&'a str>, u64, Authority)> {
        let (named, signature) = name.rsplit_once('-')?;
        if !self.is_signature(purpose, named.as_bytes(), signature) {
            return None;
        }
        let mut parts: Vec<_> = named.split('-').collect();
        let address = from_hexadecimal(parts.pop()?).and_then(|bytes| Authority::try_from(bytes).ok())?;
        let instance = u64::from_str_radix(parts.pop()?, 16).ok()?;
        Some((parts, instance, address))
    }

    /// Where the lease with this name is. None if no replica made the name.
    pub(crate) fn locate(&self, name: &str) -> Result<Option<Location>, Problem> {
        let Some((id, instance, address)) = self.parse("lease", name) else {
            return Ok(None);
        };
        let [id] = id[..] else { return Ok(None) };
        let Ok(id) = id.parse::<LeaseId>() else {
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

    /// The other replica that knows the idempotency key of the request: the one that the request names. None if it is this one,
    /// or if the request has no key or names none.
    pub(crate) fn owner_of_key(&self, headers: &HeaderMap) -> Result<Option<Authority>, Problem> {
        let (Some(name), true) = (headers.get(&REPLICA), headers.contains_key(IDEMPOTENCY_KEY)) else {
            return Ok(None);
        };
        let name = name.to_str().unwrap_or_default();
        let (_, instance, address) = self.parse("replica", name).ok_or_else(replica_gone)?;
        if address != self.options.advertise {
            return Ok(Some(address));
        }
        if instance != self.instance {
            return Err(replica_gone());
        }
        Ok(None)
    }

    /// Who made a request that another replica has forwarded. None if no replica has.
    pub(crate) fn forwarded_caller<B>(&self, request: &Request<B>) -> Option<Caller> {
        let signature = request.headers().get(&FORWARDED)?.to_str().ok()?;
        let subject = subject(request.method(), request.uri().path(), request.headers());
        if !self.is_signature("forward", &subject, signature) {
            return None;
        }
        let Some(caller) = request.headers().get(&CALLER) else {
            return Some(Caller(None));
        };
        let name = std::str::from_utf8(caller.as_bytes()).ok()?;
        Some(Caller(Some(Principal::parse(name).ok()?)))
    }

    /// Sends the request to the replica that holds the lease or knows the key, and returns its response.
    pub(crate) async fn forward(
        &self,
        to: Forward<'_>,
        request: Request<Bytes>,
    ) -> Result<Response, Problem> {
        let Forward { owner, gone, .. } = to;
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let mut headers = HeaderMap::new();
        for name in [header::CONTENT_TYPE, IDEMPOTENCY_KEY, REPLICA] {
            if let Some(value) = parts.headers.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        if let Some(Caller(Some(principal))) = to.caller {
            let principal = HeaderValue::try_from(principal.as_str());
            headers.insert(CALLER, principal.map_err(|error| Problem::internal(&error))?);
        }
        let signature = self.signature("forward", &subject(&parts.method, path, &headers));
        let signature = HeaderValue::try_from(signature).map_err(|error| Problem::internal(&error))?;
        headers.insert(FORWARDED, signature);
        let forwarded = Request::builder()
            .method(parts.method)
            .uri(format!("http://{owner}{path}"))
            .body(Full::new(body));
        let mut forwarded = forwarded.map_err(|error| Problem::internal(&error))?;
        *forwarded.headers_mut() = headers;
        let exchange = async {
            let response = self.client.request(forwarded).await;
            let response = response.map_err(|error| {
                tracing::debug!(%owner, %error, "another replica cannot be reached");
                if error.is_connect() {
                    gone()
                } else {
                    owner_silent()
                }
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
            Ok((parts, body.map_err(|_| owner_silent())?.to_bytes()))
        };
        let exchange = tokio::time::timeout(RESPONSE_TIMEOUT + to.wait, exchange);
        let (mut parts, body) = exchange.await.unwrap_or_else(|_| Err(owner_silent()))?;
        for name in OF_A_CONNECTION {
            parts.headers.remove(name);
        }
        let status = StatusCode::from_u16(parts.status.as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = (status, body).into_response();
        *response.headers_mut() = parts.headers;
        Ok(response)
    }

    fn mac(&self, purpose: &str, subject: &[u8]) -> Option<Hmac<Sha256>> {
        // A key of any length can be used.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.options.secret).ok()?;
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac.update(subject);
        Some(mac)
    }

    fn signature(&self, purpose: &str, subject: &[u8]) -> String {
        let mac = self.mac(purpose, subject);
        let bytes = mac.map(|mac| mac.finalize().into_bytes());
        let signature = bytes.as_ref().and_then(|bytes| bytes.get(..SIGNATURE_BYTES));
        hexadecimal(signature.unwrap_or_default())
    }

    fn is_signature(&self, purpose: &str, subject: &[u8], signature: &str) -> bool {
        let presented = from_hexadecimal(signature).filter(|bytes| bytes.len() == SIGNATURE_BYTES);
        let (Some(mac), Some(presented)) = (self.mac(purpose, subject), presented) else {
            return false;
        };
        // In constant time.
        mac.verify_truncated_left(&presented).is_ok()
    }
}

/// What a forwarded request is signed for. No part can contain a zero byte.
fn subject(method: &Method, path: &str, headers: &HeaderMap) -> Vec<u8> {
    let field = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
    let parts = [
        method.as_str().as_bytes(),
        path.as_bytes(),
        field(IDEMPOTENCY_KEY),
        field(CALLER),
    ];
    parts.join(&0)
}

pub(crate) fn replica_gone() -> Problem {
    Problem::new(
        ProblemKind::ReplicaGone,
        "the server that zae-limiter-replica names is gone, and with it what it knew of the idempotency key; send the request \
         without that field",
    )
}

pub(crate) fn owner_gone() -> Problem {
    Problem::new(
        ProblemKind::LeaseOwnerGone,
        "the server that granted the lease is gone; the tokens that it took stay taken; \
         send what the call used more or less to POST /v1/adjust",
    )
}

fn owner_silent() -> Problem {
    Problem::new(
        ProblemKind::Unavailable,
        "the server that has to process the request did not respond; send the request again",
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
    fn a_key_leads_to_the_replica_that_the_request_names() {
        let (one, two) = (replica("10.0.0.1:80", SECRET), replica("[::1]:81", SECRET));
        let request = |key: Option<&'static str>, name: HeaderValue| {
            let mut headers = HeaderMap::from_iter([(REPLICA, name)]);
            headers.extend(key.map(|key| (IDEMPOTENCY_KEY, HeaderValue::from_static(key))));
            headers
        };
        let named = request(Some("key"), one.name());
        assert_eq!(one.owner_of_key(&named).unwrap(), None);
        let address = Some("10.0.0.1:80".parse().unwrap());
        assert_eq!(two.owner_of_key(&named).unwrap(), address);
        assert_eq!(two.owner_of_key(&request(None, one.name())).unwrap(), None);
        assert_eq!(two.owner_of_key(&HeaderMap::new()).unwrap(), None);
        let restarted = replica("10.0.0.1:80", SECRET);
        let lease = HeaderValue::try_from(one.lease_name(LeaseId::from_bits(7))).unwrap();
        for (replica, name) in [
            (&restarted, one.name()),
            (&two, replica("10.0.0.1:80", "another-secret-16").name()),
            (&two, lease),
            (&two, HeaderValue::from_static("")),
        ] {
            let gone = replica.owner_of_key(&request(Some("key"), name)).unwrap_err();
            assert_eq!(gone.kind(), ProblemKind::ReplicaGone);
        }
    }

    #[test]
    fn a_forwarded_request_is_signed_for_its_method_path_key_and_caller() {
        let (one, two) = (replica("10.0.0.1:80", SECRET), replica("10.0.0.2:80", SECRET));
        let path = "/v1/acquire";
        let headers = |key: &'static str, caller: &'static str| {
            HeaderMap::from_iter([
                (IDEMPOTENCY_KEY, HeaderValue::from_static(key)),
                (CALLER, HeaderValue::from_static(caller)),
            ])
        };
        let signature = one.signature("forward", &subject(&Method::POST, path, &headers("a", "ops")));
        let request = |method: Method, path: &str, headers: HeaderMap| {
            let request = Request::builder().method(method).uri(path);
            let mut request = request.header(FORWARDED, &signature).body(()).unwrap();
            request.headers_mut().extend(headers);
            request
        };
        let caller = two.forwarded_caller(&request(Method::POST, path, headers("a", "ops")));
        assert_eq!(caller.unwrap().0.unwrap().as_str(), "ops");
        for request in [
            request(Method::DELETE, path, headers("a", "ops")),
            request(Method::POST, "/v1/adjust", headers("a", "ops")),
            request(Method::POST, path, headers("b", "ops")),
            request(Method::POST, path, headers("a", "other")),
            request(Method::POST, path, HeaderMap::new()),
        ] {
            assert!(two.forwarded_caller(&request).is_none(), "{request:?}");
        }
        let stranger = replica("10.0.0.2:80", "another-secret-16");
        let request = request(Method::POST, path, headers("a", "ops"));
        assert!(stranger.forwarded_caller(&request).is_none());
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
