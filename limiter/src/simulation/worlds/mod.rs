//! One question a module: the processes and faults that it needs, and the figures that it prints and checks.
//!
//! What they are made of is the machinery in [`simulation`](super).

mod chunks;
mod clock_steps;
mod credentials;
mod cve_2026_27695;
mod fleet;
mod kinds;
mod one_call;
mod outages;
mod share;
mod waiting;
mod wrong_clock;
