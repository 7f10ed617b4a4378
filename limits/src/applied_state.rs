//! The record of the levels that a limits file manages, so that a level removed from the file can be deleted.
//!
//! It is an item in the table that neither the limiter nor the Python package reads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};
use zae_limiter::{ConfigLevel, EntityId, Repository, Resource, Timestamp};
use zae_limiter_dynamo::Table;
use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::keys::{self, attribute};

use crate::error::{Error, Result};

type Attributes = HashMap<String, AttributeValue>;

/// The state after the last apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AppliedState {
    pub(crate) managed: BTreeSet<ConfigLevel>,
    /// SHA-256 of the file.
    pub(crate) hash: String,
    pub(crate) applied: Option<Timestamp>,
    /// The resource of a stack that declares the levels, if one does.
    pub(crate) owner: Option<String>,
    /// The resource that the owner took the levels over from, until either of them is withdrawn.
    pub(crate) previous: Option<String>,
}

impl AppliedState {
    /// Records that a resource declares the levels, and from whom it took them over.
    pub(crate) fn give_to(&mut self, owner: &str) {
        if self.owner.as_deref() != Some(owner) {
            self.previous = self.owner.replace(owner.to_owned());
        }
    }

    /// What is recorded while the changes that lead to another state are made: every level that is or will be managed. A new
    /// owner is known from the start. One that withdraws remains the owner until the end, so that a deletion that was
    /// interrupted can be repeated.
    pub(crate) fn until(&self, after: &Self) -> Self {
        let mut state = self.clone();
        state.managed.extend(after.managed.iter().cloned());
        if after.owner.is_some() {
            state.owner.clone_from(&after.owner);
            state.previous.clone_from(&after.previous);
        }
        state
    }
}

/// The stored state, with its revision for optimistic locking.
#[derive(Debug)]
pub(crate) struct AppliedStateRecord {
    table: Table,
    revision: u64,
    pub(crate) state: AppliedState,
}

impl AppliedStateRecord {
    pub(crate) async fn read(repository: &Repository) -> Result<Self> {
        let table = repository.table();
        let item = read(&table).await?;
        Ok(Self {
            revision: number(&item, attribute::REVISION),
            state: AppliedState::from_item(&item),
            table,
        })
    }

    /// Writes the state. Fails if another process has applied a file since it was read.
    pub(crate) async fn write(&mut self, state: AppliedState) -> Result<()> {
        let (before, after) = (self.revision, self.revision + 1);
        let key = keys::applied_limits();
        let mut item = state.to_item();
        item.extend([
            (attribute::PK.to_owned(), AttributeValue::S(key.pk)),
            (attribute::SK.to_owned(), AttributeValue::S(key.sk)),
            (
                attribute::REVISION.to_owned(),
                AttributeValue::N(after.to_string()),
            ),
        ]);
        let written = self.table.put(item.clone().into(), |p| {
            let revision = p.name(attribute::REVISION);
            let seen = p.value(AttributeValue::N(before.to_string()));
            format!("attribute_not_exists({revision}) OR {revision}={seen}")
        });
        // The condition is false as well if the response of an earlier attempt was lost.
        if !written.await.map_err(zae_limiter::Error::from)? && read(&self.table).await? != item {
            return Err(Error::Concurrent {
                table: self.table.name.to_string(),
            });
        }
        self.revision = after;
        self.state = state;
        Ok(())
    }
}

async fn read(table: &Table) -> Result<Attributes> {
    let item = table.get(&keys::applied_limits(), true).await;
    let item = item.map_err(zae_limiter::Error::from)?;
    Ok(item.unwrap_or_default().into_inner())
}

fn number(item: &Attributes, name: &str) -> u64 {
    match item.get(name) {
        Some(AttributeValue::N(digits)) => digits.parse().unwrap_or(0),
        _ => 0,
    }
}

impl AppliedState {
    /// The attributes have the names that the Python package's provisioner uses.
    fn to_item(&self) -> Attributes {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut entities: BTreeMap<&EntityId, Vec<AttributeValue>> = BTreeMap::new();
        let mut resources = vec![];
        for level in &self.managed {
            match (level, level.entity(), level.resource_key()) {
                (ConfigLevel::Resource(resource), ..) => resources.push(text(resource.as_str())),
                (_, Some(entity), Some(resource)) => entities.entry(entity).or_default().push(text(resource)),
                _ => {}
            }
        }
        let entities = entities
            .into_iter()
            .map(|(entity, resources)| (entity.to_string(), AttributeValue::L(resources)));
        let system = self.managed.contains(&ConfigLevel::System);
        let applied = self.applied.map(|time| time.to_string()).unwrap_or_default();
        let mut item = HashMap::from([
            (attribute::MANAGED_SYSTEM.to_owned(), AttributeValue::Bool(system)),
            (
                attribute::MANAGED_RESOURCES.to_owned(),
                AttributeValue::L(resources),
            ),
            (
                attribute::MANAGED_ENTITIES.to_owned(),
                AttributeValue::M(entities.collect()),
            ),
            (attribute::APPLIED_HASH.to_owned(), text(&self.hash)),
            (attribute::LAST_APPLIED.to_owned(), text(&applied)),
        ]);
        for (name, resource) in [
            (attribute::OWNER, &self.owner),
            (attribute::PREVIOUS_OWNER, &self.previous),
        ] {
            if let Some(resource) = resource {
                item.insert(name.to_owned(), text(resource));
            }
        }
        item
    }

    /// Levels that cannot be parsed are treated as unmanaged, so that they are never deleted by mistake.
    fn from_item(item: &Attributes) -> Self {
        let text_of = |value: &AttributeValue| match value {
            AttributeValue::S(text) => Some(text.clone()),
            _ => None,
        };
        let texts = |value: &AttributeValue| -> Vec<String> {
            match value {
                AttributeValue::L(list) => list.iter().filter_map(text_of).collect(),
                _ => vec![],
            }
        };
        let text = |name: &str| item.get(name).and_then(text_of).unwrap_or_default();
        let mut managed = BTreeSet::new();
        if let Some(AttributeValue::Bool(true)) = item.get(attribute::MANAGED_SYSTEM) {
            managed.insert(ConfigLevel::System);
        }
        let resources = item
            .get(attribute::MANAGED_RESOURCES)
            .map(texts)
            .unwrap_or_default();
        managed.extend(
            resources
                .iter()
                .filter_map(|name| Some(ConfigLevel::Resource(Resource::parse(name).ok()?))),
        );
        if let Some(AttributeValue::M(entities)) = item.get(attribute::MANAGED_ENTITIES) {
            for (entity, names) in entities {
                let Ok(entity) = EntityId::parse(entity) else {
                    continue;
                };
                managed.extend(texts(names).iter().filter_map(|name| {
                    if name == ConfigLevel::DEFAULT_RESOURCE {
                        return Some(ConfigLevel::EntityDefault(entity.clone()));
                    }
                    Some(ConfigLevel::Entity(entity.clone(), Resource::parse(name).ok()?))
                }));
            }
        }
        Self {
            managed,
            hash: text(attribute::APPLIED_HASH),
            applied: Timestamp::parse(&text(attribute::LAST_APPLIED)).ok(),
            owner: Some(text(attribute::OWNER)).filter(|owner| !owner.is_empty()),
            previous: Some(text(attribute::PREVIOUS_OWNER)).filter(|previous| !previous.is_empty()),
        }
    }
}

/// The SHA-256 of a text, in hexadecimal.
pub(crate) fn hash(text: &str) -> String {
    use std::fmt::Write as _;
    let mut digits = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_round_trips_through_its_item() {
        let entity = EntityId::parse("user-1").unwrap();
        let resource = Resource::parse("openai/gpt-4").unwrap();
        let state = AppliedState {
            managed: BTreeSet::from([
                ConfigLevel::System,
                ConfigLevel::Resource(resource.clone()),
                ConfigLevel::EntityDefault(entity.clone()),
                ConfigLevel::Entity(entity, resource),
            ]),
            hash: hash("file"),
            applied: Some(Timestamp::from_seconds(1_704_067_200)),
            owner: Some("limiter/Limits".to_owned()),
            previous: Some("limiter/Old".to_owned()),
        };
        assert_eq!(AppliedState::from_item(&state.to_item()), state);
        assert_eq!(AppliedState::from_item(&HashMap::new()), AppliedState::default());
    }

    #[test]
    fn levels_that_cannot_be_parsed_are_not_managed() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let names = AttributeValue::L(vec![
            text("gpt-4"),
            text("9 lives"),
            text("_default_"),
            AttributeValue::Bool(true),
        ]);
        let item = HashMap::from([
            ("managed_system".to_owned(), text("true")),
            ("managed_resources".to_owned(), names.clone()),
            (
                "managed_entities".to_owned(),
                AttributeValue::M(HashMap::from([
                    ("user-1".to_owned(), names.clone()),
                    ("no#entity".to_owned(), names),
                    ("user-2".to_owned(), text("gpt-4")),
                ])),
            ),
            ("last_applied".to_owned(), text("yesterday")),
        ]);
        let entity = EntityId::parse("user-1").unwrap();
        let resource = Resource::parse("gpt-4").unwrap();
        let expected = AppliedState {
            managed: BTreeSet::from([
                ConfigLevel::Resource(resource.clone()),
                ConfigLevel::EntityDefault(entity.clone()),
                ConfigLevel::Entity(entity, resource),
            ]),
            ..AppliedState::default()
        };
        assert_eq!(AppliedState::from_item(&item), expected);
    }

    #[test]
    fn an_interrupted_run_leaves_its_levels_managed_and_an_owner() {
        let resource = |name: &str| ConfigLevel::Resource(Resource::parse(name).unwrap());
        let owned = |owner: &str, level: &str| AppliedState {
            managed: BTreeSet::from([resource(level)]),
            owner: Some(owner.to_owned()),
            ..AppliedState::default()
        };
        let old = owned("app:Old", "a");
        let mut new = owned("app:New", "b");
        new.previous = Some("app:Old".to_owned());
        let declaring = old.until(&new);
        assert_eq!(declaring.managed, BTreeSet::from([resource("a"), resource("b")]));
        assert_eq!(
            (&declaring.owner, &declaring.previous),
            (&new.owner, &new.previous)
        );
        // The repetition of a deletion finds everything as it was.
        assert_eq!(old.until(&AppliedState::default()), old);
    }
}
