//! The parts of a call: one for each resource that it charges.

use smallvec::SmallVec;
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::money::Estimate;
use zae_limiter_schema::{EntityId, Limit, LimitName, LimitSet, Resource, Tokens, TooManyTokens};

use crate::admin::limit_set;
use crate::bucket::{Amounts, add};
use crate::{Error, Result};

/// The most resources that one call charges.
pub const MAX_RESOURCES: usize = 8;

/// The parts of a call, in the order in which its caller named the resources. Never empty.
pub(super) type Parts = SmallVec<[Part; 1]>;

/// What a call takes of one resource.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its place in the call.
    pub(super) index: usize,
    pub(super) key: BucketKey,
    /// By limit. An acquire has amounts above zero.
    pub(super) amounts: Amounts,
    /// What the call will use, which prices turn into amounts.
    pub(super) estimate: Option<Estimate>,
    /// Limits that it came with, instead of the stored ones.
    pub(super) limits: Option<LimitSet>,
    /// Whether the entity's parent is charged too; the entity's record decides unless set.
    pub(super) cascade: Option<bool>,
}

/// A part that is not checked yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    resource: String,
    pub(super) amounts: Amounts,
    pub(super) estimate: Option<Estimate>,
    pub(crate) limits: Option<Vec<Limit>>,
    pub(crate) cascade: Option<bool>,
}

/// A call of an entity that is being put together, resource by resource.
#[derive(Debug, Clone)]
pub(crate) struct Drafts {
    entity: String,
    first: Draft,
    /// The last of them is the current part.
    others: Vec<Draft>,
    /// The first mistake.
    mistake: Option<Error>,
}

impl Draft {
    fn new(resource: &str) -> Self {
        Self {
            resource: resource.to_owned(),
            amounts: Amounts::new(),
            estimate: None,
            limits: None,
            cascade: None,
        }
    }

    fn consume(&mut self, limit: &str, tokens: u64) -> Result<()> {
        let invalid = |error: TooManyTokens| Error::invalid("amount", tokens.to_string(), error.to_string());
        let amount = Tokens::new(tokens).map_err(invalid)?.millis();
        let limit = LimitName::from_stored(limit)?;
        if amount > 0 {
            add(&mut self.amounts, &limit, amount);
        }
        Ok(())
    }

    fn takes_nothing(&self) -> bool {
        self.amounts.is_empty() && self.estimate.is_none()
    }

    fn check(self, entity: &EntityId, index: usize) -> Result<Part> {
        let limits = self
            .limits
            .map(|limits| limit_set("limits", limits))
            .transpose()?;
        if limits.as_ref().is_some_and(LimitSet::is_empty) {
            return Err(Error::invalid("limits", "", "at least one is needed"));
        }
        Ok(Part {
            index,
            key: BucketKey {
                entity: entity.clone(),
                resource: Resource::parse(&self.resource)?,
            },
            amounts: self.amounts,
            estimate: self.estimate,
            limits,
            cascade: self.cascade,
        })
    }
}

impl Drafts {
    pub(crate) fn new(entity: &str, resource: &str) -> Self {
        Self {
            entity: entity.to_owned(),
            first: Draft::new(resource),
            others: Vec::new(),
            mistake: None,
        }
    }

    /// Entity and first resource, as they were named.
    pub(super) fn names(&self) -> (&str, &str) {
        (&self.entity, &self.first.resource)
    }

    /// The part of the resource that was named last.
    pub(crate) fn current(&mut self) -> &mut Draft {
        self.others.last_mut().unwrap_or(&mut self.first)
    }

    /// Begins the part of another resource.
    pub(crate) fn begin(&mut self, resource: &str) {
        if self.others.len() + 1 < MAX_RESOURCES {
            return self.others.push(Draft::new(resource));
        }
        let rule = format!("a call charges at most {MAX_RESOURCES} resources");
        self.note(Err(Error::invalid("resource", resource, rule)));
    }

    /// Requests tokens of a limit of the current part.
    pub(crate) fn consume(&mut self, limit: &str, tokens: u64) {
        let consumed = self.current().consume(limit, tokens);
        self.note(consumed);
    }

    /// Remembers the first mistake, which the check returns.
    pub(super) fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.mistake.get_or_insert(error);
        }
    }

    /// Every mistake that can be seen without the table.
    pub(super) fn check(self, may_take_nothing: bool) -> Result<Parts> {
        let takes_nothing = self.first.takes_nothing() && self.others.iter().all(Draft::takes_nothing);
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        if takes_nothing && !may_take_nothing {
            return Err(Error::invalid(
                "consume",
                "nothing",
                "call `consume` at least once",
            ));
        }
        let entity = EntityId::parse(&self.entity)?;
        let mut parts = Parts::new();
        for draft in std::iter::once(self.first).chain(self.others) {
            let part = draft.check(&entity, parts.len())?;
            let resource = &part.key.resource;
            if parts.iter().any(|before| before.key.resource == *resource) {
                return Err(Error::invalid(
                    "resource",
                    resource.as_str(),
                    "a call names each resource once",
                ));
            }
            parts.push(part);
        }
        Ok(parts)
    }
}
