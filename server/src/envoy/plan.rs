//! What a request takes and gives back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use zae_limiter::error::InvalidName;
use zae_limiter::{EntityId, LimitName, Resource, Tokens};

use super::mapping::{Entries, EnvoyMapping, Rule};
use super::messages::{Entry, RateLimitDescriptor, RateLimitRequest};

/// Whose tokens of what.
pub(super) type Bucket = (EntityId, Resource);
/// Tokens by limit.
pub(super) type Amounts = BTreeMap<LimitName, u64>;

/// What a request takes and gives back, and where the status of each descriptor comes from.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Hits that are taken together: one acquire each.
    pub(super) charges: Vec<Charge>,
    /// Hits that are given back.
    pub(super) refunds: BTreeMap<Bucket, Amounts>,
    /// For each descriptor, what it counts on.
    pub(super) descriptors: Vec<Counting>,
    /// Descriptors whose values cannot be counted.
    pub(super) invalid: Vec<Invalid>,
}

/// A descriptor whose values cannot be counted.
#[derive(Debug, PartialEq)]
pub(super) struct Invalid {
    /// The mapping that matches it.
    pub(super) mapping: String,
    pub(super) reason: String,
}

/// Hits on one bucket.
#[derive(Debug, PartialEq)]
pub(super) struct Charge {
    pub(super) bucket: Bucket,
    pub(super) amounts: Amounts,
    /// The mappings that brought it here, for logs.
    pub(super) mappings: BTreeSet<String>,
    pub(super) shadow: bool,
    /// Takes nothing: it asks whether there is one token of each limit.
    pub(super) asks: bool,
    /// For how long it can be given back.
    pub(super) refundable: Option<Duration>,
    /// If the bucket has no limits, it is not limited.
    pub(super) allow_without_limits: bool,
}

/// What a descriptor counts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Counting {
    /// No mapping matches it, or it gives back.
    Nothing,
    On(Place),
    /// Its values cannot be counted. It is over the limit: callers would otherwise avoid limits with such values.
    Refused,
}

/// Where a descriptor is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The index of the charge.
    pub(super) charge: usize,
    pub(super) limit: LimitName,
}

impl Plan {
    /// Descriptors that no mapping matches are not limited.
    pub(super) fn new(mapping: &EnvoyMapping, request: &RateLimitRequest) -> Self {
        let mut plan = Self::default();
        for descriptor in &request.descriptors {
            let counting = plan.count(mapping, request, descriptor);
            plan.descriptors.push(counting);
        }
        plan
    }

    /// Whether a descriptor has values that cannot be counted.
    pub(super) fn is_refused(&self) -> bool {
        self.descriptors.contains(&Counting::Refused)
    }

    fn count(
        &mut self,
        mapping: &EnvoyMapping,
        request: &RateLimitRequest,
        descriptor: &RateLimitDescriptor,
    ) -> Counting {
        let texts: Vec<_> = descriptor.entries.iter().map(texts).collect();
        let entries = by_key(&texts);
        let Some(rule) = mapping.find(&request.domain, &entries) else {
            return Counting::Nothing;
        };
        let negative = descriptor.is_negative_hits;
        let counting = match bucket(rule, &entries) {
            Ok(bucket) => self.add(rule, bucket, hits(descriptor, request), negative),
            Err(reason) => Err(reason),
        };
        counting.unwrap_or_else(|reason| {
            let mapping = rule.name.clone();
            self.invalid.push(Invalid { mapping, reason });
            // Nothing was ever taken from such a bucket, so there is nothing to give back either.
            if rule.shadow || negative {
                Counting::Nothing
            } else {
                Counting::Refused
            }
        })
    }

    /// The reason if the hits are too many to count.
    fn add(&mut self, rule: &Rule, bucket: Bucket, hits: u64, negative: bool) -> Result<Counting, String> {
        let limit = rule.limit.clone();
        if negative {
            add_up(self.refunds.entry(bucket).or_default(), limit, hits);
            return Ok(Counting::Nothing);
        }
        let asks = hits == 0;
        let same =
            |charge: &Charge| charge.bucket == bucket && (charge.shadow, charge.asks) == (rule.shadow, asks);
        let index = self.charges.iter().position(same);
        let before = index.and_then(|index| self.charges[index].amounts.get(&limit));
        let sum = before.copied().unwrap_or_default().saturating_add(hits);
        if sum > Tokens::MAX {
            return Err(format!("{sum} hits are too many: the limit is {}", Tokens::MAX));
        }
        let index = index.unwrap_or_else(|| {
            self.charges.push(Charge {
                bucket,
                amounts: Amounts::new(),
                mappings: BTreeSet::new(),
                shadow: rule.shadow,
                asks,
                refundable: None,
                allow_without_limits: true,
            });
            self.charges.len() - 1
        });
        if let Some(charge) = self.charges.get_mut(index) {
            if asks {
                charge.amounts.insert(limit.clone(), 1);
            } else {
                add_up(&mut charge.amounts, limit.clone(), hits);
            }
            charge.mappings.insert(rule.name.clone());
            charge.refundable = charge.refundable.max(rule.refundable);
            charge.allow_without_limits &= rule.allow_without_limits;
        }
        Ok(Counting::On(Place { charge: index, limit }))
    }
}

/// The bucket that the entries name, or why they name none.
fn bucket(rule: &Rule, entries: &Entries<'_>) -> Result<Bucket, String> {
    if let Some((key, _)) = entries.iter().find(|(_, values)| values.len() > 1) {
        return Err(format!("the key {key:?} has more than one value"));
    }
    let reason = |invalid: InvalidName| invalid.to_string();
    Ok((
        EntityId::parse(rule.entity(entries)).map_err(reason)?,
        Resource::parse(rule.resource(entries)).map_err(reason)?,
    ))
}

fn add_up(amounts: &mut Amounts, limit: LimitName, hits: u64) {
    let sum = amounts.entry(limit).or_default();
    *sum = sum.saturating_add(hits);
}

/// Key and value as text. Bytes that are not UTF-8 become a character that no name can have.
fn texts(entry: &Entry) -> (Cow<'_, str>, Cow<'_, str>) {
    (
        String::from_utf8_lossy(&entry.key),
        String::from_utf8_lossy(&entry.value),
    )
}

fn by_key<'a>(texts: &'a [(Cow<'_, str>, Cow<'_, str>)]) -> Entries<'a> {
    let mut entries = Entries::new();
    for (key, value) in texts {
        entries.entry(&**key).or_default().push(&**value);
    }
    entries
}

/// A descriptor's own number, otherwise the request's, otherwise 1. Only a descriptor can say 0.
fn hits(descriptor: &RateLimitDescriptor, request: &RateLimitRequest) -> u64 {
    match descriptor.hits_addend {
        Some(own) => own,
        None => u64::from(request.hits_addend.max(1)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const FILE: &str = r#"
domains:
  d:
    - {match: {user: "*"}, entity: "{user}", resource: api, limit: rpm}
    - {match: {user: "*", kind: tokens}, entity: "{user}", resource: api, limit: tpm, refundable_seconds: 60}
    - {match: {user: "*", kind: trial}, entity: "{user}", resource: api, limit: rpm, shadow: true}
"#;

    fn descriptor(entries: &[(&str, &str)], hits: Option<u64>) -> RateLimitDescriptor {
        let entry = |(key, value): &(&str, &str)| Entry {
            key: (*key).into(),
            value: (*value).into(),
        };
        RateLimitDescriptor {
            entries: entries.iter().map(entry).collect(),
            hits_addend: hits,
            ..RateLimitDescriptor::default()
        }
    }

    fn plan(hits_addend: u32, descriptors: Vec<RateLimitDescriptor>) -> Plan {
        let request = RateLimitRequest {
            domain: "d".to_owned(),
            descriptors,
            hits_addend,
        };
        Plan::new(&FILE.parse().unwrap(), &request)
    }

    fn taken(charge: &Charge) -> Vec<(&str, u64)> {
        let amounts = charge.amounts.iter();
        amounts.map(|(limit, tokens)| (limit.as_str(), *tokens)).collect()
    }

    #[test]
    fn descriptors_of_one_bucket_are_one_charge_and_shadows_are_apart() {
        let plan = plan(
            0,
            vec![
                descriptor(&[("user", "ada")], None),
                descriptor(&[("user", "ada"), ("kind", "tokens")], Some(500)),
                descriptor(&[("user", "ada"), ("kind", "trial")], None),
                descriptor(&[("user", "bob")], None),
                descriptor(&[("path", "/")], None),
                descriptor(&[("user", "ada"), ("user", "bob")], None),
            ],
        );
        let charges: Vec<_> = plan.charges.iter().map(taken).collect();
        assert_eq!(
            charges,
            [vec![("rpm", 1), ("tpm", 500)], vec![("rpm", 1)], vec![("rpm", 1)]]
        );
        let shadows: Vec<_> = plan.charges.iter().map(|charge| charge.shadow).collect();
        assert_eq!(shadows, [false, true, false]);
        assert_eq!(plan.charges[0].refundable, Some(Duration::from_secs(60)));
        let places: Vec<_> = plan
            .descriptors
            .iter()
            .map(|counting| match counting {
                Counting::On(place) => Some((place.charge, place.limit.as_str())),
                Counting::Nothing | Counting::Refused => None,
            })
            .collect();
        let expected = [
            Some((0, "rpm")),
            Some((0, "tpm")),
            Some((1, "rpm")),
            Some((2, "rpm")),
        ];
        assert_eq!(places[..4], expected);
        assert_eq!(places[4..], [None, None]);
        assert_eq!(plan.descriptors[5], Counting::Refused, "a key is repeated");
    }

    #[test]
    fn a_descriptor_counts_its_own_hits_otherwise_those_of_the_request_otherwise_one() {
        let one = || vec![descriptor(&[("user", "ada")], None)];
        assert_eq!(taken(&plan(0, one()).charges[0]), [("rpm", 1)]);
        assert_eq!(taken(&plan(7, one()).charges[0]), [("rpm", 7)]);
        let own = vec![descriptor(&[("user", "ada")], Some(3))];
        assert_eq!(taken(&plan(7, own).charges[0]), [("rpm", 3)]);
        let none = plan(
            7,
            vec![
                descriptor(&[("user", "ada")], Some(0)),
                descriptor(&[("user", "ada"), ("kind", "tokens")], None),
            ],
        );
        let asks: Vec<_> = none.charges.iter().map(|charge| charge.asks).collect();
        assert_eq!(asks, [true, false], "what only asks is not taken with the rest");
    }

    #[test]
    fn values_that_cannot_be_counted_are_refused_and_the_rest_is_charged() {
        let mut binary = descriptor(&[("user", "x")], None);
        binary.entries[0].value = vec![0xff];
        let repeated = descriptor(&[("user", "ada"), ("user", "bob")], None);
        let too_many = descriptor(&[("user", "ada"), ("kind", "tokens")], Some(Tokens::MAX + 1));
        for bad in [binary, repeated, too_many] {
            let plan = plan(0, vec![bad, descriptor(&[("user", "ada")], None)]);
            assert_eq!(plan.descriptors[0], Counting::Refused, "{plan:?}");
            assert_eq!(plan.invalid.len(), 1, "{plan:?}");
            assert_eq!(taken(&plan.charges[0]), [("rpm", 1)], "{plan:?}");
        }
        let half = || descriptor(&[("user", "ada"), ("kind", "tokens")], Some(Tokens::MAX / 2 + 1));
        let plan = plan(0, vec![half(), half()]);
        assert_eq!(plan.descriptors[1], Counting::Refused, "the sum is too large");
        assert_eq!(taken(&plan.charges[0]), [("tpm", Tokens::MAX / 2 + 1)]);
    }

    #[test]
    fn negative_hits_are_refunds() {
        let mut negative = descriptor(&[("user", "ada"), ("kind", "tokens")], Some(80));
        negative.is_negative_hits = true;
        let plan = plan(0, vec![negative.clone(), negative]);
        assert!(plan.charges.is_empty());
        let refunds: Vec<_> = plan.refunds.values().flat_map(BTreeMap::values).collect();
        assert_eq!(refunds, [&160]);
        assert_eq!(plan.descriptors, [Counting::Nothing, Counting::Nothing]);
    }

    #[test]
    fn a_value_that_cannot_be_a_name_is_refused_unless_it_is_a_shadow_or_gives_back() {
        let mut negative = descriptor(&[("user", "a#b"), ("kind", "tokens")], Some(80));
        negative.is_negative_hits = true;
        let shadow = descriptor(&[("user", "a#b"), ("kind", "trial")], None);
        let passed = plan(0, vec![negative.clone(), shadow.clone()]);
        assert_eq!(passed.descriptors, [Counting::Nothing, Counting::Nothing]);
        assert!(!passed.is_refused());
        assert!(passed.charges.is_empty() && passed.refunds.is_empty());
        assert_eq!(passed.invalid.len(), 2);
        for hits in [None, Some(0), Some(3)] {
            let enforced = descriptor(&[("user", "a#b")], hits);
            let refused = plan(0, vec![negative.clone(), shadow.clone(), enforced]);
            assert_eq!(refused.descriptors[2], Counting::Refused);
            assert!(refused.is_refused());
        }
    }
}
