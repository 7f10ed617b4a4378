//! Which limits apply: [`resolution`] picks the level that decides, [`cache`] remembers levels and results.

pub(crate) mod bucket_configs;
pub(crate) mod cache;
pub(crate) mod resolution;

/// The most levels of parents that an entity can have.
pub const MAX_PARENTS: usize = 4;
