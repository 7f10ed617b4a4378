//! Reading the stack: two calls that change nothing.

use zae_limiter_template::deployer::Place;
use zae_limiter_template::{StackOptions, Template, VERSION, tags_of_user};

use crate::deployed::{Deployed, Described};
use crate::desired::Desired;
use crate::owner::Owner;
use crate::patience::{Deadline, patiently};
use crate::situation::Situation;
use crate::version::is_newer;
use crate::{Error, Stack};

impl Stack {
    /// The stack with its template; `None` if it does not exist.
    pub(crate) async fn observe(&self, deadline: &Deadline) -> Result<Option<Deployed>, Error> {
        let name = self.name.as_str();
        let Some(stack) = patiently(deadline, || self.cloud.describe(name)).await? else {
            return Ok(None);
        };
        match stack.situation() {
            Situation::Gone => Ok(None),
            Situation::Review => {
                let change_sets = if stack.tags.is_empty() {
                    patiently(deadline, || self.cloud.change_set_names(&stack.id)).await?
                } else {
                    vec![]
                };
                Ok(Some(Deployed::in_review(stack, change_sets)))
            }
            _ => match patiently(deadline, || self.cloud.template_body(&stack.id)).await {
                Ok(body) => Ok(Some(Deployed::new(stack, &body))),
                // Deleted between the two calls.
                Err(failure) if failure.no_such_stack() => Ok(None),
                Err(failure) => Err(failure.into()),
            },
        }
    }

    /// The same; an error if it does not exist.
    pub(crate) async fn existing(&self, deadline: &Deadline) -> Result<Deployed, Error> {
        match self.observe(deadline).await? {
            Some(deployed) => Ok(deployed),
            None => Err(self.missing().await),
        }
    }

    /// The account and region of the caller, where a stack would be created.
    pub async fn place(&self) -> Result<Place, Error> {
        self.cloud.caller().await
    }

    /// The region of the stack, if one is configured.
    pub fn region(&self) -> Option<String> {
        self.cloud.region().ok()
    }

    /// The options that the stack was last deployed with, by any tool. An upgrade starts from them. Makes two read-only calls.
    ///
    /// Options that do not affect the stack, such as the memory of a function that it does not have, are those of the last
    /// deployment that changed something. The location of the functions' archives is not stored.
    pub async fn deployed_options(&self) -> Result<StackOptions, Error> {
        let deployed = self.existing(&self.reading()).await?;
        self.check_owner(&deployed)?;
        let unknown = |reason: String| Error::OptionsUnknown {
            stack: self.name.to_string(),
            reason,
        };
        let template = deployed.template.as_ref();
        let stored = template.map_or(Ok(None), Template::options);
        let Some(stored) = stored.map_err(|error| unknown(error.to_string()))? else {
            return Err(unknown("its template does not store them".to_owned()));
        };
        let options = stored.tags(tags_of_user(&deployed.stack.tags)).build();
        options.map_err(|error| unknown(error.to_string()))
    }

    /// Whether another process has changed the stack since it was read.
    pub(super) async fn moved(&self, since: Option<&Deployed>) -> Result<bool, Error> {
        let now = self.cloud.describe(self.name.as_str()).await?;
        let mark = |stack: &Described| {
            (
                stack.id.clone(),
                stack.status.clone(),
                stack.changed_at().to_owned(),
            )
        };
        Ok(now.as_ref().map(mark) != since.map(|since| mark(&since.stack)))
    }

    /// An error unless this project created the stack.
    pub(super) fn check_owner(&self, deployed: &Deployed) -> Result<(), Error> {
        match deployed.owner() {
            Owner::Ours => Ok(()),
            owner => Err(Error::NotOurs {
                stack: self.name.to_string(),
                owner,
            }),
        }
    }

    /// An error if another tool deploys the stack, unless the caller takes it over.
    pub(super) fn check_manager(&self, deployed: &Deployed) -> Result<(), Error> {
        // A stack gets its tags when its first change set is executed.
        let in_review = deployed.stack.situation() == Situation::Review;
        match deployed.managed_elsewhere() {
            Some(reason) if !self.permissions.adopt && !in_review => Err(Error::ManagedElsewhere {
                stack: self.name.to_string(),
                reason,
            }),
            _ => Ok(()),
        }
    }

    /// The state to keep and a warning, for a stack that a later release has deployed.
    pub(super) fn newer(&self, deployed: &Deployed) -> Option<(Desired, String)> {
        let template = deployed.template.as_ref()?;
        let version = template.version()?;
        (is_newer(version, VERSION) && !self.permissions.downgrade).then(|| {
            let warning = format!(
                "the stack was deployed by release {version}, which is later than this release, {VERSION}; it was not changed"
            );
            (Desired::deployed(template, &deployed.stack.tags), warning)
        })
    }
}
