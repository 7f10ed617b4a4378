//! Templates as text.

mod resolved;
mod template;
mod yaml;

pub use template::Template;
