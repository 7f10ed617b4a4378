//! Money: what a call costs by the prices of its resource. Exact, in whole micro-dollars.
//!
//! ```
//! use zae_limiter_schema::money::{Estimate, Prices, Usage};
//!
//! // Per million tokens.
//! let prices = Prices::new("$2.50".parse()?, "$10".parse()?);
//! assert_eq!(prices.cost(&Usage::new(1_000, 300))?.to_string(), "$0.0055");
//!
//! let prices = Prices { max_output: Some(4_096), ..prices };
//! assert_eq!(prices.estimate(&Estimate::new(1_000).max_output(10_000)), Usage::new(1_000, 4_096));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decimal;
mod micro_dollars;
mod prices;
mod usage;

pub use micro_dollars::{InvalidMoney, MicroDollars, dollars};
pub use prices::{InvalidPrices, Prices, TooExpensive};
pub use usage::{Estimate, Usage};
