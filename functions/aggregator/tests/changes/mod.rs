//! What stream records mean, and how they come together.

mod support;

mod crossings;
mod groups;
mod progress;
mod reading;
mod refusals;
