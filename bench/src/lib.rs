//! Benchmarks of `acquire` and of the functions, in `benches/`; here is what they share. `make bench` runs them.

mod disturbance;

pub use disturbance::Disturbance;
