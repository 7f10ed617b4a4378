//! From a footing and a batch to the write that carries it.

use super::footing::Basis;
use super::{
    Batch, BucketKey, BucketWrite, ClientId, Demand, EtagClause, Expiry, Footing, Ground, Image, Incarnation,
    Place, RefillClause, Relaxed, Remainder, Row, RowForm, Shape, Slot, Standing,
};
use crate::{LimitName, Timestamp};

/// A settle on a full bucket also holds if the last refill was up to this part of the elapsed time ago.
const RELAXED_PARTS: [i128; 3] = [4, 16, 64];

/// At most so many old slots are removed by one write, to keep the expression short.
const MOST_PRUNED: usize = 8;

impl Footing<'_> {
    /// The write that books the batch, if it [fits](Footing::fits).
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

    fn fitting_write(
        &self,
        key: BucketKey,
        batch: &Batch,
        slot: Slot,
        incarnation: Incarnation,
    ) -> BucketWrite {
        let (shape, etag, refill, rows) = match self.basis {
            Basis::Create => {
                let etag = EtagClause::Create(self.terms.etag(&incarnation.to_string()));
                (
                    Shape::New,
                    etag,
                    RefillClause::Create(self.now),
                    self.settled_rows(batch),
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
                    new: self.terms.etag(kept),
                };
                let refill = RefillClause::Move {
                    from: image.refilled_at,
                    to: self.now,
                    relaxed: Vec::new(),
                };
                (Shape::Parameters, etag, refill, self.settled_rows(batch))
            }
            Basis::Live(image) => {
                // A bucket that matches its terms has an etag; an empty one matches no item and so writes nothing.
                let etag = EtagClause::Keep(image.etag.clone().unwrap_or_else(|| self.terms.etag("")));
                if let Some(rows) = self.touch_rows(batch) {
                    (Shape::Touch, etag, touch_refill(image, &rows), rows)
                } else {
                    let rows = self.settled_rows(batch);
                    let relaxed = self.relaxed(image, batch, &rows);
                    let refill = RefillClause::Move {
                        from: image.refilled_at,
                        to: self.now,
                        relaxed,
                    };
                    (Shape::Settle, etag, refill, rows)
                }
            }
        };
        let rewrites = matches!(shape, Shape::New | Shape::Parameters);
        BucketWrite {
            expiry: self.expiry(shape, batch),
            place: rewrites.then(|| Place {
                cascade: self.terms.cascade(),
                parent: self.terms.parent().cloned(),
            }),
            prune: self.prunable(shape, slot.client),
            decided_at: self.now,
            batch: batch.clone(),
            key,
            shape,
            slot,
            etag,
            refill,
            rows,
        }
    }

    /// Rows that leave the moment of refill alone, if the batch can do with what is on the item.
    fn touch_rows(&self, batch: &Batch) -> Option<Vec<Row>> {
        let mut rows = Vec::new();
        for (name, demand) in &batch.demands {
            let Some(ground) = self.ground(name) else { continue };
            if !demand.moves_tokens() {
                rows.extend((demand.recount != 0).then(|| row(name, RowForm::Recount, *demand)));
                continue;
            }
            let form = self.touch_form(ground, *demand)?;
            rows.push(row(name, form, *demand));
        }
        Some(rows)
    }

    fn touch_form(&self, ground: &Ground, demand: Demand) -> Option<RowForm> {
        let (
            Demand {
                credit,
                adjust,
                debit,
                ..
            },
            Ground {
                meter,
                pending,
                burst,
                ..
            },
        ) = (demand, ground);
        // Settling needs time to have passed; without it nothing has come back either.
        let may_settle = self.elapsed > 0;
        if may_settle && debit > 0 && meter.tokens + credit - adjust < debit {
            return None;
        }
        let ceiling = burst + self.terms.tolerance(*burst) - pending.bound - credit;
        if meter.tokens <= ceiling {
            let floor = (debit > 0).then_some(debit + adjust - credit);
            return Some(RowForm::Open {
                floor,
                ceiling,
                add: credit - debit - adjust,
                remainder: Remainder::Keep,
            });
        }
        // Setting a level for a moment that does not move rounds down where the refill is not whole; settling does not.
        let rounds = pending.ceiling != pending.whole;
        if may_settle && (rounds || burst - pending.bound - debit - adjust < 0) {
            return None;
        }
        let set = burst - pending.ceiling - debit - adjust;
        Some(RowForm::Full {
            floor: burst - pending.whole - credit,
            set,
            remainder: Remainder::Keep,
        })
    }

    /// Rows for every limit, with the moment of refill moved to now.
    fn settled_rows(&self, batch: &Batch) -> Vec<Row> {
        self.limits()
            .map(|(name, ground)| self.settled_row(name, ground, batch.demand(name)))
            .collect()
    }

    fn settled_row(&self, name: &LimitName, ground: &Ground, demand: Demand) -> Row {
        let (
            Demand {
                credit,
                adjust,
                debit,
                ..
            },
            Ground {
                meter,
                pending,
                burst,
                ..
            },
        ) = (demand, ground);
        let params = match self.basis {
            Basis::Live(_) => None,
            Basis::Create | Basis::Parameters(_) => {
                (ground.standing != Standing::Leaving).then_some(ground.after)
            }
        };
        let form = match ground.standing {
            Standing::Fresh | Standing::Broken => RowForm::Fresh {
                set: burst - debit - adjust,
                replaces_broken: ground.standing == Standing::Broken,
            },
            Standing::Kept | Standing::Leaving if meter.tokens + pending.ceiling + credit <= *burst => {
                let same_rate = meter.params.same_rate(&ground.after);
                RowForm::Open {
                    floor: (debit > 0).then_some(debit + adjust - pending.whole - credit),
                    ceiling: burst - pending.ceiling - credit,
                    add: pending.whole + credit - debit - adjust,
                    remainder: Remainder::Becomes(if same_rate { pending.remainder } else { 0 }),
                }
            }
            Standing::Leaving if demand.is_nothing() => RowForm::Drop {
                floor: burst - pending.whole,
            },
            Standing::Kept | Standing::Leaving => RowForm::Full {
                floor: burst - pending.whole - credit,
                set: burst - debit - adjust,
                remainder: Remainder::Becomes(0),
            },
        };
        Row {
            params,
            ..row(name, form, demand)
        }
    }

    /// If every row is full, how long ago the last refill may be for that to hold whatever happened before it.
    fn relaxed(&self, image: &Image, batch: &Batch, rows: &[Row]) -> Vec<Relaxed> {
        let full = |row: &Row| matches!(row.form, RowForm::Full { .. } | RowForm::Drop { .. });
        if !rows.iter().all(full) {
            return Vec::new();
        }
        let parts = RELAXED_PARTS
            .into_iter()
            .map(|part| self.elapsed / part)
            .filter(|since| *since > 0);
        let relaxed = parts.map(|since| Relaxed {
            refilled_by: Timestamp::from_millis(self.now.millis() - i64::try_from(since).unwrap_or(i64::MAX)),
            floors: self
                .limits()
                .map(|(name, ground)| {
                    let params = ground.meter.params;
                    let back = since * params.amount() / params.period();
                    (name.clone(), ground.burst - back - batch.demand(name).credit)
                })
                .collect(),
        });
        relaxed
            .filter(|relaxed| relaxed.refilled_by > image.refilled_at)
            .collect()
    }

    fn expiry(&self, shape: Shape, batch: &Batch) -> Expiry {
        let seen = match self.basis {
            Basis::Create => None,
            Basis::Live(image) | Basis::Parameters(image) => image.expires_at,
        };
        let now = self.now.seconds();
        match (self.life(batch), seen) {
            (None, None) => Expiry::Leave,
            (None, Some(_)) => Expiry::Removed,
            // Never shorter than it is: what others have taken since is not in the image.
            (Some(life), Some(expires_at))
                if expires_at - now
                    >= if shape == Shape::Touch {
                        life - life / 2
                    } else {
                        life
                    } =>
            {
                Expiry::Beyond(now + life / 2 - 1)
            }
            (Some(life), _) => Expiry::Becomes(now.saturating_add(life)),
        }
    }

    /// Slots that no living write can need any more.
    fn prunable(&self, shape: Shape, own: ClientId) -> Vec<(ClientId, i128)> {
        let (Basis::Live(image) | Basis::Parameters(image)) = self.basis else {
            return Vec::new();
        };
        if shape == Shape::Touch {
            return Vec::new();
        }
        let oldest = i128::from(self.now.millis()) - Slot::PRUNED_AFTER;
        let old = image
            .slots
            .iter()
            .filter(|(client, number)| **client != own && **number < oldest);
        old.map(|(client, number)| (*client, *number))
            .take(MOST_PRUNED)
            .collect()
    }
}

fn touch_refill(image: &Image, rows: &[Row]) -> RefillClause {
    // A later refill only means that less is pending than was reckoned with; but a level that is set was computed
    // for exactly this moment.
    let sets = rows.iter().any(|row| matches!(row.form, RowForm::Full { .. }));
    if sets {
        RefillClause::Exactly(image.refilled_at)
    } else {
        RefillClause::AtLeast(image.refilled_at)
    }
}

fn row(limit: &LimitName, form: RowForm, demand: Demand) -> Row {
    Row {
        limit: limit.clone(),
        form,
        consumed: demand.consumption(),
        params: None,
    }
}
