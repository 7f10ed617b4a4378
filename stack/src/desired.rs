//! What a stack should be: template, tags, and what they are recognised by.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use zae_limiter_template::model::Model;
use zae_limiter_template::{StackName, StackOptions, Template, stack_tags};

use crate::Error;
use crate::cloud::stacks::fits_a_request;
use crate::code::Loaded;
use crate::deployed::Deployed;
use crate::fingerprint::Fingerprint;

type Change = dyn Fn(&mut Model) -> Result<(), zae_limiter_template::Error> + Send + Sync;

/// A change to the model before it is rendered.
#[derive(Clone)]
pub(crate) struct Customise(pub(crate) Arc<Change>);

impl fmt::Debug for Customise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Customise(..)")
    }
}

/// The desired state, rendered.
#[derive(Debug, Clone)]
pub(crate) struct Desired {
    pub(crate) template: Template,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) fingerprint: Fingerprint,
}

impl Desired {
    pub(crate) fn new(template: Template, tags: BTreeMap<String, String>) -> Result<Self, Error> {
        if !fits_a_request(&template) {
            return Err(Error::TemplateTooLong {
                bytes: template.to_json().len(),
                most: Template::LONGEST_BODY,
            });
        }
        let fingerprint = Fingerprint::of(&template.what_deploys(), &tags);
        Ok(Self {
            template,
            tags,
            fingerprint,
        })
    }

    /// Renders the options; functions without an archive keep the code that is deployed.
    pub(crate) fn render(
        name: &StackName,
        options: &StackOptions,
        customise: Option<&Customise>,
        loaded: &Loaded,
        deployed: Option<&Deployed>,
    ) -> Result<Self, Error> {
        let code = loaded.locations(name.as_str(), options, deployed)?;
        let mut model = Model::of_stack(name, options, &code)?;
        if let Some(Customise(change)) = customise {
            change(&mut model)?;
        }
        let tags = stack_tags(name, options)
            .into_iter()
            .map(|tag| (tag.key, tag.value))
            .collect();
        Self::new(model.render()?, tags)
    }

    /// Whether a stack is as it should be.
    pub(crate) fn is(&self, deployed: &Deployed) -> bool {
        let same = |template: &Template| template.deploys_the_same_as(&self.template);
        deployed.template.as_ref().is_some_and(same) && deployed.stack.tags == self.tags
    }
}
