//! The server over real sockets, on an embedded store.

mod acquire;
mod admin;
mod attack;
mod auth;
mod budgets;
mod combining;
mod idempotency;
mod input;
mod leases;
mod modes;
mod money;
mod openapi;
mod several;
mod shutdown;
mod unavailable;
