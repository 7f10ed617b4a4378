//! Which entity, resource and limit a descriptor counts on.

mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use zae_limiter::{EntityId, LimitName, Resource};

use template::Template;

/// Matches every value.
const ANY: &str = "*";
/// The longest time for which hits can be given back.
const MAX_REFUNDABLE_SECONDS: u64 = 3600;

/// A mapping file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct InvalidMapping {
    /// Where in the file, such as `domains.gateway[0].entity`.
    at: String,
    problem: String,
}

/// Which entity, resource and limit the descriptors of Envoy count on, by domain. It is written as YAML.
///
/// ```
/// use zae_limiter_server::EnvoyMapping;
///
/// let mapping: EnvoyMapping = r#"
/// domains:
///   llm-gateway:
///     - match: {user: "*", model: "*"}
///       entity: "user-{user}"
///       resource: "{model}"
///       limit: rpm
/// "#.parse()?;
/// assert_eq!(mapping.len(), 1);
/// # Ok::<(), zae_limiter_server::InvalidMapping>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvoyMapping {
    domains: BTreeMap<String, Vec<Rule>>,
}

/// The values of a descriptor by key. A descriptor may have a key more than once.
pub(super) type Entries<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// One mapping of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// For logs and metrics.
    pub(super) name: String,
    /// The keys of the descriptor, each with its value or any.
    keys: BTreeMap<String, Option<String>>,
    entity: Template,
    resource: Template,
    pub(super) limit: LimitName,
    /// Refusals are counted and logged, and the request passes.
    pub(super) shadow: bool,
    /// For how long negative hits can give back what was taken.
    pub(super) refundable: Option<Duration>,
    /// A bucket without limits is not limited. Otherwise it is over the limit.
    pub(super) allow_without_limits: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    domains: BTreeMap<String, Vec<RawRule>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: Option<String>,
    #[serde(rename = "match")]
    keys: BTreeMap<String, String>,
    entity: String,
    resource: String,
    limit: String,
    #[serde(default)]
    shadow: bool,
    refundable_seconds: Option<u64>,
    #[serde(default)]
    allow_without_limits: bool,
}

impl EnvoyMapping {
    /// How many mappings there are. At least one.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.domains.values().map(Vec::len).sum()
    }

    /// The domains, by name.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.domains.keys().map(String::as_str)
    }

    /// The first mapping of the domain that matches the entries of a descriptor.
    pub(super) fn find(&self, domain: &str, entries: &Entries<'_>) -> Option<&Rule> {
        let rules = self.domains.get(domain)?;
        rules.iter().find(|rule| rule.matches(entries))
    }
}

impl Rule {
    fn parse(raw: RawRule, default_name: String) -> Result<Self, (&'static str, String)> {
        if raw.keys.is_empty() {
            return Err(("match", "at least one key is required".to_owned()));
        }
        let keys: Vec<&str> = raw.keys.keys().map(String::as_str).collect();
        let entity = Template::parse(&raw.entity, &keys).map_err(|problem| ("entity", problem))?;
        let resource = Template::parse(&raw.resource, &keys).map_err(|problem| ("resource", problem))?;
        // The text around the placeholders must be able to become a name.
        EntityId::parse(entity.render(|_| "x")).map_err(|error| ("entity", error.to_string()))?;
        Resource::parse(resource.render(|_| "x")).map_err(|error| ("resource", error.to_string()))?;
        let refundable = raw.refundable_seconds.map(|seconds| {
            if (1..=MAX_REFUNDABLE_SECONDS).contains(&seconds) {
                return Ok(Duration::from_secs(seconds));
            }
            let problem = format!("{seconds} is invalid: it must be 1 to {MAX_REFUNDABLE_SECONDS}");
            Err(("refundable_seconds", problem))
        });
        Ok(Self {
            name: raw.name.unwrap_or(default_name),
            limit: LimitName::parse(&raw.limit).map_err(|error| ("limit", error.to_string()))?,
            keys: raw
                .keys
                .into_iter()
                .map(|(key, value)| (key, (value != ANY).then_some(value)))
                .collect(),
            entity,
            resource,
            shadow: raw.shadow,
            refundable: refundable.transpose()?,
            allow_without_limits: raw.allow_without_limits,
        })
    }

    /// With the same keys, and for each key a value that fits.
    fn matches(&self, entries: &Entries<'_>) -> bool {
        let same = |(key, wanted): (&String, &Option<String>)| {
            let values = entries.get(key.as_str()).into_iter().flatten();
            let mut fitting = values.filter(|value| wanted.as_ref().is_none_or(|wanted| wanted == *value));
            fitting.next().is_some()
        };
        self.keys.len() == entries.len() && self.keys.iter().all(same)
    }

    /// True if it matches whatever the other mapping matches.
    fn covers(&self, other: &Self) -> bool {
        let covered = |(key, value): (&String, &Option<String>)| {
            let theirs = other.keys.get(key);
            theirs.is_some_and(|theirs| value.is_none() || value == theirs)
        };
        self.keys.len() == other.keys.len() && self.keys.iter().all(covered)
    }

    pub(super) fn entity(&self, entries: &Entries<'_>) -> String {
        self.entity.render(|key| first(entries, key))
    }

    pub(super) fn resource(&self, entries: &Entries<'_>) -> String {
        self.resource.render(|key| first(entries, key))
    }
}

fn first<'a>(entries: &Entries<'a>, key: &str) -> &'a str {
    let values = entries.get(key);
    values
        .and_then(|values| values.first())
        .copied()
        .unwrap_or_default()
}

impl FromStr for EnvoyMapping {
    type Err = InvalidMapping;

    fn from_str(text: &str) -> Result<Self, InvalidMapping> {
        let invalid = |at: &str, problem: &str| InvalidMapping {
            at: at.to_owned(),
            problem: problem.to_owned(),
        };
        let raw: RawFile =
            serde_yaml::from_str(text).map_err(|error| invalid("the mapping", &error.to_string()))?;
        let mut names = BTreeSet::new();
        let mut domains = BTreeMap::new();
        for (domain, raw_rules) in raw.domains {
            let mut rules: Vec<Rule> = vec![];
            for (index, raw_rule) in raw_rules.into_iter().enumerate() {
                let at = format!("domains.{domain}[{index}]");
                let rule = Rule::parse(raw_rule, format!("{domain}[{index}]"))
                    .map_err(|(field, problem)| invalid(&format!("{at}.{field}"), &problem))?;
                if !names.insert(rule.name.clone()) {
                    let problem = format!("{:?} is the name of another mapping", rule.name);
                    return Err(invalid(&format!("{at}.name"), &problem));
                }
                if let Some(first) = rules.iter().find(|earlier| earlier.covers(&rule)) {
                    let problem = format!("never used: {} matches the same descriptors", first.name);
                    return Err(invalid(&at, &problem));
                }
                rules.push(rule);
            }
            domains.insert(domain, rules);
        }
        if domains.values().all(Vec::is_empty) {
            return Err(invalid("domains", "at least one mapping is required"));
        }
        Ok(Self { domains })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const FILE: &str = r#"
domains:
  gateway:
    - name: admins
      match: {user: "*", role: admin}
      entity: "admin-{user}"
      resource: api
      limit: rps
    - match: {user: "*", role: "*"}
      entity: "{user}"
      resource: "api/{role}"
      limit: rps
      shadow: true
      refundable_seconds: 60
"#;

    fn entity(domain: &str, entries: &[(&str, &str)]) -> Option<String> {
        let mapping: EnvoyMapping = FILE.parse().unwrap();
        let entries = entries.iter().map(|(key, value)| (*key, vec![*value])).collect();
        Some(mapping.find(domain, &entries)?.entity(&entries))
    }

    #[test]
    fn the_first_mapping_with_the_same_keys_and_values_is_used() {
        let admin = [("role", "admin"), ("user", "ada")];
        assert_eq!(entity("gateway", &admin).unwrap(), "admin-ada");
        let guest = [("user", "ada"), ("role", "guest")];
        assert_eq!(entity("gateway", &guest).unwrap(), "ada");
        assert_eq!(entity("other", &guest), None);
        assert_eq!(entity("gateway", &guest[..1]), None, "a key is missing");
        let more = [("user", "ada"), ("role", "guest"), ("path", "/")];
        assert_eq!(entity("gateway", &more), None, "a key is not expected");
    }

    #[test]
    fn a_mapping_without_a_name_is_named_by_its_place() {
        let mapping: EnvoyMapping = FILE.parse().unwrap();
        let names: Vec<_> = mapping.domains["gateway"].iter().map(|rule| &rule.name).collect();
        assert_eq!(names, ["admins", "gateway[1]"]);
        assert_eq!(mapping.len(), 2);
    }

    #[test]
    fn errors_name_the_place_the_value_and_the_rule() {
        let rule = |text: &str| format!("domains:\n  d:\n    - {{{text}}}\n");
        for (text, problem) in [
            (
                "domains: {}".to_owned(),
                "domains: at least one mapping is required",
            ),
            ("rules: {}".to_owned(), "unknown field `rules`"),
            (
                rule("match: {}, entity: e, resource: r, limit: l"),
                "domains.d[0].match: at least one key",
            ),
            (
                rule("match: {a: '*'}, entity: '{b}', resource: r, limit: l"),
                "domains.d[0].entity: {b} is not a key",
            ),
            (
                rule("match: {a: '*'}, entity: 'e#{a}', resource: r, limit: l"),
                "domains.d[0].entity: entity id",
            ),
            (
                rule("match: {a: '*'}, entity: e, resource: 'r {a}', limit: l"),
                "domains.d[0].resource: resource",
            ),
            (
                rule("match: {a: '*'}, entity: e, resource: r, limit: 'l#'"),
                "domains.d[0].limit: limit name",
            ),
            (
                rule("match: {a: '*'}, entity: e, resource: r, limit: l, shadow: 1"),
                "shadow",
            ),
            (
                rule("match: {a: '*'}, entity: e, resource: r, limit: l, mode: x"),
                "unknown field `mode`",
            ),
            (
                rule("match: {a: '*'}, entity: e, resource: r, limit: l, refundable_seconds: 3601"),
                "domains.d[0].refundable_seconds: 3601 is invalid: it must be 1 to 3600",
            ),
            (
                rule(
                    "match: {a: '*'}, entity: e, resource: r, limit: l}\n    - {match: {a: b}, entity: e, resource: r, limit: l",
                ),
                "domains.d[1]: never used: d[0] matches the same descriptors",
            ),
            (
                rule(
                    "name: n, match: {a: '*'}, entity: e, resource: r, limit: l}\n    - {name: n, match: {b: '*'}, entity: e, resource: r, limit: l",
                ),
                "domains.d[1].name: \"n\" is the name of another mapping",
            ),
        ] {
            let error = text.parse::<EnvoyMapping>().unwrap_err().to_string();
            assert!(error.contains(problem), "{error} does not contain {problem}");
        }
    }
}
