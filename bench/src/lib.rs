//! Benchmarks of `acquire`, in `benches/`; this crate has nothing else. `make bench` runs them.
