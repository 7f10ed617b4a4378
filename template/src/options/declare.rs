//! The macro that turns the list of options into a builder, the checked options and their description.
//!
//! [`super::fields`] declares each option once: its kind, its type, its default and its rule.

/// What people write.
macro_rules! raw {
    (flag, $type:ty) => { bool };
    (number, $type:ty) => { i64 };
    (maybe_number, $type:ty) => { Option<i64> };
    (choice, $type:ty) => { String };
    (maybe_text, $type:ty) => { Option<String> };
    (windows, $type:ty) => { $crate::options::Words };
    (list, $type:ty) => { $crate::options::Words };
    (tags, $type:ty) => { std::collections::BTreeMap<String, String> };
}

/// What it becomes once it is checked.
macro_rules! settled {
    (maybe_number, $type:ty) => { Option<$type> };
    (maybe_text, $type:ty) => { Option<$type> };
    (list, $type:ty) => { Vec<$type> };
    ($kind:ident, $type:ty) => { $type };
}

macro_rules! setter {
    (flag, $($rest:tt)+) => { setter!(@ $($rest)+, bool, value => value); };
    (number, $($rest:tt)+) => { setter!(@ $($rest)+, i64, value => value); };
    (maybe_number, $($rest:tt)+) => { setter!(@ $($rest)+, i64, value => Some(value)); };
    (choice, $($rest:tt)+) => { setter!(@ $($rest)+, impl Into<String>, value => value.into()); };
    (maybe_text, $($rest:tt)+) => { setter!(@ $($rest)+, impl Into<String>, value => Some(value.into())); };
    (windows, $($rest:tt)+) => { setter!(@ $($rest)+, impl Into<$crate::options::Words>, value => value.into()); };
    (list, $($rest:tt)+) => { setter!(@ $($rest)+, impl Into<$crate::options::Words>, value => value.into()); };
    (tags, $($rest:tt)+) => {
        setter!(@ $($rest)+, std::collections::BTreeMap<String, String>, value => value);
    };
    (@ $(#[doc = $doc:literal])+ $field:ident, $input:ty, $value:ident => $raw:expr) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $field(mut self, $value: $input) -> Self {
            self.$field = $raw;
            self
        }
    };
}

macro_rules! getter {
    (windows, $($rest:tt)+) => { getter!(@ $($rest)+, &[zae_limiter_schema::WindowKind], value => value); };
    (tags, $($rest:tt)+) => {
        getter!(@ $($rest)+, &std::collections::BTreeMap<String, String>, value => value);
    };
    (list, $(#[doc = $doc:literal])+ $field:ident, $type:ty) => {
        getter!(@ $(#[doc = $doc])+ $field, $type, &[$type], value => value);
    };
    (maybe_text, $(#[doc = $doc:literal])+ $field:ident, $type:ty) => {
        getter!(@ $(#[doc = $doc])+ $field, $type, Option<&$type>, value => value.as_ref());
    };
    (maybe_number, $(#[doc = $doc:literal])+ $field:ident, $type:ty) => {
        getter!(@ $(#[doc = $doc])+ $field, $type, Option<$type>, value => *value);
    };
    ($kind:ident, $(#[doc = $doc:literal])+ $field:ident, $type:ty) => {
        getter!(@ $(#[doc = $doc])+ $field, $type, $type, value => *value);
    };
    (@ $(#[doc = $doc:literal])+ $field:ident, $type:ty, $output:ty, $value:ident => $read:expr) => {
        $(#[doc = $doc])+
        pub fn $field(&self) -> $output {
            let $value = &self.settings.$field;
            $read
        }
    };
}

macro_rules! options {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $kind:ident $type:ty, $default:expr, $rule:expr;
    )+) => {
        /// Options that are not checked yet. An option that is not set has its default.
        ///
        /// An options file has the same form: YAML or JSON with these names.
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct StackOptionsBuilder {
            $($field: raw!($kind, $type),)+
        }

        impl Default for StackOptionsBuilder {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl StackOptionsBuilder {
            $(setter!($kind, $(#[doc = $doc])+ $field);)+

            pub(super) fn settle(&self) -> Result<Settings, Vec<Mistake>> {
                let mut mistakes = Vec::new();
                $(
                    let $field = match $rule.check(&self.$field) {
                        Ok(value) => Some(value),
                        Err(rule) => {
                            mistakes.push(Mistake::new(stringify!($field), self.$field.given(), rule));
                            None
                        }
                    };
                )+
                if let ($(Some($field),)+) = ($($field,)+) { Ok(Settings { $($field,)+ }) } else { Err(mistakes) }
            }
        }

        /// The values of all options, checked.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
        pub(super) struct Settings {
            $($field: settled!($kind, $type),)+
        }

        impl StackOptions {
            $(getter!($kind, $(#[doc = $doc])+ $field, $type);)+

            /// Every option with its description, default and rule, in the order of the documentation.
            pub fn fields() -> Vec<Field> {
                let defaults = StackOptionsBuilder::default();
                vec![$(Field {
                    name: stringify!($field),
                    description: concat!($($doc),+).trim(),
                    kind: stringify!($kind).into(),
                    default: serde_json::json!(defaults.$field),
                    accepts: accepts::<raw!($kind, $type), settled!($kind, $type)>(&$rule),
                }),+]
            }
        }
    };
}
