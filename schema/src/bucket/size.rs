//! How large a bucket's item gets.

use crate::{EntityId, LimitName, Resource};

/// A write costs one unit for each started kilobyte of the item.
pub const WRITE_UNIT_BYTES: usize = 1024;

/// About how many bytes a bucket's item has, with large numbers and the given number of client slots.
///
/// ```
/// use zae_limiter_schema::bucket::{WRITE_UNIT_BYTES, estimated_bytes};
/// use zae_limiter_schema::{EntityId, LimitName, Resource};
///
/// let names = ["rpm", "tpm", "rpd", "tpd"].map(|name| LimitName::parse(name).unwrap());
/// let bytes = estimated_bytes(&EntityId::parse("user-1")?, &Resource::parse("gpt-4")?, None, names.iter(), 8);
/// assert!(bytes < WRITE_UNIT_BYTES);
/// # Ok::<(), zae_limiter_schema::InvalidName>(())
/// ```
pub fn estimated_bytes<'a>(
    entity: &EntityId,
    resource: &Resource,
    parent: Option<&EntityId>,
    limits: impl Iterator<Item = &'a LimitName>,
    slots: usize,
) -> usize {
    119 + 3 * entity.as_str().len()
        + 3 * resource.as_str().len()
        + parent.map_or(0, |parent| 9 + parent.as_str().len())
        + limits.map(|name| 78 + 7 * name.as_str().len()).sum::<usize>()
        + 18 * slots
}
