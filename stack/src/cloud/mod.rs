//! Calls to AWS. No decisions are made here.

pub(crate) mod artifacts;
pub(crate) mod change_set;
pub(crate) mod drift;
pub(crate) mod failure;
pub(crate) mod functions;
mod iam;
pub(crate) mod mappings;
pub(crate) mod purge;
mod stack_events;
pub(crate) mod stacks;
pub(crate) mod table;

use zae_limiter_template::deployer::Place;

use crate::{Clients, Error};
use failure::Failure;

/// The AWS services.
#[derive(Debug, Clone)]
pub(crate) struct Cloud {
    pub(crate) clients: Clients,
    /// The role that CloudFormation assumes for operations on stacks.
    pub(crate) service_role: Option<String>,
}

impl Cloud {
    /// The region of the stacks.
    pub(crate) fn region(&self) -> Result<String, Error> {
        let region = self.clients.cloudformation.config().region();
        region
            .map(|region| region.as_ref().to_owned())
            .ok_or(Error::NoRegion)
    }

    /// Partition, region and account of the caller. Once a stack exists, its ARN has them.
    pub(crate) async fn caller(&self) -> Result<Place, Error> {
        let caller = self.clients.sts.get_caller_identity().send().await;
        let caller = caller.map_err(|error| Failure::of("sts:GetCallerIdentity", "*", &error))?;
        let partition = caller
            .arn()
            .and_then(|arn| arn.split(':').nth(1))
            .unwrap_or("aws")
            .to_owned();
        Ok(Place {
            partition,
            region: self.region()?,
            account: caller.account.unwrap_or_default(),
        })
    }
}
