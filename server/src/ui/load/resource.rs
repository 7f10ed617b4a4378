//! One resource: its defaults, who uses it, and its audit trail.

use zae_limiter::audit::AuditSubject;
use zae_limiter::money::Prices;
use zae_limiter::pagination::Page;
use zae_limiter::records::ConfigRecord;
use zae_limiter::usage::WindowKind;
use zae_limiter::{ConfigLevel, EntityId, LimitName, PageRequest, Resource};

use super::usage::{ENTITIES_PER_WINDOW, UsageOfResource, UsageOfWindow};
use super::{Loaded, Trail, trail, usage_of_resource, usage_of_window, windows_back};
use crate::ui::Ui;

const SOME: usize = 20;

/// Everything about one resource.
#[derive(Debug, Clone)]
pub(crate) struct ResourcePage {
    pub(crate) resource: Resource,
    pub(crate) window: WindowKind,
    /// The limit that counts money.
    pub(crate) money: Option<LimitName>,
    pub(crate) defaults: Loaded<Option<ConfigRecord>>,
    /// What applies where the resource has no limits.
    pub(crate) system: Loaded<Option<ConfigRecord>>,
    pub(crate) usage: Loaded<UsageOfResource>,
    pub(crate) now: Loaded<UsageOfWindow>,
    pub(crate) with_own_limits: Loaded<Page<EntityId>>,
    pub(crate) audit: Loaded<Trail>,
}

pub(crate) async fn resource_page(ui: &Ui, resource: Resource, window: WindowKind) -> ResourcePage {
    let repository = ui.app.limiter.repository();
    let now = ui.app.clock.now();
    let some = PageRequest::new(SOME);
    let subject = AuditSubject::Resource(resource.clone());
    let level = ConfigLevel::Resource(resource.clone());
    let request = PageRequest::new(ENTITIES_PER_WINDOW);
    let (defaults, system, usage, of_now, with_own_limits, audit) = tokio::join!(
        repository.get_config(&level),
        repository.get_config(&ConfigLevel::System),
        usage_of_resource(repository, &resource, windows_back(window, now)),
        usage_of_window(repository, &resource, window.window_at(now), &request),
        repository.list_entities_with_custom_limits(Some(&resource), &some),
        trail(repository, &subject, &some, SOME),
    );
    let record =
        |config: &zae_limiter::Result<Option<ConfigRecord>>| config.as_ref().ok()?.as_ref()?.prices.clone();
    let prices = record(&defaults).or_else(|| record(&system));
    let money = Some(Prices::money_limit_of(prices.as_ref()));
    let usage = usage.map(|usage| UsageOfResource {
        money: money.clone(),
        ..usage
    });
    let of_now = of_now.map(|mut usage| {
        usage
            .entities
            .sort_by_key(|usage| std::cmp::Reverse(usage.acquires));
        usage.entities.truncate(SOME);
        usage.money.clone_from(&money);
        usage
    });
    ResourcePage {
        window,
        money,
        defaults: defaults.map_err(Into::into),
        system: system.map_err(Into::into),
        usage,
        now: of_now,
        with_own_limits: with_own_limits.map_err(Into::into),
        audit,
        resource,
    }
}
