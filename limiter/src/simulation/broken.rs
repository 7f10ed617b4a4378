//! Writes as they would be without one of the protocol's rules.

use zae_limiter_schema::bucket::{
    Action, Attr, Attributes, BucketWrite, Condition, Decoded, Field, QuotaField, QuotaForm, RateRow, Row,
    RowForm, Scalar, Statement, WriteKind,
};

use super::Mutation;

/// The write as it is, or as it would be without one of the rules.
pub(super) fn broken(
    mutation: Option<Mutation>,
    write: &BucketWrite,
    before: &Attributes,
    seen: &Attributes,
) -> Statement {
    let mut statement = write.statement();
    let is_tokens = |attr: &Attr| matches!(attr, Attr::Limit(_, Field::Tokens));
    match mutation {
        Some(Mutation::TouchWithoutCeiling) if write.kind == WriteKind::Touch => {
            statement
                .conditions
                .retain(|c| !matches!(c, Condition::AtMost(attr, _) if is_tokens(attr)));
        }
        Some(Mutation::LastWriterInsteadOfSlots) => {
            let slot = Attr::Slot(write.slot.index);
            statement.conditions.retain(|condition| match condition {
                Condition::Missing(attr) | Condition::Is(attr, _) | Condition::IsNot(attr, _) => {
                    *attr != slot
                }
                Condition::AnyOf(alternatives) => !alternatives
                    .iter()
                    .flatten()
                    .any(|c| matches!(c, Condition::Is(attr, _) if *attr == slot)),
                _ => true,
            });
        }
        Some(Mutation::RefillAgainstStaleLevel) if write.kind == WriteKind::Refill => {
            statement
                .conditions
                .retain(|c| !matches!(c, Condition::AtMost(attr, _) if is_tokens(attr)));
        }
        Some(Mutation::RefillCutToStaleLevel) if write.kind == WriteKind::Refill => {
            cut_refill(&mut statement, write, seen);
        }
        Some(Mutation::CreditsWithoutClamp) => unclamp(&mut statement, write, before),
        Some(Mutation::MarginAboveBurst) => raise_full_limits(&mut statement, write, before),
        Some(Mutation::QuotaWithoutCap) => {
            let is_cap = |condition: &Condition| {
                matches!(condition, Condition::AtMost(Attr::Quota(_, QuotaField::Used), _))
            };
            statement.conditions.retain(|condition| !is_cap(condition));
        }
        Some(Mutation::PeriodUnseen) => {
            let begins =
                |row: &Row| matches!(row, Row::Quota(row) if matches!(row.form, QuotaForm::Begin { .. }));
            if write.rows.iter().any(begins) {
                statement.conditions.retain(|condition| match condition {
                    Condition::Missing(attr) | Condition::Is(attr, _) => {
                        !matches!(attr, Attr::Quota(_, QuotaField::PeriodEnd))
                    }
                    _ => true,
                });
            }
        }
        _ => {}
    }
    statement
}

/// Adds what fitted under the burst of the item that was seen, whatever the item is like now.
fn cut_refill(statement: &mut Statement, write: &BucketWrite, seen: &Attributes) {
    let Ok(Decoded::Bucket(image)) = seen.decode() else {
        return;
    };
    let elapsed = image.elapsed(write.decided_at);
    for (name, limit) in &image.limits {
        let tokens = Attr::Limit(name.clone(), Field::Tokens);
        let demand = write.batch.demand(name);
        let refill = limit.token_bucket.refilled(elapsed).tokens - limit.token_bucket.tokens;
        let added = refill + demand.credit - demand.adjust - demand.debit;
        statement.conditions.retain(|condition| {
            !matches!(condition, Condition::AtMost(attr, _) | Condition::AtLeast(attr, _) if *attr == tokens)
        });
        for action in &mut statement.actions {
            if matches!(action, Action::Set(attr, _) | Action::Add(attr, _) if *attr == tokens) {
                *action = Action::Add(tokens.clone(), added);
            }
        }
    }
}

/// Sets full limits above their burst by what they should be below it.
fn raise_full_limits(statement: &mut Statement, write: &BucketWrite, before: &Attributes) {
    let Ok(Decoded::Bucket(image)) = before.decode() else {
        return;
    };
    let full = |row: &&RateRow| matches!(row.form, RowForm::Full { .. });
    for row in write.rows.iter().filter_map(Row::rate).filter(full) {
        let Some(limit) = image.limits.get(&row.limit) else {
            continue;
        };
        let (tokens, margin) = (
            Attr::Limit(row.limit.clone(), Field::Tokens),
            limit.token_bucket.params.margin(),
        );
        for action in &mut statement.actions {
            if let Action::Set(attr, Scalar::Number(level)) = action
                && *attr == tokens
            {
                *level += 2 * margin;
            }
        }
    }
}

/// Adds credits to the level as it is, instead of setting it to the burst.
fn unclamp(statement: &mut Statement, write: &BucketWrite, before: &Attributes) {
    for row in write
        .rows
        .iter()
        .filter_map(Row::rate)
        .filter(|row| matches!(row.form, RowForm::Full { .. }))
    {
        let demand = write.batch.demand(&row.limit);
        let tokens = Attr::Limit(row.limit.clone(), Field::Tokens);
        let Some(level) = before.number(&tokens) else {
            continue;
        };
        if demand.credit == 0 {
            continue;
        }
        let after = level + demand.credit - demand.adjust - demand.debit;
        for action in &mut statement.actions {
            if matches!(action, Action::Set(attr, _) if *attr == tokens) {
                *action = Action::Set(tokens.clone(), Scalar::Number(after));
            }
        }
    }
}
