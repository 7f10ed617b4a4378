//! Which resources have a metric of their own.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use zae_limiter_schema::Resource;

/// How many resources get a metric of their own. CloudWatch charges for each by the hour.
pub const MAX_RESOURCES: usize = 10;
/// The name that all other resources share. No resource can have it.
pub const OTHER_RESOURCES: &str = "(other)";

/// The resources that this process reports by name: the first [`MAX_RESOURCES`] that it has counted.
#[derive(Debug, Default)]
pub(crate) struct ResourceNames(Mutex<BTreeSet<String>>);

impl ResourceNames {
    /// The name under which a resource is reported.
    pub(crate) fn of(&self, resource: &Resource) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = resource.to_string();
        if known.len() < MAX_RESOURCES || known.contains(&name) {
            known.insert(name.clone());
            return name;
        }
        OTHER_RESOURCES.to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_first_resources_keep_their_names_and_all_others_share_one() {
        let names = ResourceNames::default();
        let resource = |n: usize| Resource::parse(format!("model-{n}")).unwrap();
        let reported: BTreeSet<_> = (0..1_000).map(|n| names.of(&resource(n))).collect();
        assert_eq!(reported.len(), MAX_RESOURCES + 1);
        assert_eq!(names.of(&resource(0)), "model-0");
        assert_eq!(names.of(&resource(999)), OTHER_RESOURCES);
        assert!(Resource::parse(OTHER_RESOURCES).is_err());
    }
}
