//! Entities: created, found, changed, deleted.

use zae_limiter_dynamo::{Reason, Transacted, Transaction, Update, key_of, to_sdk_key};
use zae_limiter_schema::keys::{self, attribute};
use zae_limiter_schema::{AttributeValue, AuditAction, EntityId, EntityRecord, Item};

use super::audit::{self, Details};
use super::deletion;
use super::entity_change::EntityChange;
use super::entity_search::EntitySearch;
use super::new_entity::NewEntity;
use super::paging::{self, Rows};
use super::parents::{check_parents, children_of, levels_below, parents_above, read_entity};
use super::repository::MAX_ATTEMPTS;
use crate::error::{Conflict, NotFound};
use crate::page::{Cursor, Page, PageRequest};
use crate::{Error, Repository, Result};

impl Repository {
    /// Creates an entity. Its parent must exist, and at most [`MAX_PARENTS`](crate::MAX_PARENTS) levels of parents may
    /// be above it. If several create the same entity at once, one succeeds and the others get
    /// [`Conflict::EntityExists`].
    ///
    /// ```
    /// use zae_limiter::error::Conflict;
    /// use zae_limiter::{Error, NewEntity, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// repository.create_entity(NewEntity::new("project-1")).await?;
    /// let key = repository.create_entity(NewEntity::new("key-1").parent("project-1").cascade(true)).await?;
    /// assert_eq!(key.name, "key-1");
    /// let again = repository.create_entity(NewEntity::new("key-1")).await;
    /// assert!(matches!(again, Err(Error::Conflict(Conflict::EntityExists { .. }))));
    /// # Ok(()) }
    /// ```
    pub async fn create_entity(&self, entity: NewEntity) -> Result<EntityRecord> {
        let record = entity.check(self.now())?;
        let this = self.for_one_operation();
        this.ready().await?;
        let table = this.table();
        let parents = format!("the parents of {}", record.id);
        for attempt in 1..=MAX_ATTEMPTS {
            let above = parents_above(&table, &record.id, record.parent.as_ref(), 0).await?;
            let details = creation_details(&record);
            let event = this
                .entity_event(&record.id, AuditAction::EntityCreated, details)
                .await?;
            let mut transaction = Transaction::on(&table);
            transaction.put_new(record.to_item());
            check_parents(&mut transaction, &above);
            transaction.put_new(event.to_item());
            match this.noted(&record.id, transaction.commit().await)? {
                Transacted::Done => return Ok(record),
                Transacted::Refused(reasons) if reasons.first().is_some_and(Reason::failed) => {
                    return Err(Error::Conflict(Conflict::EntityExists { entity: record.id }));
                }
                Transacted::Refused(_) => this.after_lost_race(&parents, attempt).await?,
            }
        }
        Err(Error::contended(&parents))
    }

    /// The entity. None if it does not exist.
    ///
    /// ```
    /// use zae_limiter::NewEntity;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.create_entity(NewEntity::new("user-1").metadata([("tier", "gold")])).await?;
    /// let user = repository.get_entity("user-1").await?.unwrap();
    /// assert_eq!(zae_limiter::records::to_json(&user.metadata["tier"]), "gold");
    /// assert_eq!(repository.get_entity("user-2").await?, None);
    /// # Ok(()) }
    /// ```
    pub async fn get_entity(&self, entity: impl AsRef<str>) -> Result<Option<EntityRecord>> {
        read_entity(&self.inner.table, &EntityId::parse(entity)?).await
    }

    /// Changes name, metadata, parent or cascade flag, and returns the entity as it is now.
    ///
    /// A new parent must exist and must not be below the entity, and the tree may not become deeper than allowed.
    ///
    /// Concurrent changes merge by field, and by key in the metadata. Returns [`Conflict::Concurrent`] if another writer
    /// changes the same field or metadata entry to another value meanwhile, or keeps changing the entity until the
    /// time budget or ten attempts are used up.
    ///
    /// ```
    /// use zae_limiter::error::Conflict;
    /// use zae_limiter::{EntityChange, Error, NewEntity};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// for id in ["project-1", "key-1"] {
    ///     repository.create_entity(NewEntity::new(id)).await?;
    /// }
    /// let change = EntityChange::new().parent("project-1").cascade(true);
    /// let key = repository.update_entity("key-1", change).await?;
    /// assert_eq!(key.parent.unwrap().as_str(), "project-1");
    /// let circle = repository.update_entity("project-1", EntityChange::new().parent("key-1")).await;
    /// assert!(matches!(circle, Err(Error::Conflict(Conflict::ParentCycle { .. }))));
    /// # Ok(()) }
    /// ```
    pub async fn update_entity(&self, entity: impl AsRef<str>, change: EntityChange) -> Result<EntityRecord> {
        let id = EntityId::parse(entity)?;
        if change.is_nothing() {
            return Err(Error::invalid("change", "", "it must change something"));
        }
        let reason = change.reason_detail()?;
        let this = self.for_one_operation();
        this.ready().await?;
        let table = this.table();
        let what = format!("entity {id}");
        let mut first: Option<EntityRecord> = None;
        for attempt in 1..=MAX_ATTEMPTS {
            let stored = table
                .get(&keys::entity_meta(&id), true)
                .await?
                .ok_or_else(|| Error::NotFound(NotFound::Entity { entity: id.clone() }))?;
            let present = EntityRecord::from_item(&stored)?;
            let record = change.apply(&present)?;
            if let Some(field) =
                change.conflict(first.get_or_insert_with(|| present.clone()), &present, &record)
            {
                return Err(Error::contended(&format!("the {field} of {what}")));
            }
            if record == present {
                return Ok(record);
            }
            let moved = record.parent != present.parent;
            let above = if moved {
                let below = if record.parent.is_some() {
                    levels_below(&table, &id).await?
                } else {
                    0
                };
                parents_above(&table, &id, record.parent.as_ref(), below).await?
            } else {
                vec![]
            };
            let mut details = change_details(&present, &record);
            details.extend(reason.clone());
            let event = this
                .entity_event(&id, AuditAction::EntityUpdated, details)
                .await?;
            let mut transaction = Transaction::on(&table);
            transaction.update(write(&stored, &record));
            check_parents(&mut transaction, &above);
            transaction.put_new(event.to_item());
            if let Transacted::Done = this.noted(&id, transaction.commit().await)? {
                return Ok(record);
            }
            this.after_lost_race(&what, attempt).await?;
        }
        Err(Error::contended(&what))
    }

    /// Gives an entity another parent, or none.
    ///
    /// Calls that begin afterwards count on the new parent: on other processes within the time to live of their configuration
    /// cache. Leases that are held adjust and refund where they took. The same as [`update_entity`](Self::update_entity) with
    /// nothing but a parent: cycles and chains that are too long are refused, and repeating it changes nothing.
    ///
    /// ```
    /// use zae_limiter::NewEntity;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.create_entity(NewEntity::new("team-1")).await?;
    /// repository.create_entity(NewEntity::new("user-1").cascade(true)).await?;
    /// let user = repository.set_parent("user-1", Some("team-1")).await?;
    /// assert_eq!(user.parent.unwrap().as_str(), "team-1");
    /// assert_eq!(repository.set_parent("user-1", None).await?.parent, None);
    /// # Ok(()) }
    /// ```
    pub async fn set_parent(&self, entity: impl AsRef<str>, parent: Option<&str>) -> Result<EntityRecord> {
        let change = match parent {
            Some(parent) => EntityChange::new().parent(parent),
            None => EntityChange::new().without_parent(),
        };
        self.update_entity(entity, change).await
    }

    /// The children of an entity, in order of their ids. Items that are not valid entities are skipped.
    ///
    /// ```
    /// use zae_limiter::{NewEntity, PageRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.create_entity(NewEntity::new("project-1")).await?;
    /// repository.create_entity(NewEntity::new("key-1").parent("project-1")).await?;
    /// let page = repository.list_children("project-1", &PageRequest::default()).await?;
    /// assert_eq!(page.items[0].id.as_str(), "key-1");
    /// assert_eq!(page.next, None);
    /// # Ok(()) }
    /// ```
    pub async fn list_children(
        &self,
        parent: impl AsRef<str>,
        page: &PageRequest,
    ) -> Result<Page<EntityRecord>> {
        let query = children_of(&EntityId::parse(parent)?);
        paging::query_page(&self.inner.table, &query, Rows::AsTheyAre, page, |item| {
            Ok(read_if_ours(item))
        })
        .await
    }

    /// All entities, in no particular order. Reads the whole table, page by page. Items that are not valid
    /// entities are skipped.
    ///
    /// ```
    /// use zae_limiter::{NewEntity, PageRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// for id in ["user-1", "user-2", "user-3"] {
    ///     repository.create_entity(NewEntity::new(id)).await?;
    /// }
    /// let mut request = PageRequest::new(2);
    /// let mut found = vec![];
    /// loop {
    ///     let page = repository.list_entities(&request).await?;
    ///     found.extend(page.items);
    ///     let Some(cursor) = page.next else { break };
    ///     request = request.after(cursor);
    /// }
    /// assert_eq!(found.len(), 3);
    /// # Ok(()) }
    /// ```
    pub async fn list_entities(&self, page: &PageRequest) -> Result<Page<EntityRecord>> {
        paging::scan_page(&self.inner.table, keys::ENTITY_META, page, |item| {
            Ok(read_if_ours(item))
        })
        .await
    }

    /// The ids of at most `most` entities, in order. The last one is where the next search starts, see
    /// [`EntitySearch::after`].
    ///
    /// Costs two queries per resource and one more, each for at most `most` keys, however many entities there are. A query that
    /// reads more than 1 MB of keys takes several requests.
    /// An entity that has neither a bucket nor limits of its own is found by [`get_entity`](Self::get_entity) only.
    ///
    /// ```
    /// use zae_limiter::{EntitySearch, Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// for entity in ["team-a:1", "team-a:2", "team-b:1"] {
    ///     limiter.acquire(entity, "gpt-4").consume("rpm", 1).await?.commit().await?;
    /// }
    /// let search = EntitySearch::on(["gpt-4".parse()?]).prefix("team-a:");
    /// let found = limiter.repository().search_entities(&search, 100).await?;
    /// assert_eq!(found.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["team-a:1", "team-a:2"]);
    /// # Ok(()) }
    /// ```
    pub async fn search_entities(&self, search: &EntitySearch, most: usize) -> Result<Vec<EntityId>> {
        search.run(&self.inner.table, most).await
    }

    /// Entities with a record, in no particular order, by a single scan of at most 1 MB of the table. Unlike
    /// [`list_entities`](Self::list_entities), a page may hold fewer items than requested, or none, and still have a
    /// next one.
    ///
    /// ```
    /// use zae_limiter::{NewEntity, PageRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.create_entity(NewEntity::new("user-1")).await?;
    /// let page = repository.scan_entities(&PageRequest::new(50)).await?;
    /// assert_eq!(page.items[0].id.as_str(), "user-1");
    /// # Ok(()) }
    /// ```
    pub async fn scan_entities(&self, request: &PageRequest) -> Result<Page<EntityRecord>> {
        request.check()?;
        let start = request.after.as_ref().map(|after| to_sdk_key(&after.key));
        let page = self.inner.table.scan_page(keys::ENTITY_META, start).await?;
        let mut rows = page.items.iter().filter_map(|item| {
            let record = EntityRecord::from_item(item).ok()?;
            Some((record, key_of(item)?))
        });
        let cursor = |key| Cursor { key, in_index: None };
        let shown: Vec<_> = rows.by_ref().take(request.size).collect();
        let last = shown.last().map(|(_, key)| key.clone());
        let next = if rows.next().is_some() {
            last.map(cursor)
        } else {
            let unscanned = page.next.map(zae_limiter_dynamo::from_sdk_item).transpose()?;
            unscanned.as_ref().and_then(key_of).map(cursor)
        };
        Ok(Page {
            items: shown.into_iter().map(|(record, _)| record).collect(),
            next,
        })
    }

    /// Deletes an entity with its buckets, configurations and usage, and returns how many records that were. Its audit
    /// events stay. An entity with children is not deleted.
    ///
    /// ```
    /// use zae_limiter::error::NotFound;
    /// use zae_limiter::{Error, Limit, NewEntity};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.create_entity(NewEntity::new("user-1")).await?;
    /// repository.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// assert_eq!(repository.delete_entity("user-1").await?, 2);
    /// assert!(matches!(repository.delete_entity("user-1").await, Err(Error::NotFound(NotFound::Entity { .. }))));
    /// # Ok(()) }
    /// ```
    pub async fn delete_entity(&self, entity: impl AsRef<str>) -> Result<usize> {
        let id = EntityId::parse(entity)?;
        self.ready().await?;
        deletion::refuse_if_parent(&self.inner.table, &id).await?;
        let deleted = deletion::delete_records(self, &id).await;
        match &deleted {
            Ok(_) => self.inner.cache.deleted_entity(&id),
            // Part of it may have happened.
            Err(_) => self.inner.cache.invalidate_entity(&id),
        }
        deleted
    }

    /// Forgets what is kept about an entity that was written, or may have been: an error leaves that open.
    fn noted(
        &self,
        entity: &EntityId,
        outcome: zae_limiter_dynamo::Result<Transacted>,
    ) -> Result<Transacted> {
        if !matches!(outcome, Ok(Transacted::Refused(_))) {
            self.inner.cache.invalidate_entity(entity);
        }
        Ok(outcome?)
    }
}

/// The Python peer accepts ids that we do not: one of them does not hide the others.
fn read_if_ours(item: &Item) -> Option<EntityRecord> {
    EntityRecord::from_item(item)
        .inspect_err(|error| tracing::warn!(%error, "an entity is passed over"))
        .ok()
}

/// What a change requires to be as it was read. The version alone does not tell: it starts again at 1 when an entity is
/// deleted and created again, and the Python package writes none.
const COMPARED: [&str; 5] = [
    attribute::VERSION,
    attribute::CREATED_AT,
    attribute::NAME,
    attribute::CASCADE,
    attribute::METADATA,
];

/// Changes exactly what differs, on the condition that the record is still the one that was read.
fn write(stored: &Item, record: &EntityRecord) -> Update {
    let after = record.to_item();
    let mut update = Update::of(keys::entity_meta(&record.id)).when_exists(attribute::PK);
    for name in COMPARED {
        update = update.when_still(name, stored.get(name).cloned());
    }
    update = match stored.get(attribute::PARENT_ID) {
        Some(AttributeValue::S(parent)) => {
            update.when_still(attribute::PARENT_ID, Some(AttributeValue::S(parent.clone())))
        }
        _ => update.when(|p| zae_limiter_dynamo::is_none(p, attribute::PARENT_ID)),
    };
    let mut names: Vec<&String> = stored.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        match (stored.get(name), after.get(name)) {
            (old, Some(new)) if old != Some(new) => update = update.set(name, new.clone()),
            (Some(_), None) => update = update.remove(name),
            _ => {}
        }
    }
    update
}

fn creation_details(record: &EntityRecord) -> Details {
    Details::from([
        ("name".to_owned(), audit::text(&record.name)),
        (
            "parent_id".to_owned(),
            audit::text_or_null(record.parent.as_ref()),
        ),
        ("cascade".to_owned(), AttributeValue::Bool(record.cascade)),
        (
            "metadata".to_owned(),
            AttributeValue::M(record.metadata.clone().into_iter().collect()),
        ),
    ])
}

/// Only what changed, as it is now.
fn change_details(present: &EntityRecord, record: &EntityRecord) -> Details {
    let (before, after) = (creation_details(present), creation_details(record));
    after
        .into_iter()
        .filter(|(name, value)| before.get(name) != Some(value))
        .collect()
}
