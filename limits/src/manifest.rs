//! The limits file, parsed into the settings of each level.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use zae_limiter::{ConfigLevel, EntityId, LimitSet, OnUnavailable, Resource, SystemSettings};

use crate::limit_syntax::{self, InvalidField};

/// The settings of a level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LevelSettings {
    /// Its limits.
    pub limits: LimitSet,
    /// Its policy while the table is unavailable.
    pub on_unavailable: Option<OnUnavailable>,
    /// Only at the system level. Settings that are not in the file are left unchanged.
    pub system: SystemSettings,
}

/// A parsed and checked limits file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The levels in the file.
    pub levels: BTreeMap<ConfigLevel, LevelSettings>,
}

const SYSTEM_FIELDS: [&str; 3] = ["audit_retention_days", "auto_update", "strict_version"];

impl Manifest {
    /// Parses a limits file, YAML or JSON.
    ///
    /// ```
    /// use zae_limiter_limits::Manifest;
    ///
    /// let manifest = Manifest::parse("resources: {gpt-4: {limits: {rpm: 500}}}").unwrap();
    /// assert_eq!(manifest.levels.len(), 1);
    /// let invalid = Manifest::parse("resources: {gpt-4: {limits: {rpm: x}}}").unwrap_err();
    /// assert_eq!(invalid.path, "resources.gpt-4.limits.rpm");
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidField> {
        // YAML values reject duplicate keys; JSON values would keep the last one.
        let value: serde_yaml::Value = serde_yaml::from_str(text)
            .map_err(|error| InvalidField::new("file", format!("not valid YAML: {error}")))?;
        let value = serde_json::to_value(value)
            .map_err(|error| InvalidField::new("file", format!("keys must be text: {error}")))?;
        let mut manifest = Self::default();
        if value.is_null() {
            return Ok(manifest);
        }
        let file = map("file", &value, &["system", "resources", "entities"])?;
        if let Some(system) = file.get("system") {
            manifest.add(&ConfigLevel::System, "system", system, &SYSTEM_FIELDS)?;
        }
        for (name, value) in children("resources", file.get("resources"))? {
            let at = format!("resources.{name}");
            let resource =
                Resource::parse(name).map_err(|error| InvalidField::new(&at, error.to_string()))?;
            manifest.add(&ConfigLevel::Resource(resource), &at, value, &[])?;
        }
        for (name, value) in children("entities", file.get("entities"))? {
            manifest.add_entity(name, value)?;
        }
        Ok(manifest)
    }

    fn add_entity(&mut self, name: &str, value: &Value) -> Result<(), InvalidField> {
        let at = format!("entities.{name}");
        let entity = EntityId::parse(name).map_err(|error| InvalidField::new(&at, error.to_string()))?;
        let fields = map(&at, value, &["limits", "on_unavailable", "resources"])?;
        if fields.contains_key("limits") || fields.contains_key("on_unavailable") {
            self.add(
                &ConfigLevel::EntityDefault(entity.clone()),
                &at,
                value,
                &["resources"],
            )?;
        } else if !fields.contains_key("resources") {
            return Err(InvalidField::new(&at, "must have limits or resources"));
        }
        for (name, value) in children(&format!("{at}.resources"), fields.get("resources"))? {
            let at = format!("{at}.resources.{name}");
            let level = if name == ConfigLevel::DEFAULT_RESOURCE {
                ConfigLevel::EntityDefault(entity.clone())
            } else {
                let resource =
                    Resource::parse(name).map_err(|error| InvalidField::new(&at, error.to_string()))?;
                ConfigLevel::Entity(entity.clone(), resource)
            };
            self.add(&level, &at, value, &[])?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        level: &ConfigLevel,
        at: &str,
        value: &Value,
        more: &[&str],
    ) -> Result<(), InvalidField> {
        let known: Vec<&str> = ["limits", "on_unavailable"].iter().chain(more).copied().collect();
        let fields = map(at, value, &known)?;
        let settings = LevelSettings {
            limits: match fields.get("limits") {
                Some(limits) => limit_syntax::limits(&format!("{at}.limits"), limits)?,
                None => LimitSet::default(),
            },
            on_unavailable: fields
                .get("on_unavailable")
                .map(|policy| {
                    let text = policy.as_str().unwrap_or_default();
                    text.parse().map_err(|_| {
                        InvalidField::new(
                            &format!("{at}.on_unavailable"),
                            format!("{policy} must be allow or block"),
                        )
                    })
                })
                .transpose()?,
            system: if more == SYSTEM_FIELDS {
                system_settings(at, fields)?
            } else {
                SystemSettings::default()
            },
        };
        if settings == LevelSettings::default() {
            return Err(InvalidField::new(at, "is empty; add limits or remove it"));
        }
        if self.levels.insert(level.clone(), settings).is_some() {
            return Err(InvalidField::new(at, format!("{level} is in the file twice")));
        }
        Ok(())
    }
}

fn system_settings(at: &str, fields: &Map<String, Value>) -> Result<SystemSettings, InvalidField> {
    let flag = |field: &str| match fields.get(field) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(InvalidField::new(
            &format!("{at}.{field}"),
            format!("{other} must be true or false"),
        )),
    };
    let days = match fields.get("audit_retention_days") {
        None => None,
        Some(value) => {
            let days = value
                .as_u64()
                .and_then(|days| u32::try_from(days).ok())
                .filter(|days| (1..=36_500).contains(days));
            let at = format!("{at}.audit_retention_days");
            Some(days.ok_or_else(|| InvalidField::new(&at, format!("{value} must be 1 to 36500 days")))?)
        }
    };
    Ok(SystemSettings {
        audit_retention_days: days,
        auto_update: flag("auto_update")?,
        strict_version: flag("strict_version")?,
    })
}

fn map<'a>(at: &str, value: &'a Value, known: &[&str]) -> Result<&'a Map<String, Value>, InvalidField> {
    let Value::Object(map) = value else {
        return Err(InvalidField::new(
            at,
            format!("must be a map with {}", known.join(", ")),
        ));
    };
    match map.keys().find(|field| !known.contains(&field.as_str())) {
        Some(unknown) => Err(InvalidField::new(
            at,
            format!("unknown field {unknown:?}; the fields are {}", known.join(", ")),
        )),
        None => Ok(map),
    }
}

fn children<'a>(at: &str, value: Option<&'a Value>) -> Result<Vec<(&'a String, &'a Value)>, InvalidField> {
    match value {
        None | Some(Value::Null) => Ok(vec![]),
        Some(Value::Object(map)) => Ok(map.iter().collect()),
        Some(_) => Err(InvalidField::new(at, "must be a map from names")),
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
    resources:
      gpt-4: {limits: {rpm: 2000}, on_unavailable: allow}
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
            ("system: {limit: []}", "\"limit\""),
            ("system: {on_unavailable: maybe}", "system.on_unavailable"),
            ("system: {audit_retention_days: 0}", "system.audit_retention_days"),
            ("system: {auto_update: 1}", "system.auto_update"),
            ("resources: {9: {limits: {rpm: 1}}}", "resources.9"),
            (
                "resources: {gpt-4: {limits: {rpm: x}}}",
                "resources.gpt-4.limits.rpm",
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
            let message = format!("{}: {}", invalid.path, invalid.problem);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
