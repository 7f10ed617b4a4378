//! The desired state of a stack: template, tags, and their fingerprint.

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
pub(crate) struct Customize(pub(crate) Arc<Change>);

impl fmt::Debug for Customize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Customize(..)")
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
    pub(crate) fn new(template: &Template, tags: &BTreeMap<String, String>) -> Result<Self, Error> {
        if !fits_a_request(template) {
            return Err(Error::TemplateTooLong {
                bytes: template.to_json().len(),
                most: Template::LONGEST_BODY,
            });
        }
        Ok(Self::deployed(template, tags))
    }

    /// Renders the options. Functions without an archive keep their deployed code.
    pub(crate) fn render(
        name: &StackName,
        options: &StackOptions,
        customize: Option<&Customize>,
        loaded: &Loaded,
        deployed: Option<&Deployed>,
    ) -> Result<Self, Error> {
        let code = loaded.locations(name.as_str(), options, deployed)?;
        let mut model = Model::of_stack(name, options, &code)?;
        if let Some(Customize(change)) = customize {
            change(&mut model)?;
        }
        let tags = stack_tags(name, options)
            .into_iter()
            .map(|tag| (tag.key, tag.value))
            .collect();
        Self::new(&model.render()?, &tags)
    }

    /// The state that is deployed, for a stack that is left as it is.
    pub(crate) fn deployed(template: &Template, tags: &BTreeMap<String, String>) -> Self {
        Self {
            template: template.clone(),
            tags: tags.clone(),
            fingerprint: Fingerprint::of(&template.what_deploys(), tags),
        }
    }

    /// Whether the stack matches.
    pub(crate) fn matches(&self, deployed: &Deployed) -> bool {
        let same = |template: &Template| template.deploys_the_same_as(&self.template);
        deployed.template.as_ref().is_some_and(same) && deployed.stack.tags == self.tags
    }
}
