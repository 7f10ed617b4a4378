//! Audit events on the table's stream become objects in S3, or files in a folder, one per event.
//!
//! The name and bytes of an object depend on the event alone ([`Object`]). An event that is delivered again, in whatever
//! batch, overwrites its object with the same bytes: the archive has every event exactly once.
//!
//! | Pure | With I/O |
//! |---|---|
//! | [`Object`], [`line`](line()), [`Settings`] | [`Store`], `S3`, [`Folder`], [`Archiver`] |

mod archiver;
mod folder;
mod line;
mod object;
#[cfg(feature = "lambda")]
mod s3;
mod settings;
mod store;

pub use archiver::{Archiver, metric};
pub use folder::Folder;
pub use line::line;
pub use object::{Malformed, Object};
#[cfg(feature = "lambda")]
pub use s3::S3;
pub use settings::Settings;
pub use store::Store;

pub use zae_limiter_function::{CallError, Remedy};
