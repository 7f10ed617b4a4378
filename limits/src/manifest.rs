//! The limits file, parsed into the settings of each level.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use zae_limiter::money::Prices;
use zae_limiter::{ConfigLevel, EntityId, LimitSet, Mode, OnUnavailable, Resource, SystemSettings};

use crate::limit_syntax::{self, InvalidField, InvalidFields};
use crate::price_syntax;

/// The settings of a level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LevelSettings {
    /// Its limits.
    pub limits: LimitSet,
    /// Its policy while the table is unavailable.
    pub on_unavailable: Option<OnUnavailable>,
    /// Whether its limits are enforced.
    pub mode: Option<Mode>,
    /// Its prices. Only at the resource and the system level.
    pub prices: Option<Prices>,
    /// Only at the system level. Settings that are not in the file are left unchanged.
    pub system: SystemSettings,
}

/// A parsed and checked limits file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The levels in the file.
    pub levels: BTreeMap<ConfigLevel, LevelSettings>,
}

/// What every level may have.
const COMMON_FIELDS: [&str; 3] = ["limits", "on_unavailable", "mode"];

const SYSTEM_FIELDS: [&str; 4] = ["prices", "audit_retention_days", "auto_update", "strict_version"];

impl Manifest {
    /// Parses a limits file, YAML or JSON. The error has every invalid field.
    ///
    /// ```
    /// use zae_limiter_limits::Manifest;
    ///
    /// let manifest = Manifest::parse("resources: {gpt-4: {limits: {rpm: 500}}}").unwrap();
    /// assert_eq!(manifest.levels.len(), 1);
    /// let invalid = Manifest::parse("resources: {gpt-4: {limits: {rpm: x}}, o1: {limit: []}}").unwrap_err();
    /// assert_eq!(invalid.fields[0].path, "resources.gpt-4.limits.rpm");
    /// assert_eq!(invalid.fields[1].path, "resources.o1.limit");
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidFields> {
        // YAML values reject duplicate keys; JSON values would keep the last one.
        let value: serde_yaml::Value = serde_yaml::from_str(text)
            .map_err(|error| InvalidField::new("file", format!("not valid YAML: {error}")))?;
        let value = serde_json::to_value(value)
            .map_err(|error| InvalidField::new("file", format!("keys must be text: {error}")))?;
        let mut parser = Parser::default();
        if !value.is_null() {
            parser.file(&value);
        }
        if parser.invalid.is_empty() {
            Ok(parser.manifest)
        } else {
            Err(parser.invalid.into())
        }
    }
}

/// Collects levels and invalid fields, so that one mistake does not hide the next.
#[derive(Default)]
struct Parser {
    manifest: Manifest,
    invalid: Vec<InvalidField>,
}

impl Parser {
    fn reject(&mut self, at: &str, problem: impl Into<String>) {
        self.invalid.push(InvalidField::new(at, problem));
    }

    /// The value, or `None` with its problem recorded.
    fn accept<T>(&mut self, at: &str, parsed: Result<T, impl ToString>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(error) => {
                self.reject(at, error.to_string());
                None
            }
        }
    }

    fn file(&mut self, value: &Value) {
        let Some(file) = self.map("file", value, &["system", "resources", "entities"]) else {
            return;
        };
        if let Some(system) = file.get("system") {
            self.level(&ConfigLevel::System, "system", system, &SYSTEM_FIELDS);
        }
        for (name, value) in self.children("resources", file.get("resources")) {
            let at = format!("resources.{name}");
            if let Some(resource) = self.accept(&at, Resource::parse(name)) {
                self.level(&ConfigLevel::Resource(resource), &at, value, &["prices"]);
            }
        }
        for (name, value) in self.children("entities", file.get("entities")) {
            let at = format!("entities.{name}");
            if let Some(entity) = self.accept(&at, EntityId::parse(name)) {
                self.entity(&entity, &at, value);
            }
        }
    }

    fn entity(&mut self, entity: &EntityId, at: &str, value: &Value) {
        let known: Vec<&str> = COMMON_FIELDS.iter().chain(&["resources"]).copied().collect();
        let Some(fields) = self.map(at, value, &known) else {
            return;
        };
        if COMMON_FIELDS.iter().any(|field| fields.contains_key(*field)) {
            let own: Map<_, _> = fields
                .iter()
                .filter(|(field, _)| COMMON_FIELDS.contains(&field.as_str()))
                .map(|(field, value)| (field.clone(), value.clone()))
                .collect();
            self.level(&ConfigLevel::EntityDefault(entity.clone()), at, &own.into(), &[]);
        } else if !fields.contains_key("resources") {
            self.reject(at, "must have limits or resources");
        }
        for (name, value) in self.children(&format!("{at}.resources"), fields.get("resources")) {
            let at = format!("{at}.resources.{name}");
            let level = if name == ConfigLevel::DEFAULT_RESOURCE {
                Some(ConfigLevel::EntityDefault(entity.clone()))
            } else {
                let resource = self.accept(&at, Resource::parse(name));
                resource.map(|resource| ConfigLevel::Entity(entity.clone(), resource))
            };
            if let Some(level) = level {
                self.level(&level, &at, value, &[]);
            }
        }
    }

    fn level(&mut self, level: &ConfigLevel, at: &str, value: &Value, more: &[&str]) {
        let known: Vec<&str> = COMMON_FIELDS.iter().chain(more).copied().collect();
        let before = self.invalid.len();
        let Some(fields) = self.map(at, value, &known) else {
            return;
        };
        let limits = fields
            .get("limits")
            .map(|limits| limit_syntax::limits(&format!("{at}.limits"), limits));
        let limits = match limits {
            Some(Ok(limits)) => limits,
            Some(Err(invalid)) => {
                self.invalid.extend(invalid);
                LimitSet::default()
            }
            None => LimitSet::default(),
        };
        let settings = LevelSettings {
            limits,
            on_unavailable: fields.get("on_unavailable").and_then(|policy| {
                let parsed = policy.as_str().unwrap_or_default().parse();
                let rule = format!("{policy} must be allow or block");
                self.accept(&format!("{at}.on_unavailable"), parsed.map_err(|_| rule))
            }),
            mode: fields.get("mode").and_then(|mode| {
                let parsed = mode.as_str().unwrap_or_default().parse();
                let rule = format!("{mode} must be enforce, observe, bypass or disabled");
                self.accept(&format!("{at}.mode"), parsed.map_err(|_| rule))
            }),
            prices: fields
                .get("prices")
                .and_then(|prices| self.prices(&format!("{at}.prices"), prices)),
            system: if *level == ConfigLevel::System {
                self.system_settings(at, fields)
            } else {
                SystemSettings::default()
            },
        };
        if self.invalid.len() > before {
            return;
        }
        if settings == LevelSettings::default() {
            self.reject(at, "is empty; add limits or remove it");
        } else if self.manifest.levels.insert(level.clone(), settings).is_some() {
            self.reject(at, format!("{level} is in the file twice"));
        }
    }

    fn prices(&mut self, at: &str, value: &Value) -> Option<Prices> {
        match price_syntax::prices(at, value) {
            Ok(prices) => Some(prices),
            Err(invalid) => {
                self.invalid.extend(invalid);
                None
            }
        }
    }

    fn system_settings(&mut self, at: &str, fields: &Map<String, Value>) -> SystemSettings {
        let days = fields.get("audit_retention_days").and_then(|value| {
            let days = value
                .as_u64()
                .and_then(|days| u32::try_from(days).ok())
                .filter(|days| (1..=36_500).contains(days));
            let rule = format!("{value} must be 1 to 36500 days");
            self.accept(&format!("{at}.audit_retention_days"), days.ok_or(rule))
        });
        SystemSettings {
            audit_retention_days: days,
            auto_update: self.flag(at, fields, "auto_update"),
            strict_version: self.flag(at, fields, "strict_version"),
        }
    }

    fn flag(&mut self, at: &str, fields: &Map<String, Value>, field: &str) -> Option<bool> {
        let value = fields.get(field)?;
        let rule = format!("{value} must be true or false");
        self.accept(&format!("{at}.{field}"), value.as_bool().ok_or(rule))
    }

    /// The fields of a map; unknown ones are recorded.
    fn map<'a>(&mut self, at: &str, value: &'a Value, known: &[&str]) -> Option<&'a Map<String, Value>> {
        let Value::Object(map) = value else {
            self.reject(at, format!("must be a map with {}", known.join(", ")));
            return None;
        };
        let unknown = map.keys().filter(|field| !known.contains(&field.as_str()));
        self.invalid
            .extend(unknown.map(|field| limit_syntax::unknown_field(at, field, known)));
        Some(map)
    }

    fn children<'a>(&mut self, at: &str, value: Option<&'a Value>) -> Vec<(&'a String, &'a Value)> {
        match value {
            None | Some(Value::Null) => vec![],
            Some(Value::Object(map)) => map.iter().collect(),
            Some(_) => {
                self.reject(at, "must be a map from names");
                vec![]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "
system:
  on_unavailable: block
  audit_retention_days: 30
  limits: ['rpm:100', 'tpm:10000/min:15000']
resources:
  gpt-4:
    limits: {rpm: 500, tpd: {capacity: 1000000, period: day}}
entities:
  user-1:
    limits: ['rpm:1000']
    mode: observe
    resources:
      gpt-4: {limits: {rpm: 2000}, on_unavailable: allow, mode: bypass}
  user-2:
    resources:
      _default_: {limits: {rpm: 5}}
";

    #[test]
    fn each_level_of_the_file_is_a_configuration_level() {
        let manifest = Manifest::parse(WHOLE).unwrap();
        let levels: Vec<String> = manifest.levels.keys().map(ToString::to_string).collect();
        assert_eq!(
            levels,
            [
                "entity user-1 on gpt-4",
                "entity user-1",
                "entity user-2",
                "resource gpt-4",
                "system"
            ]
        );
        let system = &manifest.levels[&ConfigLevel::System];
        assert_eq!(system.system.audit_retention_days, Some(30));
        assert_eq!(system.limits.len(), 2);
        let modes: Vec<_> = manifest.levels.values().map(|level| level.mode).collect();
        let expected = [Some(Mode::Bypass), Some(Mode::Observe), None, None, None];
        assert_eq!(modes, expected);
    }

    #[test]
    fn an_empty_file_manages_nothing() {
        assert_eq!(Manifest::parse("").unwrap(), Manifest::default());
        assert_eq!(Manifest::parse("resources:\n").unwrap(), Manifest::default());
    }

    #[test]
    fn errors_name_the_path() {
        for (text, expected) in [
            ("[]", "file"),
            ("a: [", "not valid YAML"),
            ("sistem: {}", "sistem"),
            ("system: {}", "is empty"),
            (
                "system: {limit: []}",
                "system.limit: unknown field, did you mean \"limits\"?",
            ),
            ("system: {on_unavailable: maybe}", "system.on_unavailable"),
            (
                "resources: {gpt-4: {mode: off}}",
                "resources.gpt-4.mode: \"off\" must be enforce, observe, bypass or disabled",
            ),
            ("system: {audit_retention_days: 0}", "system.audit_retention_days"),
            ("system: {auto_update: 1}", "system.auto_update"),
            ("resources: {9: {limits: {rpm: 1}}}", "resources.9"),
            (
                "resources: {gpt-4: {limits: {rpm: x}}}",
                "resources.gpt-4.limits.rpm",
            ),
            (
                "resources: {gpt-4: {prices: {input: 2.5}}}",
                "resources.gpt-4.prices.input: 2.5 must be text",
            ),
            (
                "resources: {gpt-4: {prices: {inputs: $1}}}",
                "resources.gpt-4.prices.inputs: unknown field, did you mean \"input\"?",
            ),
            (
                "resources: {gpt-4: {prices: {}}}",
                "resources.gpt-4.prices.input: set at least one price",
            ),
            (
                "entities: {user-1: {resources: {gpt-4: {prices: {input: $1}}}}}",
                "entities.user-1.resources.gpt-4.prices: unknown field",
            ),
            (
                "resources: {gpt-4: {audit_retention_days: 5}}",
                "audit_retention_days",
            ),
            ("entities: {user-1: {}}", "must have limits or resources"),
            ("entities: [user-1]", "entities: must be a map from names"),
            (
                "entities: {user-1: {resources: gpt-4}}",
                "entities.user-1.resources: must be a map",
            ),
            (
                "entities: {user-1: {limits: {rpm: x}}}",
                "entities.user-1.limits.rpm",
            ),
            (
                "entities: {user-1: {limits: {rpm: 1}, resources: {_default_: {limits: {rpm: 2}}}}}",
                "twice",
            ),
            (
                "resources: {a: {limits: {rpm: 1}}, a: {limits: {rpm: 2}}}",
                "not valid YAML",
            ),
        ] {
            let invalid = Manifest::parse(text).unwrap_err();
            let message = invalid.to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn all_invalid_fields_are_reported_together() {
        let text = "
sistem: {}
system: {limits: {rpm: x, tpm: 0}, auto_update: 1}
resources: {9: {limits: {rpm: 1}}, gpt-4: {limits: {rpm: {capacity: 1, bursts: 2}}}}
entities: {user-1: {resorces: {}}}
";
        let paths: Vec<_> = Manifest::parse(text)
            .unwrap_err()
            .fields
            .into_iter()
            .map(|field| field.path)
            .collect();
        assert_eq!(
            paths,
            [
                "sistem",
                "system.limits.rpm",
                "system.limits.tpm",
                "system.auto_update",
                "resources.9",
                "resources.gpt-4.limits.rpm.bursts",
                "entities.user-1.resorces",
                "entities.user-1",
            ]
        );
    }
}
