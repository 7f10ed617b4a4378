//! Bearer tokens: who may do what.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zae_limiter::audit::Principal;

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Acquire tokens and end leases.
    Acquire,
    /// Read available tokens and metrics.
    Read,
    /// Manage entities and limits, and read usage and the audit trail.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Acquire, Self::Read, Self::Admin];

    /// `acquire`, `read` or `admin`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A list of tokens that cannot be used. Never shows a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the tokens is invalid: {rule}")]
pub struct InvalidTokens {
    line: usize,
    rule: String,
}

/// The bearer tokens that a server accepts. It keeps only their SHA-256 digests.
///
/// One token per line: a name, its scopes, and the token. The name is the principal of the audit events of what the
/// token changes. Empty lines and lines that begin with `#` are ignored.
///
/// ```
/// use zae_limiter_server::BearerTokens;
///
/// let tokens: BearerTokens = "
///     ## name   scopes        token
///     gateway   acquire,read  6f1e4a1c9d0b4e2fa3b5
///     ops       admin,read    0c7d9be2f84a4d5e9a11
/// ".parse()?;
/// assert_eq!(tokens.len(), 2);
/// # Ok::<(), zae_limiter_server::InvalidTokens>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct BearerTokens {
    tokens: Vec<Token>,
}

#[derive(Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) name: Principal,
    pub(crate) scopes: BTreeSet<Scope>,
    pub(crate) digest: TokenDigest,
}

/// What identifies a token without showing it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenDigest([u8; 32]);

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest")
    }
}

impl BearerTokens {
    /// The shortest token: 16 characters.
    pub const MIN_LENGTH: usize = 16;

    /// Reads the list from a file.
    pub fn read(file: &std::path::Path) -> Result<Self, crate::Error> {
        let invalid = |problem: String| crate::Error::Tokens {
            file: file.to_owned(),
            problem,
        };
        let text = std::fs::read_to_string(file).map_err(|error| invalid(error.to_string()))?;
        text.parse()
            .map_err(|error: InvalidTokens| invalid(error.to_string()))
    }

    /// How many there are. At least one.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The token with this text. Takes the same time whichever it is, or if there is none.
    pub(crate) fn find(&self, presented: &str) -> Option<&Token> {
        let digest = digest(presented);
        let mut found = u64::MAX;
        for (index, token) in (0u64..).zip(&self.tokens) {
            let same: Choice = token.digest.0.ct_eq(&digest.0);
            found.conditional_assign(&index, same);
        }
        usize::try_from(found)
            .ok()
            .and_then(|index| self.tokens.get(index))
    }
}

impl BearerTokens {
    /// Whether the token with this digest is in the list and has the scope.
    pub(crate) fn allows(&self, digest: TokenDigest, scope: Scope) -> bool {
        let mut tokens = self.tokens.iter();
        tokens.any(|token| token.digest == digest && token.scopes.contains(&scope))
    }
}

/// Names and scopes only.
impl fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = self.tokens.iter().map(|token| (&token.name, &token.scopes));
        f.debug_map().entries(tokens).finish()
    }
}

impl FromStr for BearerTokens {
    type Err = InvalidTokens;

    fn from_str(text: &str) -> Result<Self, InvalidTokens> {
        let mut tokens: Vec<Token> = vec![];
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let invalid = |rule: String| InvalidTokens { line, rule };
            let token = parse_line(content).map_err(invalid)?;
            if tokens.iter().any(|other| other.digest == token.digest) {
                return Err(invalid("the same token is on an earlier line".to_owned()));
            }
            tokens.push(token);
        }
        if tokens.is_empty() {
            let rule = "there must be at least one token".to_owned();
            return Err(InvalidTokens { line: 1, rule });
        }
        Ok(Self { tokens })
    }
}

fn parse_line(content: &str) -> Result<Token, String> {
    let fields: Vec<&str> = content.split_whitespace().collect();
    let [name, scopes, token] = fields[..] else {
        return Err("write NAME SCOPES TOKEN, separated by spaces".to_owned());
    };
    if token.len() < BearerTokens::MIN_LENGTH {
        return Err(format!(
            "the token must have at least {} characters",
            BearerTokens::MIN_LENGTH
        ));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the token must have ASCII characters only".to_owned());
    }
    Ok(Token {
        name: Principal::parse(name).map_err(|error| error.to_string())?,
        scopes: scopes.split(',').map(parse_scope).collect::<Result<_, _>>()?,
        digest: digest(token),
    })
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    let known = Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
    known.ok_or_else(|| format!("scope {text:?} must be acquire, read or admin"))
}

fn digest(token: &str) -> TokenDigest {
    TokenDigest(Sha256::digest(token.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const LINES: &str = "# comment\n\ngateway acquire,read 0123456789abcdef\nops admin fedcba9876543210\n";

    #[test]
    fn a_token_is_found_by_its_whole_text() {
        let tokens: BearerTokens = LINES.parse().unwrap();
        let gateway = tokens.find("0123456789abcdef").unwrap();
        assert_eq!(gateway.name.to_string(), "gateway");
        assert_eq!(gateway.scopes, BTreeSet::from([Scope::Acquire, Scope::Read]));
        assert_eq!(tokens.find("fedcba9876543210").unwrap().name.to_string(), "ops");
        for other in ["", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF"] {
            assert!(tokens.find(other).is_none(), "{other}");
        }
    }

    #[test]
    fn errors_name_the_line_and_the_rule_and_never_show_a_token() {
        let secret = "a-secret-that-nobody-may-see";
        for (text, problem) in [
            (String::new(), "at least one token"),
            (
                format!("\nops {secret}"),
                "line 2 of the tokens is invalid: write NAME SCOPES TOKEN",
            ),
            (
                format!("ops root {secret}"),
                "scope \"root\" must be acquire, read or admin",
            ),
            (format!("o#ps admin {secret}"), "principal"),
            ("ops admin short".to_owned(), "at least 16 characters"),
            (format!("a admin {secret}\nb read {secret}"), "line 2"),
        ] {
            let error = text.parse::<BearerTokens>().unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            assert!(!error.contains(secret), "{error}");
        }
    }

    #[test]
    fn debug_output_shows_no_token() {
        let shown = format!("{:?}", LINES.parse::<BearerTokens>().unwrap());
        assert_eq!(
            shown,
            r#"{Principal("gateway"): {Acquire, Read}, Principal("ops"): {Admin}}"#
        );
    }
}
