//! The owner of limits as the principal of audit events.

use sha2::{Digest, Sha256};
use zae_limiter::audit::Principal;

/// The longest start of an owner that is kept. A hyphen and 16 digits follow, and a principal has at most 256 characters.
const LONGEST_START: usize = 200;

/// The principal of an owner: the owner itself if it is a valid name, otherwise the valid characters of its start and a hash.
///
/// The names of a stack and of a resource may have 384 characters together. No request fails because of that.
pub(crate) fn principal(owner: &str) -> String {
    if Principal::parse(owner).is_ok() {
        return owner.to_owned();
    }
    let allowed = |c: &char| c.is_ascii_alphanumeric() || "_.-:@".contains(*c);
    let start: String = owner.chars().filter(allowed).take(LONGEST_START).collect();
    let start = start.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let digest = Sha256::digest(owner.as_bytes());
    let hash = digest
        .iter()
        .take(8)
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    if start.is_empty() {
        hash
    } else {
        format!("{start}-{hash}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_owner_is_its_own_principal() {
        let longest = "a".repeat(256);
        for owner in ["app:Limits", "terraform", longest.as_str()] {
            assert_eq!(principal(owner), owner);
        }
    }

    #[test]
    fn every_owner_has_a_principal_of_its_own() {
        let long = format!("{}:{}", "s".repeat(128), "L".repeat(255));
        let other = format!("{long}2");
        let arn = format!("arn:{}", "é".repeat(3_000));
        let owners = [
            &long, &other, &arn, "", ":", "-x", "ops team", "ops/team", "été", "日本",
        ];
        let principals: std::collections::BTreeSet<_> = owners.iter().map(|owner| principal(owner)).collect();
        assert_eq!(principals.len(), owners.len());
        for principal in &principals {
            assert!(Principal::parse(principal).is_ok(), "{principal}");
        }
        assert!(principal(&long).starts_with(&format!("{}:LLL", "s".repeat(128))));
    }
}
