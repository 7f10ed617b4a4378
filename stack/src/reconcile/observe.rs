//! Looking: two calls, and nothing that changes anything.

use zae_limiter_template::{StackOptions, Template, VERSION, tags_of_user};

use crate::deployed::{Deployed, Described};
use crate::owner::Owner;
use crate::situation::Situation;
use crate::version::is_newer;
use crate::{Error, Stack};

impl Stack {
    /// The stack with its template, if there is one.
    pub(crate) async fn observe(&self) -> Result<Option<Deployed>, Error> {
        let Some(stack) = self.cloud.describe(self.name.as_str()).await? else {
            return Ok(None);
        };
        match stack.situation() {
            Situation::Gone => Ok(None),
            Situation::Review => {
                let untold = stack.tags.is_empty();
                let change_sets = if untold {
                    self.cloud.change_set_names(&stack.id).await?
                } else {
                    vec![]
                };
                Ok(Some(Deployed::in_review(stack, change_sets)))
            }
            _ => match self.cloud.template_body(&stack.id).await {
                Ok(body) => Ok(Some(Deployed::new(stack, &body))),
                // Deleted between the two calls.
                Err(failure) if failure.no_such_stack() => Ok(None),
                Err(failure) => Err(failure.into()),
            },
        }
    }

    /// The options that the stack was last changed with, whoever did it: where an upgrade starts. Two calls that only read.
    ///
    /// Options that make no difference to the stack, such as the memory of a function that it does not have, are those of the
    /// last deployment that changed something. Where the functions' archives are is never among them.
    pub async fn deployed_options(&self) -> Result<StackOptions, Error> {
        let stack = self.name.to_string();
        let Some(deployed) = self.observe().await? else {
            return Err(Error::NoSuchStack { stack });
        };
        self.own(&deployed)?;
        let unknown = |reason: String| Error::OptionsUnknown {
            stack: self.name.to_string(),
            reason,
        };
        let template = deployed.template.as_ref();
        let stored = template.map_or(Ok(None), Template::options);
        let Some(stored) = stored.map_err(|error| unknown(error.to_string()))? else {
            return Err(unknown("its template does not have them".to_owned()));
        };
        let options = stored.tags(tags_of_user(&deployed.stack.tags)).build();
        options.map_err(|error| unknown(error.to_string()))
    }

    /// Whether somebody has been at work on the stack since it was looked at.
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

    /// An error unless the stack is ours.
    pub(super) fn own(&self, deployed: &Deployed) -> Result<(), Error> {
        match deployed.owner() {
            Owner::Ours => Ok(()),
            owner => Err(Error::NotOurs {
                stack: self.name.to_string(),
                owner,
            }),
        }
    }

    /// What to say instead of changing a stack that a later release has deployed.
    pub(super) fn newer(&self, deployed: &Deployed) -> Option<String> {
        let version = deployed.template.as_ref()?.version()?;
        (is_newer(version, VERSION) && !self.permissions.downgrade).then(|| {
            format!("the stack was deployed by release {version}, which is later than this one, {VERSION}, and is left as it is")
        })
    }
}
