//! A table behind a connection that tests can disturb.

use aws_credential_types::Credentials;
use zae_limiter::{RateLimiter, RateLimiterBuilder};
use zae_limiter_testing::connection::Connection;

/// A limiter on the connection.
pub(crate) fn on_connection(connection: &Connection) -> RateLimiterBuilder {
    RateLimiter::builder("limiter")
        .endpoint_url("http://connection.invalid")
        .region("us-east-1")
        .credentials(Credentials::from_keys("test", "test", None))
        .http_client(connection.clone())
        .principal("tester")
        .create_table(true)
}
