//! The desired state of a stack: template, tags, and their fingerprint.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use zae_limiter_template::model::Model;
use zae_limiter_template::{StackName, StackOptions, Template, stack_tags};

use crate::Error;
use crate::code::Loaded;
use crate::deployed::Deployed;
use crate::fingerprint::Fingerprint;
use crate::kept;

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
    /// Options without effect on the deployed stack.
    pub(crate) notes: Vec<String>,
}

/// The largest template that CloudFormation reads from S3.
pub(crate) const LONGEST_STORED: usize = 1024 * 1024;

/// How a template reaches CloudFormation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateSource {
    /// In the request.
    Body(String),
    /// In S3, by its URL: for a template that is too long for a request.
    Url(String),
}

impl TemplateSource {
    pub(crate) fn body(&self) -> Option<String> {
        match self {
            Self::Body(body) => Some(body.clone()),
            Self::Url(_) => None,
        }
    }

    pub(crate) fn url(&self) -> Option<String> {
        match self {
            Self::Url(url) => Some(url.clone()),
            Self::Body(_) => None,
        }
    }
}

const PROTECTION: &str = "/Resources/RateLimitsTable/Properties/DeletionProtectionEnabled";

impl Desired {
    pub(crate) fn new(template: &Template, tags: &BTreeMap<String, String>) -> Result<Self, Error> {
        let bytes = template.to_json().len();
        if bytes > LONGEST_STORED {
            return Err(Error::TemplateTooLong {
                bytes,
                most: LONGEST_STORED,
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
        let template = model.render()?;
        let Some(deployed) = deployed else {
            return Self::new(&template, &tags);
        };
        let same_code = loaded.without_archive(options);
        let (template, notes) = kept::template(&template, deployed, &same_code);
        let tags = kept::tags(tags, deployed, &same_code);
        Ok(Self {
            notes,
            ..Self::new(&template, &tags)?
        })
    }

    /// Whether the table has deletion protection.
    pub(crate) fn protects_table(&self) -> bool {
        self.template.to_value().pointer(PROTECTION) == Some(&true.into())
    }

    /// The same without deletion protection of the table, which would keep a failed creation from rolling back; `None` if it
    /// has none.
    pub(crate) fn unprotected(&self) -> Option<Self> {
        let mut value = self.template.to_value().clone();
        *value
            .pointer_mut(PROTECTION)
            .filter(|protection| **protection == true)? = false.into();
        let unprotected = Self::deployed(&Template::from_value(value), &self.tags);
        // The token of the creation is that of the whole deployment.
        Some(Self {
            fingerprint: self.fingerprint.clone(),
            ..unprotected
        })
    }

    /// The state that is deployed, for a stack that is left as it is.
    pub(crate) fn deployed(template: &Template, tags: &BTreeMap<String, String>) -> Self {
        Self {
            template: template.clone(),
            tags: tags.clone(),
            fingerprint: Fingerprint::of(&template.what_deploys(), tags),
            notes: vec![],
        }
    }

    /// Whether the stack matches.
    pub(crate) fn matches(&self, deployed: &Deployed) -> bool {
        let same = |template: &Template| template.deploys_the_same_as(&self.template);
        deployed.template.as_ref().is_some_and(same) && kept::settable(&deployed.stack.tags) == self.tags
    }
}
