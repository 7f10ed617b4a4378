//! Names of this machine.
//!
//! A server without tokens trusts everyone who can connect. A browser can be made to connect: a site whose name resolves
//! to this machine (DNS rebinding) has the same origin as this server, so that its scripts could read and write. Their
//! requests have the name of the site in the field `Host`.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, header};

use crate::problem::{Problem, ProblemKind};

/// Paths that reveal nothing to a site. Orchestrators request them by other names.
const EXEMPT: [&str; 2] = ["/healthz", "/readyz"];

/// An error if the request does not name this machine.
pub(crate) fn check_local_host(request: &Request) -> Result<(), Problem> {
    if !EXEMPT.contains(&request.uri().path()) && !is_local_host(request.headers()) {
        let detail = "a server without tokens is reachable at localhost and at loopback addresses only; \
                      check the field Host";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    Ok(())
}

fn is_local_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address: Result<IpAddr, _> = address.unwrap_or(name).parse();
    address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn host(name: &str) -> HeaderMap {
        [(header::HOST, name.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        for name in [
            "localhost",
            "localhost:80",
            "LocalHost:80",
            "127.0.0.1:8080",
            "127.0.0.2:8080",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(is_local_host(&host(name)), "{name}");
        }
        for name in [
            "",
            "x",
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "10.0.0.5:8080",
            "localhost:evil",
        ] {
            assert!(!is_local_host(&host(name)), "{name}");
        }
        assert!(!is_local_host(&HeaderMap::new()));
    }

    #[test]
    fn a_second_host_is_not_overlooked() {
        let mut both = host("localhost");
        both.append(header::HOST, "evil.example".parse().unwrap());
        assert!(!is_local_host(&both));
    }
}
