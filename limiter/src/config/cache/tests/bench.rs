//! A cache on a source that does as it is told.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;

use tokio::sync::Notify;
use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{ConfigRecord, EntityRecord, Limit, LimitSet, Metadata, Timestamp};

use super::super::*;
use crate::error::{NotFound, Unavailable};
use crate::store::{BoxFuture, ItemsRead};
use crate::{Error, ManualClock, Result};

/// Has the same limits for every resource, counts reads, and can be held up or fail.
#[derive(Debug, Default)]
pub(super) struct Fake {
    pub(super) loads: AtomicUsize,
    pub(super) consistent: AtomicUsize,
    pub(super) hold: Option<Notify>,
    /// Every entity's own policy.
    pub(super) own_policy: Option<OnUnavailable>,
    pub(super) state: Mutex<FakeState>,
}

#[derive(Debug)]
pub(super) struct FakeState {
    /// The tokens of every resource's limit.
    pub(super) tokens: u64,
    /// Who counts on whom.
    pub(super) parents: HashMap<String, String>,
    failure: Option<Error>,
    /// Optional keys of these partitions stay unread.
    throttled: Option<&'static str>,
    requested: Vec<String>,
}

impl Default for FakeState {
    fn default() -> Self {
        Self {
            tokens: 100,
            parents: HashMap::new(),
            failure: None,
            throttled: None,
            requested: Vec::new(),
        }
    }
}

impl Fake {
    pub(super) fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap()
    }

    /// Every read fails from now on.
    pub(super) fn fail_with(&self, error: Error) {
        self.state().failure = Some(error);
    }

    /// Keys of partitions that start like this are throttled from now on.
    pub(super) fn throttle(&self, partition: &'static str) {
        self.state().throttled = Some(partition);
    }

    pub(super) fn heal(&self) {
        let mut state = self.state();
        (state.failure, state.throttled) = (None, None);
    }

    /// The keys requested since the last time this was asked.
    pub(super) fn requested(&self) -> Vec<String> {
        std::mem::take(&mut self.state().requested)
    }

    fn item(&self, key: &Key) -> Option<Item> {
        let state = self.state();
        if let Some(resource) = key.pk.strip_prefix("RESOURCE#") {
            let limits = LimitSet::new([Limit::per_minute("rpm", state.tokens).unwrap()]).unwrap();
            let level = ConfigLevel::Resource(Resource::parse(resource).unwrap());
            let mut record = ConfigRecord::new(level, limits);
            record.on_unavailable = Some(OnUnavailable::Allow);
            return Some(record.to_item());
        }
        let name = key.pk.strip_prefix("ENTITY#")?;
        let entity = EntityId::parse(name).unwrap();
        match key.sk.as_str() {
            "#CONFIG#_default_" => {
                let mut record = ConfigRecord::new(ConfigLevel::EntityDefault(entity), LimitSet::default());
                record.on_unavailable = Some(self.own_policy?);
                Some(record.to_item())
            }
            "#META" => {
                let record = EntityRecord {
                    name: name.to_owned(),
                    id: entity,
                    parent: Some(EntityId::parse(state.parents.get(name)?).unwrap()),
                    cascade: true,
                    metadata: Metadata::new(),
                    created_at: Timestamp::MIN,
                    version: 1,
                    unknown: std::collections::BTreeMap::new(),
                };
                Some(record.to_item())
            }
            _ => None,
        }
    }

    async fn read(&self, wanted: &ItemsWanted) -> Result<ItemsRead> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.consistent
            .fetch_add(usize::from(wanted.consistent), Ordering::SeqCst);
        let keys = || wanted.required.iter().chain(&wanted.optional);
        let names = keys().map(|key| format!("{} {}", key.pk, key.sk));
        self.state().requested.extend(names);
        if let Some(hold) = &self.hold {
            hold.notified().await;
        }
        if let Some(error) = self.state().failure.clone() {
            return Err(error);
        }
        let throttled = self.state().throttled;
        let is_throttled = |key: &&Key| throttled.is_some_and(|partition| key.pk.starts_with(partition));
        if wanted.required.iter().any(|key| is_throttled(&key)) {
            return Err(unavailable());
        }
        let unread = wanted.optional.iter().filter(is_throttled);
        let found = keys().filter(|key| !is_throttled(key));
        Ok(ItemsRead {
            unread: unread.map(|key| (key.clone(), unavailable())).collect(),
            found: found
                .filter_map(|key| Some((key.clone(), self.item(key)?)))
                .collect(),
        })
    }
}

impl ConfigSource for Fake {
    fn read_items<'a>(&'a self, wanted: &'a ItemsWanted) -> BoxFuture<'a, Result<ItemsRead>> {
        Box::pin(self.read(wanted))
    }
}

pub(super) fn unavailable() -> Error {
    Error::Unavailable(Unavailable::NoResponse {
        operation: "BatchGetItem",
        table: "limiter".into(),
        reason: "throttled".into(),
        within: Duration::from_secs(1),
    })
}

pub(super) fn no_table() -> Error {
    Error::NotFound(NotFound::Table {
        table: "limiter".into(),
        place: "memory".into(),
    })
}

pub(super) struct Bench {
    pub(super) backend: Arc<Fake>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) cache: Arc<ConfigCache>,
}

/// A source that responds only when it is told to.
pub(super) fn holding() -> Bench {
    let held = Fake {
        hold: Some(Notify::new()),
        ..Fake::default()
    };
    bench(held, 60, 100)
}

pub(super) fn bench(backend: Fake, ttl: u64, entries: usize) -> Bench {
    let (backend, clock) = (
        Arc::new(backend),
        Arc::new(ManualClock::at(Timestamp::from_seconds(1_700_000_000))),
    );
    let defaults = Defaults {
        limits: LimitSet::default(),
        on_unavailable: OnUnavailable::Block,
    };
    let limits = CacheLimits {
        ttl: Duration::from_secs(ttl),
        entries,
    };
    let cache = Arc::new(ConfigCache::new(backend.clone(), clock.clone(), defaults, limits));
    Bench {
        backend,
        clock,
        cache,
    }
}

impl Bench {
    pub(super) fn loads(&self) -> usize {
        self.backend.loads.load(Ordering::SeqCst)
    }

    pub(super) async fn resolve(&self, entity: &str) -> Result<Lookup> {
        self.cache.resolve(&EntityId::parse(entity)?, &gpt()).await
    }

    pub(super) async fn chain(&self, entity: &str) -> Result<Vec<String>> {
        let key = BucketKey {
            entity: EntityId::parse(entity)?,
            resource: gpt(),
        };
        let chain = self.cache.resolve_chain(&key, None).await?;
        Ok(chain.into_iter().map(|(entity, _)| entity.to_string()).collect())
    }

    /// The tokens of the limit that applies.
    pub(super) async fn tokens(&self, entity: &str) -> Result<u64> {
        let lookup = self.resolve(entity).await?;
        let limit = lookup.resolved().limits.iter().next();
        Ok(limit.map_or(0, |limit| limit.capacity().get()))
    }

    pub(super) fn after_ttl(&self) {
        self.clock.advance(Duration::from_secs(60));
    }
}

pub(super) fn gpt() -> Resource {
    Resource::parse("gpt-4").unwrap()
}

/// The keys of an entity's own items on a resource.
pub(super) fn own_keys(entity: &str, resource: &str) -> Vec<String> {
    [
        "#META",
        &format!("#CONFIG#{resource}"),
        "#CONFIG#_default_",
        &format!("#BUCKET#{resource}"),
    ]
    .map(|sort| format!("ENTITY#{entity} {sort}"))
    .to_vec()
}

pub(super) const SYSTEM: &str = "SYSTEM# #CONFIG";
pub(super) const RESOURCE: &str = "RESOURCE#gpt-4 #CONFIG";
