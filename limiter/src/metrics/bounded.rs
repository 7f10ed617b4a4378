//! Label values that callers choose, but not without end.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use metrics::SharedString;

/// The most resources that are recorded by name.
const MAX_RESOURCES: usize = 1_000;
/// The label of all further ones. No resource can have this name.
pub(super) const OTHER: &str = "_other";

/// The names of resources as label values, allocated once each.
#[derive(Debug, Default)]
pub(super) struct ResourceLabels(RwLock<HashMap<String, SharedString>>);

impl ResourceLabels {
    pub(super) fn of(&self, resource: &str) -> SharedString {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(label) = known.get(resource) {
            return label.clone();
        }
        if known.len() >= MAX_RESOURCES {
            return SharedString::const_str(OTHER);
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Others may have come in between.
        if known.len() >= MAX_RESOURCES && !known.contains_key(resource) {
            return SharedString::const_str(OTHER);
        }
        let new = || SharedString::from_shared(resource.into());
        known.entry(resource.to_owned()).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_beyond_the_bound_share_a_label() {
        let labels = ResourceLabels::default();
        for number in 0..MAX_RESOURCES {
            let name = format!("model-{number}");
            assert_eq!(&*labels.of(&name), name);
        }
        assert_eq!(&*labels.of("one-more"), OTHER);
        assert_eq!(&*labels.of("model-7"), "model-7");
    }
}
