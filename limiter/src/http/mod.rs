//! Refusals and header fields as types of the crate [`http`](https://docs.rs/http), for any HTTP library that uses it
//! (feature `http`). The layer in `zae_limiter::tower` sends the same, and so does the server.
//!
//! ```
//! use zae_limiter::http::{insert_fields, mark_admission, problem_response};
//! use zae_limiter::{Limit, RateLimitHeaders, RateLimiter};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> zae_limiter::Result<()> {
//! async fn handle(limiter: &RateLimiter) -> http::Response<String> {
//!     match limiter.acquire("user-1", "api").consume("rpm", 1).await {
//!         Ok(lease) => {
//!             let mut response = http::Response::new("hello".to_owned());
//!             insert_fields(response.headers_mut(), RateLimitHeaders::admitted(&lease.statuses()));
//!             mark_admission(response.headers_mut(), lease.admission());
//!             lease.commit_in_background();
//!             response
//!         }
//!         Err(error) => problem_response(&error),
//!     }
//! }
//!
//! let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 1)?]).await?;
//! let response = handle(&limiter).await;
//! assert_eq!(response.headers()["ratelimit"], r#""rpm";r=0;t=60"#);
//! let response = handle(&limiter).await;
//! assert_eq!(response.status(), 429);
//! assert_eq!(response.headers()["retry-after"], "60");
//! # Ok(()) }
//! ```

mod fields;
mod problem;

pub use fields::{ADMISSION, insert_fields, mark_admission};
#[cfg(feature = "tower")]
pub(crate) use problem::Kind;
pub use problem::problem_response;
