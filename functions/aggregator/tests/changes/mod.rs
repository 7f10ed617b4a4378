//! What stream records mean, and how they come together.

mod support;

mod groups;
mod progress;
mod reading;
mod refusals;
