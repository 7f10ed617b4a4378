//! The macro that turns the list of options into a builder and the settings that the builder makes.
//!
//! Each option is declared once, in [`super`]: its kind, what it is settled to, its default and its rule.

macro_rules! raw {
    (flag) => { bool };
    (number) => { i64 };
    (maybe_number) => { Option<i64> };
    (text) => { String };
    (maybe_text) => { Option<String> };
    (windows) => { $crate::options::Windows };
    (tags) => { std::collections::BTreeMap<String, String> };
}

macro_rules! setter {
    (flag, $($rest:tt)+) => { setter!(@ $($rest)+, bool, value => value); };
    (number, $($rest:tt)+) => { setter!(@ $($rest)+, i64, value => value); };
    (maybe_number, $($rest:tt)+) => { setter!(@ $($rest)+, i64, value => Some(value)); };
    (text, $($rest:tt)+) => { setter!(@ $($rest)+, impl Into<String>, value => value.into()); };
    (maybe_text, $($rest:tt)+) => { setter!(@ $($rest)+, impl Into<String>, value => Some(value.into())); };
    (windows, $($rest:tt)+) => { setter!(@ $($rest)+, impl Into<$crate::options::Windows>, value => value.into()); };
    (tags, $($rest:tt)+) => {
        setter!(@ $($rest)+, std::collections::BTreeMap<String, String>, value => value);
    };
    (@ $(#[$doc:meta])* $field:ident, $input:ty, $value:ident => $raw:expr) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $value: $input) -> Self {
            self.$field = $raw;
            self
        }
    };
}

macro_rules! options {
    ($(
        $(#[$doc:meta])*
        $field:ident: $kind:ident => $settled:ty, $default:expr, $rule:expr;
    )+) => {
        /// Options that are not checked yet. Everything that is not set has its default.
        ///
        /// This is also the form of an options file: YAML or JSON with these names.
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct StackOptionsBuilder {
            $($field: raw!($kind),)+
        }

        impl Default for StackOptionsBuilder {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl StackOptionsBuilder {
            $(setter!($kind, $(#[$doc])* $field);)+

            /// Every option's name, in the order of the documentation.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];

            pub(super) fn settle(&self) -> Result<Settings, Vec<Mistake>> {
                let mut mistakes = Vec::new();
                $(
                    let $field = match ($rule)(&self.$field) {
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

        /// What the options are settled to. Read it through [`StackOptions`].
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        #[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
        pub struct Settings {
            $($(#[$doc])* pub $field: $settled,)+
        }
    };
}
