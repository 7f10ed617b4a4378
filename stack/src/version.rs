//! Comparing releases.

use std::cmp::Ordering;

/// A release, ordered as in semantic versioning. Build metadata does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Release<'a> {
    numbers: [u64; 3],
    pre: Option<&'a str>,
}

impl<'a> Release<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.split('+').next()?;
        let (numbers, pre) = text
            .split_once('-')
            .map_or((text, None), |(numbers, pre)| (numbers, Some(pre)));
        let mut parts = numbers.split('.').map(str::parse);
        let numbers = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
        parts.next().is_none().then_some(Self { numbers, pre })
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.numbers
            .cmp(&other.numbers)
            .then_with(|| match (self.pre, other.pre) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(own), Some(others)) => compare_pre(own, others),
            })
    }
}

fn compare_pre(own: &str, others: &str) -> Ordering {
    let (mut own, mut others) = (own.split('.'), others.split('.'));
    loop {
        let order = match (own.next(), others.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Whether the deployed release is later than this one. Text that is not a version is never later.
pub(crate) fn is_newer(deployed: &str, own: &str) -> bool {
    let compared = Release::parse(deployed)
        .zip(Release::parse(own))
        .map(|(deployed, own)| deployed.compare(&own));
    compared == Some(Ordering::Greater)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h7_releases_are_ordered_by_number_and_not_by_text() {
        let in_order = [
            "0.9.1",
            "0.10.0-alpha",
            "0.10.0-alpha.1",
            "0.10.0-alpha.2",
            "0.10.0-alpha.10",
            "0.10.0-beta",
            "0.10.0",
            "1.0.0",
        ];
        for (at, own) in in_order.iter().enumerate() {
            for (other_at, other) in in_order.iter().enumerate() {
                assert_eq!(is_newer(other, own), other_at > at, "{other} against {own}");
            }
        }
        assert!(!is_newer("0.1.0+build2", "0.1.0"));
        assert!(!is_newer("unknown", "0.1.0"));
    }
}
