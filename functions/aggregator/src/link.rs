//! A digest of a bucket, by which two stream records are known to follow each other.

use serde_dynamo::AttributeValue;

use crate::delta::Attributes;

/// The digests of a bucket before and after a change.
///
/// Two changes follow each other if the bucket before the second is as the first left it. Otherwise there are records in
/// between that have not been seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The bucket before the change.
    pub before: Digest,
    /// The bucket after it.
    pub after: Digest,
}

/// Sixteen hexadecimal digits for the strings, numbers and flags of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest(String);

impl Digest {
    /// True for a bucket that does not exist.
    pub(crate) fn is_of_nothing(&self) -> bool {
        self.0 == format!("{:016x}", Fnv::default().0)
    }

    /// The digest of a bucket's image. A bucket that does not exist has no attributes.
    pub(crate) fn of(image: &Attributes<'_>) -> Self {
        let mut hash = Fnv::default();
        for (name, value) in image {
            hash.write(name);
            hash.write(match value {
                AttributeValue::N(text) | AttributeValue::S(text) => text,
                AttributeValue::Bool(true) => "true",
                _ => "",
            });
        }
        Self(format!("{:016x}", hash.0))
    }

    /// The digest as a snapshot stored it.
    pub(crate) fn stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The digest as a snapshot stores it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// FNV-1a, 64 bits: the digests are stored, so the algorithm must never change.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds a text and a terminator that no text contains.
    fn write(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(attributes: &[(&str, &str)]) -> Digest {
        let values: Vec<_> = attributes
            .iter()
            .map(|(name, digits)| (*name, AttributeValue::N((*digits).to_owned())))
            .collect();
        Digest::of(&values.iter().map(|(name, value)| (*name, value)).collect())
    }

    #[test]
    fn every_attribute_changes_a_digest_and_their_order_does_not() {
        let whole = digest(&[("b_rpm_tc", "1000"), ("ev", "1")]);
        assert_eq!(whole, digest(&[("ev", "1"), ("b_rpm_tc", "1000")]));
        for other in [
            digest(&[]),
            digest(&[("ev", "1")]),
            digest(&[("ev", "1"), ("b_rpm_tc", "2000")]),
            digest(&[("ev", "1"), ("b_tpm_tc", "1000")]),
            digest(&[("ev", "1"), ("b_rpm_tc", "1000"), ("o_ab12", "1")]),
        ] {
            assert_ne!(whole, other);
        }
    }

    #[test]
    fn a_stored_digest_stays_readable_by_later_versions() {
        assert_eq!(digest(&[]).as_str(), "cbf29ce484222325");
        assert_eq!(digest(&[("ev", "1")]).as_str(), "24981b0359b96ec7");
    }
}
