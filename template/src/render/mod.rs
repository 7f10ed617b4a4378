//! Templates as text.

mod template;
mod yaml;

pub use template::Template;
