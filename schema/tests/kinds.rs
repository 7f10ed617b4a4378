//! Quotas and limits on calls in flight on one item, written by several clients whose clocks differ.
//!
//! The clients decide by old images, responses are lost or late, writes are repeated, and the table deletes the item as soon
//! as it has expired. What was admitted is checked against a record that knows the true time. Each rule that is broken on
//! purpose must be noticed.

mod one_write;
mod permits;
mod quota;
mod world;
