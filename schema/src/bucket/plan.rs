//! From an evaluation and a batch to the write that carries it.

use super::evaluation::Basis;
use super::{
    Batch, BucketKey, BucketWrite, EtagClause, Evaluation, Expiry, Image, Incarnation, LegacyClient,
    ParentLink, RateRow, RefillClause, Relaxed, Row, RowForm, Slot, TtlRule, WriteKind,
};
use crate::Timestamp;

/// A settle on a full bucket also holds if the last refill was up to this part of the elapsed time ago.
const RELAXED_PARTS: [i128; 3] = [4, 16, 64];

/// Beyond this many limits, those on their way out included, there is no room for such alternatives in the condition.
const MAX_RELAXED_LIMITS: usize = 32;

/// How many slots of an earlier release one write removes, to keep the expression short.
const MAX_LEGACY_REMOVED: usize = 12;

/// How many full limits a write removes that does nothing else.
const MAX_LIMITS_REMOVED: usize = 16;

impl Evaluation<'_> {
    /// The write that books the batch, if it [fits](Evaluation::fits).
    ///
    /// `incarnation` is used where the bucket is created or taken over from the Python peer.
    pub fn write(
        &self,
        key: BucketKey,
        batch: &Batch,
        slot: Slot,
        incarnation: Incarnation,
    ) -> Option<BucketWrite> {
        self.fits(batch)
            .then(|| self.fitting_write(key, batch, slot, incarnation))
    }

    /// A write that only removes limits which the configuration no longer has and which are full, a few at a time. None if
    /// there is no such limit.
    pub fn removal(&self, key: BucketKey, slot: Slot) -> Option<BucketWrite> {
        let (Basis::Live(image) | Basis::Parameters(image)) = self.basis else {
            return None;
        };
        let context = self.write_context();
        let unused = self
            .limits()
            .filter_map(|(name, limit_state)| limit_state.removal(name, &context));
        let rows: Vec<_> = unused.take(MAX_LIMITS_REMOVED).collect();
        let etag = image.etag.clone().filter(|_| !rows.is_empty())?;
        Some(BucketWrite {
            key,
            kind: WriteKind::Touch,
            decided_at: self.now,
            slot,
            etag: EtagClause::Keep(etag),
            refill: RefillClause::Exactly(image.refilled_at),
            expiry: Expiry::Leave,
            parent_link: None,
            rows,
            batch: Batch::default(),
            legacy_slots: Vec::new(),
        })
    }

    fn fitting_write(
        &self,
        key: BucketKey,
        batch: &Batch,
        slot: Slot,
        incarnation: Incarnation,
    ) -> BucketWrite {
        let (kind, etag, refill, rows) = match self.basis {
            Basis::Create => {
                let etag = EtagClause::Create(self.config.etag(&incarnation.to_string()));
                (
                    WriteKind::Create,
                    etag,
                    RefillClause::Create(self.now),
                    self.refilled_rows(batch),
                )
            }
            Basis::Parameters(image) => {
                let drawn = incarnation.to_string();
                let kept = image
                    .etag
                    .as_ref()
                    .map_or(drawn.as_str(), |etag| etag.incarnation());
                let etag = EtagClause::Replace {
                    seen: image.etag.clone(),
                    new: self.config.etag(kept),
                };
                let refill = RefillClause::Move {
                    from: image.refilled_at,
                    to: self.now,
                    relaxed: Vec::new(),
                };
                (WriteKind::Reconfigure, etag, refill, self.refilled_rows(batch))
            }
            Basis::Live(image) => {
                // A bucket that matches its config has an etag; an empty one matches no item and so writes nothing.
                let etag = EtagClause::Keep(image.etag.clone().unwrap_or_else(|| self.config.etag("")));
                let touch = self.touch_rows(batch).filter(|_| !self.sets_refill_back());
                if let Some(rows) = touch {
                    (WriteKind::Touch, etag, touch_refill(image, &rows), rows)
                } else {
                    let rows = self.refilled_rows(batch);
                    let relaxed = self.relaxed(image, batch, &rows);
                    let refill = RefillClause::Move {
                        from: image.refilled_at,
                        to: self.now,
                        relaxed,
                    };
                    (WriteKind::Refill, etag, refill, rows)
                }
            }
        };
        let rewrites = matches!(kind, WriteKind::Create | WriteKind::Reconfigure);
        BucketWrite {
            expiry: self.expiry(kind, batch),
            parent_link: rewrites.then(|| ParentLink {
                cascade: self.config.cascade(),
                parent: self.config.parent().cloned(),
            }),
            legacy_slots: self.old_legacy_slots(),
            decided_at: self.now,
            batch: batch.clone(),
            key,
            kind,
            slot,
            etag,
            refill,
            rows,
        }
    }

    /// Rows that leave the time of the last refill as it is, if the batch can do with what is on the item.
    fn touch_rows(&self, batch: &Batch) -> Option<Vec<Row>> {
        let context = self.write_context();
        let mut rows = Vec::new();
        for name in batch.demands.keys() {
            if let Some(limit_state) = self.limit_state(name) {
                rows.extend(limit_state.touch_row(name, batch, &context).ok()?);
            }
        }
        Some(rows)
    }

    /// Rows for every limit, with the time of the last refill moved to now.
    fn refilled_rows(&self, batch: &Batch) -> Vec<Row> {
        let context = self.write_context();
        let limits = self.asked(batch);
        let rows =
            limits.filter_map(|(name, limit_state, batch)| limit_state.refilled_row(name, batch, &context));
        rows.collect()
    }

    /// If every row is full, how long ago the last refill may be for that to hold whatever happened before it.
    fn relaxed(&self, image: &Image, batch: &Batch, rows: &[Row]) -> Vec<Relaxed> {
        let full = |row: &RateRow| matches!(row.form, RowForm::Full { .. } | RowForm::Drop { .. });
        if rows.len() > MAX_RELAXED_LIMITS || !rows.iter().filter_map(Row::rate).all(full) {
            return Vec::new();
        }
        let parts = RELAXED_PARTS
            .into_iter()
            .map(|part| self.elapsed / part)
            .filter(|since| *since > 0);
        let relaxed = parts.map(|since| Relaxed {
            refilled_by: Timestamp::from_millis(self.now.millis() - i64::try_from(since).unwrap_or(i64::MAX)),
            floors: self
                .asked(batch)
                .filter_map(|(name, limit_state, batch)| {
                    let rate = limit_state.rate()?;
                    let params = rate.token_bucket.params;
                    let back = since * params.amount() / params.period();
                    Some((name.clone(), rate.burst - back - batch.demand(name).credit))
                })
                .collect(),
        });
        relaxed
            .filter(|relaxed| relaxed.refilled_by > image.refilled_at)
            .collect()
    }

    fn expiry(&self, kind: WriteKind, batch: &Batch) -> Expiry {
        let seen = match self.basis {
            Basis::Create => None,
            Basis::Live(image) | Basis::Parameters(image) => image.expires_at,
        };
        let now = self.now.seconds();
        let Some(life) = self.life(batch) else {
            return seen.map_or(Expiry::Leave, |_| Expiry::Removed);
        };
        let renewed = TtlRule::renewed_seconds(life);
        // A touch leaves a life that is long enough, so that writers do not compete for the attribute. Every other write
        // renews it.
        let enough = if kind == WriteKind::Touch { life } else { renewed };
        match seen {
            // Never shorter than it is: what others have taken since is not in the image.
            Some(expires_at) if expires_at - now >= enough => Expiry::Beyond(now + life - 1),
            _ => Expiry::Becomes(now.saturating_add(renewed)),
        }
    }

    /// Slots of an earlier release that no write under way can need any more.
    fn old_legacy_slots(&self) -> Vec<(LegacyClient, i128)> {
        let (Basis::Live(image) | Basis::Parameters(image)) = self.basis else {
            return Vec::new();
        };
        let oldest = i128::from(self.now.millis()) - LegacyClient::REMOVED_AFTER;
        let old = image.legacy_slots.iter().filter(|(_, number)| **number < oldest);
        old.map(|(client, number)| (*client, *number))
            .take(MAX_LEGACY_REMOVED)
            .collect()
    }
}

fn touch_refill(image: &Image, rows: &[Row]) -> RefillClause {
    // A later refill only means that less is pending than was reckoned with; but a level that is set was computed
    // for exactly this time.
    let sets = rows
        .iter()
        .filter_map(Row::rate)
        .any(|row| matches!(row.form, RowForm::Full { .. }));
    if sets {
        RefillClause::Exactly(image.refilled_at)
    } else {
        RefillClause::AtLeast(image.refilled_at)
    }
}
