//! Names, ARNs and formats that options hold.

use std::fmt;
use std::str::FromStr;

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// The value as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text! {
    /// ARN of an IAM role.
    RoleArn
}
text! {
    /// ARN of an SNS topic.
    TopicArn
}
text! {
    /// ARN of a KMS key (not of an alias: log groups accept keys only).
    KeyArn
}
text! {
    /// Name of an S3 bucket.
    BucketName
}
text! {
    /// Name of an event bus.
    EventBusName
}
text! {
    /// Key of an S3 object.
    ObjectKey
}

text! {
    /// Path of roles and policies.
    IamPath
}
text! {
    /// Id of a subnet.
    SubnetId
}
text! {
    /// Id of a security group.
    SecurityGroupId
}
text! {
    /// The twelve digits of an account.
    AccountId
}

/// Text of a fixed form.
pub(super) trait Format: Sized + 'static {
    /// A regular expression that matches the whole text.
    const PATTERN: &'static str;
    /// A regular expression that matches nowhere in the text.
    const NEVER: Option<&'static str> = None;

    /// The value, or the rule that the text breaks.
    fn parse(text: &str, longest: Option<usize>) -> Result<Self, String>;
}

impl Format for RoleArn {
    const PATTERN: &'static str = "^arn:aws(-[a-z-]+)?:iam::[0-9]{12}:role/[!-~]+$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        let fits = arn(text).is_some_and(|arn| {
            arn.service == "iam"
                && arn.region.is_empty()
                && account(arn.account)
                && named(arn.resource, "role/")
        });
        accept(fits, text, "must be arn:PARTITION:iam::ACCOUNT:role/NAME").map(Self)
    }
}

impl FromStr for RoleArn {
    /// The rule that the text breaks.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, None)
    }
}

impl Format for TopicArn {
    const PATTERN: &'static str = "^arn:aws(-[a-z-]+)?:sns:[!-9;-~]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        let fits = arn(text).is_some_and(|arn| {
            arn.service == "sns" && !arn.region.is_empty() && account(arn.account) && topic(arn.resource)
        });
        accept(fits, text, "must be arn:PARTITION:sns:REGION:ACCOUNT:TOPIC").map(Self)
    }
}

impl Format for KeyArn {
    const PATTERN: &'static str = "^arn:aws(-[a-z-]+)?:kms:[!-9;-~]+:[0-9]{12}:key/[!-~]+$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        let fits = arn(text).is_some_and(|arn| {
            arn.service == "kms"
                && !arn.region.is_empty()
                && account(arn.account)
                && named(arn.resource, "key/")
        });
        let rule = "must be arn:PARTITION:kms:REGION:ACCOUNT:key/ID (log groups do not accept an alias)";
        accept(fits, text, rule).map(Self)
    }
}

impl Format for EventBusName {
    const PATTERN: &'static str = "^[A-Za-z0-9._-]{1,256}$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let fits = (1..=256).contains(&text.len()) && text.bytes().all(allowed);
        let rule =
            "must be the name of an event bus: 1 to 256 letters, digits, dots, underscores and hyphens";
        accept(fits, text, rule).map(Self)
    }
}

impl Format for BucketName {
    const PATTERN: &'static str = "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$";
    const NEVER: Option<&'static str> = Some("[.][.]");

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let bytes = text.as_bytes();
        let fits = (3..=63).contains(&bytes.len())
            && bytes.iter().copied().all(inner)
            && edge(bytes.first())
            && edge(bytes.last())
            && !text.contains("..");
        let rule = "must be the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens";
        accept(fits, text, rule).map(Self)
    }
}

impl Format for ObjectKey {
    const PATTERN: &'static str = "^[^[:cntrl:]]{1,1000}[^[:cntrl:]]{0,24}$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        let fits = (1..=1024).contains(&text.len()) && !text.chars().any(char::is_control);
        accept(fits, text, "must be an object key: 1 to 1024 bytes of text").map(Self)
    }
}

impl Format for IamPath {
    const PATTERN: &'static str = "^/([A-Za-z0-9+=,.@_-]+/)+$";

    fn parse(text: &str, longest: Option<usize>) -> Result<Self, String> {
        let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let fits = inner.is_some_and(|inner| inner.split('/').all(iam_name))
            && longest.is_none_or(|longest| text.len() <= longest);
        let rule =
            "must start and end with / and have letters, digits and + = , . @ _ - between, such as /limiter/";
        accept(fits, text, rule).map(Self)
    }
}

impl Format for SubnetId {
    const PATTERN: &'static str = "^subnet-[0-9a-f]{8,17}$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        accept(
            generated(text, "subnet-"),
            text,
            "must be ids of subnets, such as subnet-0a1b2c3d",
        )
        .map(Self)
    }
}

impl Format for SecurityGroupId {
    const PATTERN: &'static str = "^sg-[0-9a-f]{8,17}$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        accept(
            generated(text, "sg-"),
            text,
            "must be ids of security groups, such as sg-0a1b2c3d",
        )
        .map(Self)
    }
}

impl Format for AccountId {
    const PATTERN: &'static str = "^[0-9]{12}$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        accept(account(text), text, "must be accounts of 12 digits").map(Self)
    }
}

/// An id that AWS generates.
fn generated(text: &str, start: &str) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let digits = text.strip_prefix(start).unwrap_or_default();
    (8..=17).contains(&digits.len()) && digits.bytes().all(digit)
}

fn accept(fits: bool, text: &str, rule: &str) -> Result<String, String> {
    if fits {
        Ok(text.to_owned())
    } else {
        Err(rule.to_owned())
    }
}

/// The permissions boundary of roles: a managed policy, by ARN or by its name in the stack's account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PermissionBoundary {
    /// The policy's ARN.
    Arn(String),
    /// The policy's name, with its path if it has one.
    Name(String),
}

impl Format for PermissionBoundary {
    const PATTERN: &'static str = "^(arn:aws(-[a-z-]+)?:iam:[!-9;-~]*:([0-9]{12}|aws):policy/[!-~]+\
                                   |[A-Za-z0-9+=,.@_-]+(/[A-Za-z0-9+=,.@_-]+)*)$";

    fn parse(text: &str, _: Option<usize>) -> Result<Self, String> {
        if let Some(arn) = arn(text) {
            let owner = account(arn.account) || arn.account == "aws";
            if arn.service == "iam" && owner && named(arn.resource, "policy/") {
                return Ok(Self::Arn(text.to_owned()));
            }
        } else if text.split('/').all(iam_name) {
            return Ok(Self::Name(text.to_owned()));
        }
        Err("must be the name of a managed policy or arn:PARTITION:iam::ACCOUNT:policy/NAME".to_owned())
    }
}

/// The format of IAM role or policy names: text with `{}` in place of `{stack}-{component}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NameFormat {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Format for NameFormat {
    const PATTERN: &'static str = "^[A-Za-z0-9+=,.@_-]*[{][}][A-Za-z0-9+=,.@_-]*$";

    fn parse(text: &str, longest: Option<usize>) -> Result<Self, String> {
        let longest = longest.unwrap_or(usize::MAX);
        let rule = || {
            format!(
                "must have {{}} once, at most {longest} characters, and otherwise only letters, digits and + = , . @ _ -"
            )
        };
        let Some((before, after)) = text.split_once("{}") else {
            return Err(rule());
        };
        let plain = |part: &str| part.is_empty() || iam_name(part);
        if text.len() <= longest && plain(before) && plain(after) {
            Ok(Self {
                before: before.to_owned(),
                after: after.to_owned(),
            })
        } else {
            Err(rule())
        }
    }
}

impl NameFormat {
    /// The name for one component.
    pub fn apply(&self, inner: &str) -> String {
        format!("{}{inner}{}", self.before, self.after)
    }
}

struct Arn<'a> {
    service: &'a str,
    region: &'a str,
    account: &'a str,
    resource: &'a str,
}

fn arn(text: &str) -> Option<Arn<'_>> {
    let mut parts = text.splitn(6, ':');
    let (start, partition) = (parts.next()?, parts.next()?);
    let arn = Arn {
        service: parts.next()?,
        region: parts.next()?,
        account: parts.next()?,
        resource: parts.next()?,
    };
    let known = partition == "aws"
        || partition.strip_prefix("aws-").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
        });
    (start == "arn" && known && text.bytes().all(|b| b.is_ascii_graphic())).then_some(arn)
}

fn account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|b| b.is_ascii_digit())
}

fn named(resource: &str, start: &str) -> bool {
    resource.strip_prefix(start).is_some_and(|name| !name.is_empty())
}

fn topic(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !name.is_empty() && name.len() <= 256 && name.bytes().all(letter)
}

fn iam_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+=,.@_-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_arns_of_every_partition_are_accepted() {
        for partition in ["aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b", "aws-eusc"] {
            assert!(
                RoleArn::parse(&format!("arn:{partition}:iam::123456789012:role/path/name"), None).is_ok(),
                "{partition}"
            );
        }
    }

    #[test]
    fn anything_but_a_role_arn_is_refused() {
        for bad in [
            "",
            "name",
            "arn:aws:iam::123456789012:role/",
            "arn:aws:iam::123456789012:user/x",
            "arn:aws:iam::12345678901:role/x",
            "arn:gcp:iam::123456789012:role/x",
            "arn:aws:s3::123456789012:role/x",
            "arn:aws:iam::123456789012:role/x\n",
        ] {
            assert!(RoleArn::parse(bad, None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_key_alias_is_refused() {
        assert!(
            KeyArn::parse(
                "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555",
                None
            )
            .is_ok()
        );
        assert!(KeyArn::parse("arn:aws:kms:eu-west-1:123456789012:alias/mine", None).is_err());
    }

    #[test]
    fn a_topic_that_alarms_cannot_use_is_refused() {
        assert!(TopicArn::parse("arn:aws:sns:eu-west-1:123456789012:ops", None).is_ok());
        assert!(TopicArn::parse("arn:aws:sns:eu-west-1:123456789012:ops.fifo", None).is_err());
    }

    #[test]
    fn a_boundary_is_a_name_or_an_arn() {
        let arn = "arn:aws:iam::aws:policy/PowerUserAccess";
        assert_eq!(
            PermissionBoundary::parse(arn, None),
            Ok(PermissionBoundary::Arn(arn.to_owned()))
        );
        assert_eq!(
            PermissionBoundary::parse("team/limit", None),
            Ok(PermissionBoundary::Name("team/limit".to_owned()))
        );
        for bad in ["", "a b", "arn:aws:iam::123456789012:role/x", "/x"] {
            assert!(PermissionBoundary::parse(bad, None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_format_has_exactly_one_placeholder() {
        assert_eq!(
            NameFormat::parse("pb-{}-PowerUser", Some(55)).map(|f| f.apply("a-app")),
            Ok("pb-a-app-PowerUser".into())
        );
        for bad in ["", "pb", "{}{}", "a b{}", &format!("{}{{}}", "x".repeat(54))] {
            assert!(NameFormat::parse(bad, Some(55)).is_err(), "{bad:?}");
        }
    }
}
