//! The UI over real sockets, on an embedded store.

mod access;
mod bounds;
mod browser;
mod changes;
mod embedded_usage;
mod empty;
mod failures;
mod kinds;
mod live;
mod numbers;
mod stage;
mod views;
