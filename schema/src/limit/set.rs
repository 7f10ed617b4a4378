//! The limits of one level or bucket: each name once, in order of name.

use crate::{Limit, LimitName};

/// Limits with distinct names, sorted by name. There are few, so that looking through them is faster than any index.
///
/// ```
/// use zae_limiter_schema::{Limit, LimitSet};
///
/// let limits = LimitSet::new([Limit::per_minute("tpm", 10_000)?, Limit::per_minute("rpm", 100)?]).unwrap();
/// let names: Vec<_> = limits.iter().map(|limit| limit.name().as_str()).collect();
/// assert_eq!(names, ["rpm", "tpm"]);
/// assert!(LimitSet::new([Limit::per_day("rpm", 1)?, Limit::per_minute("rpm", 100)?]).is_err());
/// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LimitSet(Vec<Limit>);

/// Two limits of the same name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("duplicate limit name {0}")]
pub struct DuplicateLimit(pub LimitName);

impl LimitSet {
    /// Collects limits. Duplicate names are an error.
    pub fn new(limits: impl IntoIterator<Item = Limit>) -> Result<Self, DuplicateLimit> {
        let mut set: Vec<Limit> = limits.into_iter().collect();
        set.sort_by(|one, other| one.name().cmp(other.name()));
        let twice = set.windows(2).find(|pair| pair[0].name() == pair[1].name());
        if let Some(twice) = twice {
            return Err(DuplicateLimit(twice[0].name().clone()));
        }
        set.shrink_to_fit();
        Ok(Self(set))
    }

    /// The limit of that name.
    pub fn get(&self, name: &LimitName) -> Option<&Limit> {
        self.0.iter().find(|limit| limit.name() == name)
    }

    /// The limit whose name is this text.
    pub fn named(&self, name: &str) -> Option<&Limit> {
        self.0.iter().find(|limit| limit.name().as_str() == name)
    }

    /// All limits in order of name.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> + Clone {
        self.0.iter()
    }

    /// All names in order.
    pub fn names(&self) -> impl Iterator<Item = &LimitName> + Clone {
        self.0.iter().map(Limit::name)
    }

    /// How many limits there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a LimitSet {
    type Item = &'a Limit;
    type IntoIter = std::slice::Iter<'a, Limit>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl serde::Serialize for LimitSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> serde::Deserialize<'de> for LimitSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limits = <Vec<Limit> as serde::Deserialize>::deserialize(deserializer)?;
        Self::new(limits).map_err(serde::de::Error::custom)
    }
}
