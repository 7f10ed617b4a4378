//! Templates as text.

mod resolved;
mod template;
mod yaml;

pub(crate) use resolved::resolve;
pub use template::Template;
