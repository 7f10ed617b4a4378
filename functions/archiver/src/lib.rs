//! Audit events on the table's stream become objects in S3, one per event.
//!
//! An object's name and bytes depend on the event alone ([`Object`]), so an event that comes again, in whatever batch,
//! overwrites its object with the same bytes: the archive has every event exactly once.

mod archiver;
mod line;
mod object;
mod settings;
mod store;

pub use archiver::{Archiver, metric};
pub use line::line;
pub use object::{Malformed, Object};
pub use settings::Settings;
pub use store::{S3, Store};

pub use zae_limiter_function::CallFailure;
