//! A snapshot update in DynamoDB's expression language.

use zae_limiter_dynamo::{Placeholders, Update};
use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::usage_attribute as usage;

use crate::{Condition, SnapshotUpdate, ThresholdMark};

impl From<&SnapshotUpdate> for Update {
    fn from(update: &SnapshotUpdate) -> Self {
        let mut built = Self::of(update.key.clone());
        for (name, value) in &update.set {
            built = built.set(name, value.clone());
        }
        for (name, value) in &update.set_if_absent {
            built = built.set_if_absent(name, value.clone());
        }
        for (name, amount) in &update.add {
            built = built.add(name, AttributeValue::N(amount.to_string()));
        }
        for (name, members) in &update.add_members {
            built = built.add(name, AttributeValue::Ss(members.clone()));
        }
        built.when(|places| condition(&update.condition, places))
    }
}

impl From<&ThresholdMark> for Update {
    fn from(mark: &ThresholdMark) -> Self {
        let mut built = Self::of(mark.key.clone());
        for (name, value) in &mark.set {
            built = built.set(name, value.clone());
        }
        built.when(|places| {
            let own = places.value(AttributeValue::S(mark.position.to_string()));
            let by = places.name(usage::SEQUENCE);
            format!("attribute_not_exists({by}) OR {by} = {own}")
        })
    }
}

fn condition(condition: &Condition, places: &mut Placeholders) -> String {
    let text = |places: &mut Placeholders, text: &str| places.value(AttributeValue::S(text.to_owned()));
    let last = places.name(usage::SEQUENCE);
    match condition {
        Condition::New => format!("attribute_not_exists({last})"),
        Condition::Follows { first, link } => {
            let (first, link) = (text(places, first.as_str()), text(places, link.as_str()));
            let counters = places.name(usage::LINK);
            format!("attribute_not_exists({last}) OR ({last} < {first} AND {counters} = {link})")
        }
        Condition::Unchanged { last: seen, gaps } => {
            let seen = text(places, seen.as_str());
            let stored = places.name(usage::GAPS);
            match gaps {
                Some(gaps) => format!("{last} = {seen} AND {stored} = {}", text(places, gaps)),
                None => format!("{last} = {seen} AND attribute_not_exists({stored})"),
            }
        }
        #[cfg(test)]
        Condition::Before(first) => {
            let first = text(places, first.as_str());
            format!("attribute_not_exists({last}) OR {last} < {first}")
        }
        #[cfg(test)]
        Condition::Always => format!("attribute_exists({last}) OR attribute_not_exists({last})"),
    }
}

#[cfg(test)]
mod tests {
    use zae_limiter_schema::keys::Key;

    use super::*;
    use crate::{Digest, Position};

    #[test]
    fn placeholders_are_numbers_whatever_a_limit_is_called() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let update = SnapshotUpdate {
            key: Key {
                pk: "p".to_owned(),
                sk: "s".to_owned(),
            },
            condition: Condition::Follows {
                first: Position::stored("x/1"),
                link: Digest::stored("ab"),
            },
            set: vec![("_sq".to_owned(), text("x/2"))],
            set_if_absent: vec![("_gp".to_owned(), text(""))],
            add: vec![("in-put.tokens".to_owned(), -3), ("total_events".to_owned(), 2)],
            add_members: vec![],
            forgotten_gaps: 0,
        };
        let parts = Update::from(&update).into_parts();
        assert_eq!(parts.update, "SET #0=:0,#1=if_not_exists(#1,:1) ADD #2 :2,#3 :3");
        assert_eq!(
            parts.condition.as_deref(),
            Some("attribute_not_exists(#0) OR (#0 < :4 AND #4 = :5)")
        );
        assert_eq!(
            parts.names.unwrap_or_default().get("#2").map(String::as_str),
            Some("in-put.tokens")
        );
    }
}
