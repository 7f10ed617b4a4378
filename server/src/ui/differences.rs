//! What each audit event changed: the old value next to the new one.
//!
//! Events tell how a level or an entity was stored afterwards. The old values are those of the event before.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;
use zae_limiter::Limit;
use zae_limiter::audit::{AuditAction, AuditEvent};
use zae_limiter::records::to_json;

/// A value that an event changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// What was changed, such as the name of a limit.
    pub(crate) what: String,
    pub(crate) old: Old,
    /// None if it was removed.
    pub(crate) new: Option<String>,
}

/// A value before an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Old {
    /// No earlier event tells it.
    Unknown,
    Known(Option<String>),
}

/// Values by name, such as `100/min` by `rpm`.
type Values = BTreeMap<String, String>;

/// What the names of values of metadata start with.
const NOTE: &str = "metadata ";

/// What each of the first `shown` events changed. Events are sorted by time, newest first; those that follow only tell
/// old values.
pub(crate) fn differences(events: &[AuditEvent], shown: usize) -> Vec<Vec<Difference>> {
    let mut stored: HashMap<(String, Option<&str>), Values> = HashMap::new();
    let mut found: Vec<_> = events
        .iter()
        .rev()
        .map(|event| {
            let place = (event.subject.to_string(), event.resource.as_deref());
            let old = stored.remove(&place);
            if event.action == AuditAction::EntityDeleted {
                // Its limits went with it, whatever their resource.
                for ((subject, _), values) in &mut stored {
                    if *subject == place.0 {
                        values.clear();
                    }
                }
            }
            let (new, differences) = compare(event, old);
            if let Some(new) = new {
                stored.insert(place, new);
            }
            differences
        })
        .collect();
    found.reverse();
    found.truncate(shown);
    found
}

/// What is stored after the event, as far as it is known, and what the event changed.
fn compare(event: &AuditEvent, old: Option<Values>) -> (Option<Values>, Vec<Difference>) {
    let told = values(event);
    match event.action {
        AuditAction::EntityCreated => {
            let created = told.iter().map(|(what, new)| Difference {
                what: what.clone(),
                old: Old::Unknown,
                new: Some(new.clone()),
            });
            let created = created.collect();
            (Some(told), created)
        }
        AuditAction::LimitsSet => {
            let differences = between(old.as_ref(), &told);
            (Some(told), differences)
        }
        AuditAction::LimitsDeleted => {
            // Without an earlier event, the details may name what was removed.
            let old = old.unwrap_or(told);
            (Some(Values::new()), between(Some(&old), &Values::new()))
        }
        AuditAction::EntityDeleted => {
            // The details count records and do not name what was removed.
            let old = old.unwrap_or_default();
            (Some(Values::new()), between(Some(&old), &Values::new()))
        }
        // Only what was changed is told.
        _ => {
            let Some(old) = old else {
                return (None, told_alone(event, &told));
            };
            let mut new = old.clone();
            if event.details.contains_key("metadata") {
                // All notes are told, also those that stay.
                new.retain(|what, _| !what.starts_with(NOTE));
            }
            for what in removed(event) {
                new.remove(what);
            }
            new.extend(told);
            let differences = between(Some(&old), &new);
            (Some(new), differences)
        }
    }
}

/// What a change tells if nothing is known about what was stored before.
fn told_alone(event: &AuditEvent, told: &Values) -> Vec<Difference> {
    let gone = removed(event).map(|what| Difference {
        what: what.to_owned(),
        old: Old::Unknown,
        new: None,
    });
    between(None, told).into_iter().chain(gone).collect()
}

/// What a change tells as null, or as metadata without notes: it is not set any more.
fn removed(event: &AuditEvent) -> impl Iterator<Item = &str> {
    let details = event.details.iter();
    let gone = details.filter(|(name, value)| match to_json(value) {
        Value::Null => true,
        Value::Object(notes) => *name == "metadata" && notes.is_empty(),
        _ => false,
    });
    gone.map(|(name, _)| label(name))
}

fn between(old: Option<&Values>, new: &Values) -> Vec<Difference> {
    let gone = old.into_iter().flat_map(Values::keys);
    let names: std::collections::BTreeSet<_> = gone.chain(new.keys()).collect();
    let difference = |what: &String| {
        let before = old.map_or(Old::Unknown, |old| Old::Known(old.get(what).cloned()));
        let after = new.get(what).cloned();
        (before != Old::Known(after.clone())).then(|| Difference {
            what: what.clone(),
            old: before,
            new: after,
        })
    };
    names.into_iter().filter_map(difference).collect()
}

/// What the details of an event tell, as text. What is null, false or empty is left out, as if it were not set.
fn values(event: &AuditEvent) -> Values {
    let mut values = Values::new();
    for (name, value) in &event.details {
        match (name.as_str(), to_json(value)) {
            ("limits", Value::Array(limits)) => {
                for limit in limits {
                    let (name, text) = limit_text(&limit);
                    values.insert(name, text);
                }
            }
            ("metadata", Value::Object(notes)) => {
                for (note, value) in notes {
                    values.insert(format!("{NOTE}{note}"), text(&value));
                }
            }
            (_, Value::Null) => {}
            ("cascade", Value::Bool(false)) if event.action == AuditAction::EntityCreated => {}
            (_, value) => {
                values.insert(label(name).to_owned(), text(&value));
            }
        }
    }
    values
}

fn label(name: &str) -> &str {
    match name {
        "on_unavailable" => "while unavailable",
        "parent_id" => "parent",
        "temporary_limits" => "temporary",
        other => other,
    }
}

/// The name of a limit, and the limit as the command writes it.
fn limit_text(limit: &Value) -> (String, String) {
    match (Limit::deserialize(limit), limit) {
        (Ok(limit), _) => {
            let text = limit.to_string();
            let name = limit.name().to_string();
            let rate = text.strip_prefix(&format!("{name}:")).unwrap_or(&text);
            (name, rate.to_owned())
        }
        (Err(_), Value::String(name)) => (name.clone(), "set".to_owned()),
        (Err(_), other) => {
            let name = other.get("name").and_then(Value::as_str).unwrap_or("limit");
            (name.to_owned(), text(other))
        }
    }
}

/// A value in a line. The parts of an object are stored without order, so they are sorted.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(parts) => {
            if let Ok(limit) = Limit::deserialize(value) {
                return limit.to_string();
            }
            let part =
                |(name, value): (&String, &Value)| format!("{} {}", name.replace('_', " "), text(value));
            let mut parts: Vec<_> = parts.iter().map(part).collect();
            parts.sort();
            parts.join(", ")
        }
        Value::Null | Value::Number(_) => value.to_string(),
    }
}

impl Difference {
    /// In a line, such as `rpm 100/min → 200/min`.
    pub(crate) fn text(&self) -> String {
        let none = || "none".to_owned();
        let new = self.new.clone().unwrap_or_else(none);
        match &self.old {
            Old::Unknown => format!("{} {new}", self.what),
            Old::Known(old) => format!("{} {} → {new}", self.what, old.clone().unwrap_or_else(none)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use zae_limiter::money::Prices;
    use zae_limiter::{
        ConfigChange, ConfigLevel, EntityChange, Mode, NewEntity, OnUnavailable, PageRequest, RateLimiter,
        Repository, Timestamp,
    };

    use super::*;

    async fn repository() -> Repository {
        RateLimiter::embedded().build_repository().await.unwrap()
    }

    /// The changes to a subject in lines, newest first.
    async fn lines(repository: &Repository, subject: &str, shown: usize) -> Vec<String> {
        let (subject, page) = (subject.parse().unwrap(), PageRequest::default());
        let events = repository.list_audit_events(&subject, &page).await.unwrap().items;
        let found = differences(&events, shown);
        let texts = |found: &Vec<Difference>| {
            let texts: Vec<_> = found.iter().map(Difference::text).collect();
            texts.join("; ")
        };
        found.iter().map(texts).collect()
    }

    #[tokio::test]
    async fn limits_are_compared_with_those_of_the_event_before() {
        let repository = repository().await;
        let level = ConfigLevel::Entity("ada".parse().unwrap(), "gpt-4".parse().unwrap());
        let rpm = |capacity| Limit::per_minute("rpm", capacity).unwrap();
        let tpm = Limit::per_minute("tpm", 1_000).unwrap();
        let first = ConfigChange::new().limits([rpm(100), tpm.clone()]);
        repository.set_config(&level, first).await.unwrap();
        // Another place of the same subject is not compared with.
        repository.set_limits("ada", "gpt-5", [rpm(7)]).await.unwrap();
        let second = ConfigChange::new().limits([rpm(200), tpm]);
        let second = second.on_unavailable(OnUnavailable::Block);
        repository.set_config(&level, second).await.unwrap();
        repository.delete_config(&level).await.unwrap();
        let expected = [
            "rpm 200/min → none; tpm 1000/min → none; while unavailable block → none",
            "rpm 100/min → 200/min; while unavailable none → block",
            "rpm 7/min",
            "rpm 100/min; tpm 1000/min",
        ];
        assert_eq!(lines(&repository, "ada", 9).await, expected);
        assert_eq!(
            lines(&repository, "ada", 2).await,
            expected[..2],
            "the rest only tells"
        );
    }

    #[tokio::test]
    async fn all_kinds_of_limits_modes_and_prices_are_compared_as_the_command_writes_them() {
        let repository = repository().await;
        let level = ConfigLevel::Resource("gpt-4".parse().unwrap());
        let quota = "usd:$0.0005 per month in Europe/Berlin alert at 50% 80%";
        let limits = |permits: &str| [quota, permits].map(|text| text.parse::<Limit>().unwrap());
        let first = ConfigChange::new().limits(limits("parallel:8 at once for 10min"));
        repository.set_config(&level, first).await.unwrap();
        let prices = Prices::new("$3".parse().unwrap(), "$15".parse().unwrap());
        let second = ConfigChange::new().prices(prices).mode(Mode::Observe);
        repository.set_config(&level, second).await.unwrap();
        let until = Timestamp::parse("2999-12-01T00:00:00Z").unwrap();
        let third = ConfigChange::new().limits(limits("parallel:9 at once for 10min"));
        repository.set_config(&level, third.until(until)).await.unwrap();
        assert_eq!(
            lines(&repository, "$RESOURCE:gpt-4", 9).await,
            [
                "temporary none → limits parallel:9 at once for 10min, usd:$0.0005 per month in Europe/Berlin alert at 50% 80%, \
                 until 2999-12-01T00:00:00Z",
                "mode none → observe; prices none → input $3.00, money limit usd, output $15.00, token limits tpm",
                "parallel 8 at once for 10min; usd $0.0005 per month in Europe/Berlin alert at 50% 80%",
            ]
        );
    }

    #[tokio::test]
    async fn entities_show_what_was_changed_about_them() {
        let repository = repository().await;
        repository.create_entity(NewEntity::new("team")).await.unwrap();
        let entity = NewEntity::new("ada").name("Ada").metadata([("tier", "gold")]);
        repository.create_entity(entity).await.unwrap();
        let change = EntityChange::new().name("Ada L.").parent("team").cascade(true);
        repository.update_entity("ada", change).await.unwrap();
        repository.delete_entity("ada").await.unwrap();
        let lines = lines(&repository, "ada", 9).await;
        assert_eq!(
            lines[1..],
            [
                "cascade none → yes; name Ada → Ada L.; parent none → team",
                "metadata tier gold; name Ada"
            ]
        );
        assert!(lines[0].contains("name Ada L. → none"), "{lines:?}");
    }
    #[tokio::test]
    async fn a_parent_that_is_removed_is_shown_and_does_not_stay() {
        let repository = repository().await;
        for id in ["team", "club"] {
            repository.create_entity(NewEntity::new(id)).await.unwrap();
        }
        let entity = NewEntity::new("ada").name("Ada").parent("team");
        repository.create_entity(entity).await.unwrap();
        for change in [
            EntityChange::new().without_parent(),
            EntityChange::new().parent("club"),
        ] {
            repository.update_entity("ada", change).await.unwrap();
        }
        assert_eq!(
            lines(&repository, "ada", 9).await,
            [
                "parent none → club",
                "parent team → none",
                "name Ada; parent team"
            ]
        );
    }

    #[tokio::test]
    async fn a_parent_that_is_removed_is_shown_without_an_earlier_event() {
        let repository = repository().await;
        repository.create_entity(NewEntity::new("team")).await.unwrap();
        let entity = NewEntity::new("ada").parent("team");
        repository.create_entity(entity).await.unwrap();
        let change = EntityChange::new().name("Ada").without_parent();
        repository.update_entity("ada", change).await.unwrap();
        let (subject, page) = ("ada".parse().unwrap(), PageRequest::default());
        let events = repository.list_audit_events(&subject, &page).await.unwrap().items;
        let found = differences(&events[..1], 1);
        let texts: Vec<_> = found[0].iter().map(Difference::text).collect();
        assert_eq!(texts, ["name Ada", "parent none"]);
    }

    #[tokio::test]
    async fn only_notes_that_changed_are_shown_with_those_that_were_removed() {
        let repository = repository().await;
        let notes = [("tier", "gold"), ("region", "eu"), ("owner", "bob")];
        let entity = NewEntity::new("ada").name("Ada").metadata(notes);
        repository.create_entity(entity).await.unwrap();
        for notes in [vec![("tier", "gold"), ("region", "us")], vec![]] {
            let change = EntityChange::new().replace_metadata(notes);
            repository.update_entity("ada", change).await.unwrap();
        }
        let lines = lines(&repository, "ada", 9).await;
        assert_eq!(
            lines[..2],
            [
                "metadata region us → none; metadata tier gold → none",
                "metadata owner bob → none; metadata region eu → us",
            ]
        );
    }

    #[tokio::test]
    async fn what_is_set_after_a_deletion_is_compared_with_nothing() {
        let repository = repository().await;
        let rpm = |capacity| Limit::per_minute("rpm", capacity).unwrap();
        repository.create_entity(NewEntity::new("ada")).await.unwrap();
        repository.set_limits("ada", "gpt-4", [rpm(100)]).await.unwrap();
        repository.delete_entity("ada").await.unwrap();
        repository.create_entity(NewEntity::new("ada")).await.unwrap();
        repository.set_limits("ada", "gpt-4", [rpm(200)]).await.unwrap();
        let lines = lines(&repository, "ada", 9).await;
        assert_eq!(lines[0], "rpm none → 200/min", "{lines:?}");
    }

    #[tokio::test]
    async fn a_deletion_without_an_earlier_event_names_no_old_values() {
        let repository = repository().await;
        let rpm = Limit::per_minute("rpm", 100).unwrap();
        repository.set_limits("ada", "gpt-4", [rpm]).await.unwrap();
        repository.delete_entity("ada").await.unwrap();
        assert_eq!(lines(&repository, "ada", 9).await, ["", "rpm 100/min"]);
    }
}
