//! Looking: two calls, nothing else.

use zae_limiter_template::VERSION;

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
            Situation::Review => Ok(Some(Deployed::new(stack, None))),
            _ => match self.cloud.template_body(&stack.id).await {
                Ok(body) => Ok(Some(Deployed::new(stack, Some(&body)))),
                // Deleted between the two calls.
                Err(failure) if failure.no_such_stack() => Ok(None),
                Err(failure) => Err(failure.into()),
            },
        }
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
