//! The native part of the Python package `zae_limiter_rs`.
//!
//! It carries calls and results between Python and the client, and nothing else: models, exceptions and the API that
//! programs see are Python code, in `zae_limiter_rs/`. Records cross as dictionaries, settings as JSON.

mod abandoned;
mod call;
mod error;
mod lease;
mod limiter;
mod money;
mod process;
mod records;
mod repository;
mod settings;
mod stack;

/// The module `zae_limiter_rs._core`.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::call::Call;
    #[pymodule_export]
    use crate::lease::Lease;
    #[pymodule_export]
    use crate::limiter::RateLimiter;
    #[pymodule_export]
    use crate::money::{amounts, check_prices, cost, dollars, expected_output, micro_dollars};
    #[pymodule_export]
    use crate::process::stop_runtime;
    #[pymodule_export]
    use crate::repository::{MemoryStore, Repository, connect};
    #[pymodule_export]
    use crate::stack::{delete_stack, ensure_stack, list_stacks, stack_status};
}
