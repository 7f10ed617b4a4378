//! The account, region and endpoint that a command works on.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use zae_limiter::stack::Stack;

use super::TableLocation;
use crate::error::Result;

/// How long to wait for STS: the account only makes a message clearer.
const ACCOUNT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a stack is, or where it was looked for. A wrong region is easier to notice than a second stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    /// Unknown if the caller's account could not be read.
    pub(crate) account: Option<String>,
    pub(crate) region: Option<String>,
    /// `None` on AWS.
    pub(crate) endpoint: Option<String>,
}

impl Place {
    /// The place of a stack that exists.
    pub(crate) fn new(account: Option<String>, region: Option<String>, location: &TableLocation) -> Self {
        Self {
            account,
            region,
            endpoint: location.endpoint(),
        }
    }

    /// The place that calls go to, without a call for the account.
    pub(crate) async fn of_calls(location: &TableLocation) -> Result<Self> {
        let config = location.aws().await?;
        let region = config.region().map(ToString::to_string);
        Ok(Self::new(None, region, location))
    }

    /// The place where a stack would be: the caller's account, if STS returns it in time.
    pub(crate) async fn of_caller(stack: &Stack, location: &TableLocation) -> Self {
        match tokio::time::timeout(ACCOUNT_TIMEOUT, stack.place()).await {
            Ok(Ok(place)) => Self::new(Some(place.account), Some(place.region), location),
            _ => Self::new(None, stack.region(), location),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = self.account.as_ref().map(|account| format!("account {account}"));
        let region = self.region.as_ref().map(|region| format!("region {region}"));
        let endpoint = self.endpoint.as_ref().map(|url| format!("endpoint {url}"));
        let parts: Vec<_> = [account, region, endpoint].into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_account_region_and_endpoint() {
        let mut place = Place {
            account: Some("123456789012".to_owned()),
            region: Some("eu-west-1".to_owned()),
            endpoint: None,
        };
        assert_eq!(place.to_string(), "account 123456789012, region eu-west-1");
        place.account = None;
        place.endpoint = Some("http://127.0.0.1:4566".to_owned());
        assert_eq!(
            place.to_string(),
            "region eu-west-1, endpoint http://127.0.0.1:4566"
        );
    }
}
