//! The etag of a bucket: other processes, and other versions, must come to the same one.

use std::collections::BTreeSet;

use crate::common::{config, entity, entity_id, limit};
use proptest::prelude::*;
use zae_limiter_schema::bucket::{BucketConfig, Etag, Fingerprint, Incarnation, TtlRule};
use zae_limiter_schema::{EntityId, Limit, LimitSet};

fn limits(texts: &[&str]) -> LimitSet {
    LimitSet::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
}

fn fingerprint(texts: &[&str], parent: Option<&EntityId>, cascade: bool) -> String {
    Fingerprint::of(&limits(texts), parent, cascade).to_string()
}

/// The first 64 bits of the SHA-256 of one line per limit (`l name capacity burst amount seconds`), the parent
/// (`p id`) and the flag (`c 0` or `c 1`), in the digits of URL-safe base 64, most significant first. Computed with
/// another program; a change of these strings makes every live bucket look newly configured.
#[test]
fn fingerprints_are_these_strings_in_every_version() {
    let org = entity("org-1");
    let two = ["rpm:100", "tpm:10000:15000"];
    assert_eq!(fingerprint(&["rpm:100"], None, false), "DzXqVK809nF");
    assert_eq!(fingerprint(&["rpm:100"], None, true), "FIFsqYtzMTh");
    assert_eq!(fingerprint(&two, None, false), "LG_Pow7C389");
    assert_eq!(fingerprint(&two, Some(&org), false), "PYi9OM5D4kl");
    assert_eq!(fingerprint(&two, Some(&org), true), "F9Nx0Aze7Lg");
    assert_eq!(fingerprint(&[], None, false), "DSaVAIwQqOY");
}

#[test]
fn every_ingredient_counts() {
    let (org, other) = (entity("org-1"), entity("org-2"));
    let base = "rpm:100/min:200@50";
    let variants = [
        fingerprint(&[base], Some(&org), false),
        fingerprint(&["rps:100/min:200@50"], Some(&org), false),
        fingerprint(&["rpm:101/min:200@50"], Some(&org), false),
        fingerprint(&["rpm:100/61s:200@50"], Some(&org), false),
        fingerprint(&["rpm:100/min:201@50"], Some(&org), false),
        fingerprint(&["rpm:100/min:200@51"], Some(&org), false),
        fingerprint(&[base, "tpm:1"], Some(&org), false),
        fingerprint(&[], Some(&org), false),
        fingerprint(&[base], Some(&other), false),
        fingerprint(&[base], None, false),
        fingerprint(&[base], Some(&org), true),
    ];
    assert_eq!(variants.iter().collect::<BTreeSet<_>>().len(), variants.len());
}

#[test]
fn an_etag_is_fingerprint_dot_incarnation() {
    let config = BucketConfig::new(limits(&["rpm:100"]), None, false, TtlRule::Never);
    let drawn = Incarnation::from_random(0);
    let etag = config.etag(&drawn.to_string());
    assert_eq!(etag.as_str(), "DzXqVK809nF.AAAAAA");
    assert_eq!(etag.incarnation(), "AAAAAA");
    assert_eq!(etag.to_string(), etag.as_str());
    assert_eq!(Incarnation::from_random(u64::MAX).to_string(), "______");
    assert_eq!(Etag::from_stored("of another version").incarnation(), "");
    assert_eq!(
        config
            .clone()
            .with_ttl(TtlRule::from_multiplier(7))
            .etag("AAAAAA"),
        etag
    );
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn the_order_in_which_limits_are_given_does_not_count(
        set in proptest::collection::btree_map("[a-z]{1,8}", limit(), 0..6),
        parent in proptest::option::of(entity_id()),
        cascade in any::<bool>(),
    ) {
        let named: Vec<_> = set.values().cloned().collect::<Vec<Limit>>();
        if let (Ok(forwards), Ok(backwards)) =
            (LimitSet::new(named.clone()), LimitSet::new(named.into_iter().rev()))
        {
            let one = Fingerprint::of(&forwards, parent.as_ref(), cascade);
            prop_assert_eq!(&one, &Fingerprint::of(&backwards, parent.as_ref(), cascade));
            prop_assert_eq!(one.to_string().len(), 11);
            prop_assert!(one.to_string().bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
        }
    }

    #[test]
    fn different_configurations_have_different_fingerprints(
        one in (limit(), proptest::option::of(entity_id()), any::<bool>()),
        two in (limit(), proptest::option::of(entity_id()), any::<bool>()),
    ) {
        let of = |(limit, parent, cascade): &(Limit, Option<EntityId>, bool)| {
            Fingerprint::of(&LimitSet::new([limit.clone()]).unwrap(), parent.as_ref(), *cascade)
        };
        prop_assert_eq!(one == two, of(&one) == of(&two));
    }
}
