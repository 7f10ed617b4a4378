//! Names, ARNs and formats that options hold.

use std::fmt;

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// As text.
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
    /// Key of an S3 object.
    ObjectKey
}

impl RoleArn {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fits = arn(text).is_some_and(|arn| {
            arn.service == "iam"
                && arn.region.is_empty()
                && account(arn.account)
                && named(arn.resource, "role/")
        });
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err("must be arn:PARTITION:iam::ACCOUNT:role/NAME".to_owned())
        }
    }
}

impl TopicArn {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fits = arn(text).is_some_and(|arn| {
            arn.service == "sns" && !arn.region.is_empty() && account(arn.account) && topic(arn.resource)
        });
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err("must be arn:PARTITION:sns:REGION:ACCOUNT:TOPIC".to_owned())
        }
    }
}

impl KeyArn {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fits = arn(text).is_some_and(|arn| {
            arn.service == "kms"
                && !arn.region.is_empty()
                && account(arn.account)
                && named(arn.resource, "key/")
        });
        let rule = "must be arn:PARTITION:kms:REGION:ACCOUNT:key/ID (log groups take no alias)";
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(rule.to_owned())
        }
    }
}

impl BucketName {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let bytes = text.as_bytes();
        let fits = (3..=63).contains(&bytes.len())
            && bytes.iter().copied().all(inner)
            && edge(bytes.first())
            && edge(bytes.last())
            && !text.contains("..");
        let rule = "must be the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens";
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(rule.to_owned())
        }
    }
}

impl ObjectKey {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fits = (1..=1024).contains(&text.len()) && !text.chars().any(char::is_control);
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err("must be an object's key: 1 to 1024 bytes of text".to_owned())
        }
    }
}

/// The most that roles may be allowed: a managed policy, by ARN or by its name in the stack's account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PermissionBoundary {
    /// The policy's ARN.
    Arn(String),
    /// The policy's name, with its path if it has one.
    Name(String),
}

impl PermissionBoundary {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(arn) = arn(text) {
            let owner = account(arn.account) || arn.account == "aws";
            if arn.service == "iam" && owner && named(arn.resource, "policy/") {
                return Ok(Self::Arn(text.to_owned()));
            }
        } else if !text.is_empty() && text.len() <= 512 && text.split('/').all(iam_name) {
            return Ok(Self::Name(text.to_owned()));
        }
        Err("must be the name of a managed policy or arn:PARTITION:iam::ACCOUNT:policy/NAME".to_owned())
    }
}

/// How names of IAM roles or policies are made: a text with `{}` where `{stack}-{component}` goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NameFormat {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl NameFormat {
    pub(crate) fn parse(text: &str, longest: usize) -> Result<Self, String> {
        let rule = || {
            format!(
                "must have {{}} once, at most {longest} characters, and else only letters, digits and + = , . @ _ -"
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
                RoleArn::parse(&format!("arn:{partition}:iam::123456789012:role/path/name")).is_ok(),
                "{partition}"
            );
        }
    }

    #[test]
    fn what_is_no_role_arn_is_refused() {
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
            assert!(RoleArn::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_key_is_given_by_its_own_arn() {
        assert!(
            KeyArn::parse("arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555")
                .is_ok()
        );
        assert!(KeyArn::parse("arn:aws:kms:eu-west-1:123456789012:alias/mine").is_err());
    }

    #[test]
    fn a_topic_that_alarms_cannot_use_is_refused() {
        assert!(TopicArn::parse("arn:aws:sns:eu-west-1:123456789012:ops").is_ok());
        assert!(TopicArn::parse("arn:aws:sns:eu-west-1:123456789012:ops.fifo").is_err());
    }

    #[test]
    fn a_boundary_is_a_name_or_an_arn() {
        let arn = "arn:aws:iam::aws:policy/PowerUserAccess";
        assert_eq!(
            PermissionBoundary::parse(arn),
            Ok(PermissionBoundary::Arn(arn.to_owned()))
        );
        assert_eq!(
            PermissionBoundary::parse("team/limit"),
            Ok(PermissionBoundary::Name("team/limit".to_owned()))
        );
        for bad in ["", "a b", "arn:aws:iam::123456789012:role/x", "/x"] {
            assert!(PermissionBoundary::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_format_has_exactly_one_place() {
        assert_eq!(
            NameFormat::parse("pb-{}-PowerUser", 55).map(|f| f.apply("a-app")),
            Ok("pb-a-app-PowerUser".into())
        );
        for bad in ["", "pb", "{}{}", "a b{}", &format!("{}{{}}", "x".repeat(54))] {
            assert!(NameFormat::parse(bad, 55).is_err(), "{bad:?}");
        }
    }
}
