//! How many limits may apply together.

use crate::{Error, Result};

/// The most limits that a level, a bucket or a call may have. More do not fit into the expressions of one write.
pub const MAX_LIMITS: usize = 32;

pub(crate) fn check_limit_count(field: &'static str, count: usize) -> Result<()> {
    if count <= MAX_LIMITS {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        count.to_string(),
        format!("there may be at most {MAX_LIMITS} limits together"),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use zae_limiter_schema::bucket::{
        Attr, Attributes, Batch, BucketConfig, BucketKey, Decoded, Demand, Evaluation, Incarnation, Scalar,
        Slot, SlotBefore, SlotIndex, TtlRule,
    };
    use zae_limiter_schema::{ConfigLevel, ConfigRecord, Limit, LimitSet, Timestamp};

    use super::*;
    use zae_limiter_dynamo::Update;

    /// DynamoDB's bounds of an expression: its length, and its operators and functions.
    const MOST_BYTES: usize = 4096;
    const MOST_OPERATORS: usize = 300;

    fn limits(capacity: u64) -> LimitSet {
        let limits =
            (0..MAX_LIMITS).map(|number| Limit::per_minute(format!("limit-{number}"), capacity).unwrap());
        LimitSet::new(limits).unwrap()
    }

    /// Comparisons, sums, connectives and functions.
    fn operators(expression: &str) -> usize {
        let operators = [
            "=", "<>", "<", "<=", ">", ">=", "+", "-", "AND", "OR", "NOT", "BETWEEN", "IN",
        ];
        let words = expression.split_whitespace();
        let functions = words
            .clone()
            .map(|word| word.matches("attribute_").count())
            .sum::<usize>();
        let others = ["if_not_exists(", "begins_with(", "contains(", "size("];
        functions
            + others
                .iter()
                .map(|name| expression.matches(name).count())
                .sum::<usize>()
            + words
                .filter(|word| operators.contains(&word.trim_matches(['(', ')'])))
                .count()
    }

    fn assert_fits(what: &str, expression: &str) {
        assert!(
            expression.len() <= MOST_BYTES,
            "{what}: {} bytes",
            expression.len()
        );
        assert!(
            operators(expression) <= MOST_OPERATORS,
            "{what}: {} operators",
            operators(expression)
        );
    }

    #[test]
    fn the_writes_of_a_bucket_with_the_most_limits_fit_into_expressions() {
        let now = Timestamp::from_seconds(1_700_000_000);
        let (old, new) = (limits(100), limits(200));
        let terms =
            |limits: &LimitSet| BucketConfig::new(limits.clone(), None, false, TtlRule::from_multiplier(7));
        let (before, after) = (terms(&old), terms(&new));
        let batch = |debit: i128| {
            let mut batch = Batch {
                acquires: 1,
                ..Batch::default()
            };
            for name in old.names() {
                batch.add(
                    name,
                    Demand {
                        debit,
                        ..Demand::default()
                    },
                );
            }
            batch
        };
        let key = || BucketKey {
            entity: "user-1".parse().unwrap(),
            resource: "gpt-4".parse().unwrap(),
        };
        let slot = |before: SlotBefore| Slot {
            index: SlotIndex::new(1),
            before,
            number: i128::from(now.millis()),
        };
        let incarnation = || Incarnation::from_random(1);
        // A bucket that is full again by then, one that is not, and calls that can or cannot do without the refill.
        for (first, second) in [
            (1_000, 1_000),
            (90_000, 1_000),
            (90_000, 15_000),
            (99_000, 12_000),
        ] {
            let create = Evaluation::create(&before, now)
                .write(key(), &batch(first), slot(SlotBefore::Empty), incarnation())
                .unwrap();
            let mut item = Attributes::default().apply(&create.statement()).unwrap();
            // As many slots of an earlier release as one write removes.
            for number in 0..16 {
                let old = Scalar::Number(i128::from(now.millis()) - 3_600_000);
                item.insert(Attr::parse(&format!("o_aa{number:02}")), old);
            }
            let Ok(Decoded::Bucket(image)) = item.decode() else {
                panic!("no bucket: {item:?}")
            };
            let later = now.plus_millis(7_001);
            let own = || slot(SlotBefore::Own(i128::from(now.millis())));
            let live = Evaluation::live(&image, &before, later)
                .write(key(), &batch(second), own(), incarnation())
                .unwrap();
            let changed = Evaluation::parameters(&image, &after, later)
                .write(key(), &batch(second), own(), incarnation())
                .unwrap();
            for (what, write) in [("create", create), ("live", live), ("parameters", changed)] {
                let parts = Update::from(&write).into_parts();
                let condition = parts.condition.unwrap_or_default();
                assert_fits(&format!("the update of {what}"), &parts.update);
                assert_fits(&format!("the condition of {what}"), &condition);
            }
        }
    }

    #[test]
    fn the_write_of_a_level_with_the_most_limits_fits_into_expressions() {
        let level = ConfigLevel::System;
        let before = ConfigRecord::new(level.clone(), limits(100)).to_item();
        let record = ConfigRecord::new(level, limits(200));
        let parts = crate::admin::config_write(&record, Some(&before), true).into_parts();
        assert_fits("the update", &parts.update);
        assert_fits("the condition", parts.condition.as_deref().unwrap_or_default());
    }
}
