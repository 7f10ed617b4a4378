//! Limits files: the limits of all levels in one file, compared with a table and applied to it.
//!
//! The command `zae-limiter limits` and the provisioner function share this code, so that a file means the same to both.
//!
//! A file manages the levels that it contains, and those that it contained when it was last applied. All other levels are
//! left unchanged.
//!
//! ```
//! use zae_limiter::{RateLimiter, Timestamp};
//! use zae_limiter_limits::{Action, Comparison};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let repository = RateLimiter::embedded().build_repository().await?;
//!
//! let comparison = Comparison::of(&repository, "system: {limits: {rpm: 100}}").await?;
//! assert_eq!(comparison.changes().count(Action::Create), 1);
//! comparison.apply(Timestamp::from_seconds(1_790_000_000)).await?;
//!
//! let again = Comparison::of(&repository, "system: {limits: {rpm: 100}}").await?;
//! assert!(again.changes().is_empty());
//! # Ok(()) }
//! ```
//!
//! | Task | See |
//! |---|---|
//! | parse a file, with the path of everything that is invalid | [`Manifest`], [`InvalidFields`] |
//! | compare and apply | [`Comparison`], [`LevelChanges`] |
//! | read every level of a table | [`every_level`] |
//! | read the prices of models that LiteLLM publishes | [`LiteLlmPrices`] |

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod applied_state;
mod apply;
mod changes;
mod comparison;
mod error;
mod limit_syntax;
mod litellm;
mod manifest;
mod price_syntax;
mod stored;

pub use changes::{Action, LevelChange, LevelChanges};
pub use comparison::Comparison;
pub use error::{Error, Result};
pub use limit_syntax::{InvalidField, InvalidFields, limits_from_json};
pub use litellm::{ImportedPrices, LiteLlmPrices};
pub use manifest::{LevelSettings, Manifest};
pub use stored::every_level;
