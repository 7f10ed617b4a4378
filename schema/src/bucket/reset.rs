//! Limits of a bucket that become as if nothing were used.
//!
//! What calls took before must not come back into what is free afterwards. A rate needs nothing for that: what comes back ends
//! at its burst, as it does after any refill. The period of a quota ends a millisecond later, and so is another one than that
//! of earlier calls. Permits are revoked: the bucket becomes another incarnation without slots, like one that was deleted and
//! created again, so that no release, renewal or late response of an earlier call concerns it. That holds for all limits on
//! calls in flight of the bucket, so they are reset together.

use super::{
    Action, Attr, ConcurrencyImage, Condition, Etag, Field, Image, Incarnation, LimitImage, PermitField,
    QuotaField, QuotaImage, Scalar, SlotIndex, Statement,
};
use crate::{LimitName, Timestamp};

/// Some limits of a bucket, and the write that makes them as if nothing were used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetLimits {
    /// Which, by name.
    pub limits: Vec<LimitName>,
    /// Calls in flight lose their permits, and what they give back later only changes the count of consumption.
    pub revokes: bool,
    /// The write.
    pub statement: Statement,
}

impl ResetLimits {
    /// The reset of those limits of a bucket that are chosen; if a limit on calls in flight is among them, of all of these.
    /// The write is exact for what concurrent writes leave: it depends on the parameters of the bucket, on the period of a quota
    /// and on the epochs of permits only.
    pub fn of(
        image: &Image,
        chosen: impl Fn(&LimitName) -> bool,
        now: Timestamp,
        incarnation: Incarnation,
    ) -> Self {
        let revokes = image.permits.keys().any(&chosen);
        let mut reset = Self {
            limits: Vec::new(),
            revokes,
            statement: Statement::default(),
        };
        reset.begin(image, incarnation);
        for (name, rate) in image.limits.iter().filter(|(name, _)| chosen(name)) {
            reset.rate(name, rate);
        }
        for (name, quota) in image.quotas.iter().filter(|(name, _)| chosen(name)) {
            reset.quota(name, quota, now);
        }
        for (name, permits) in image.permits.iter().filter(|_| revokes) {
            reset.permits(name, permits);
        }
        reset.limits.sort_unstable();
        reset.limits.dedup();
        reset
    }

    fn require(&mut self, condition: Condition) {
        self.statement.conditions.push(condition);
    }

    fn set(&mut self, attr: Attr, number: i128) {
        self.statement
            .actions
            .push(Action::Set(attr, Scalar::Number(number)));
    }

    fn remove(&mut self, attr: Attr) {
        self.statement.actions.push(Action::Remove(attr));
    }

    /// The bucket has these parameters still.
    fn begin(&mut self, image: &Image, incarnation: Incarnation) {
        self.require(Condition::AtLeast(Attr::RefilledAt, 0));
        let etag = |etag: &Etag| Scalar::Text(etag.text().clone());
        self.require(match &image.etag {
            Some(seen) => Condition::Is(Attr::Etag, etag(seen)),
            None => Condition::Missing(Attr::Etag),
        });
        if let (true, Some(seen)) = (self.revokes, &image.etag) {
            let new = etag(&seen.in_incarnation(incarnation));
            self.statement.actions.push(Action::Set(Attr::Etag, new));
            SlotIndex::all().for_each(|index| self.remove(Attr::Slot(index)));
            for client in image.legacy_slots.keys() {
                self.remove(Attr::LegacySlot(*client));
            }
        }
    }

    fn rate(&mut self, name: &LimitName, rate: &LimitImage) {
        let attr = |field| Attr::Limit(name.clone(), field);
        self.limits.push(name.clone());
        self.set(attr(Field::Tokens), rate.token_bucket.params.burst());
        self.remove(attr(Field::Remainder));
    }

    /// Nothing is used of a quota whose period has ended.
    fn quota(&mut self, name: &LimitName, quota: &QuotaImage, now: Timestamp) {
        let attr = |field| Attr::Quota(name.clone(), field);
        let millis = |end: Timestamp| i128::from(end.millis());
        self.limits.push(name.clone());
        let (_, open_until) = quota.at(now);
        let Some(end) = open_until else { return };
        let period_end = attr(QuotaField::PeriodEnd);
        self.require(Condition::Is(period_end.clone(), Scalar::Number(millis(end))));
        self.set(period_end, millis(end.plus_millis(1)));
        self.set(attr(QuotaField::Used), 0);
        self.remove(attr(QuotaField::ToppedUp));
        self.remove(attr(QuotaField::ToppedUpUntil));
    }

    /// A call that takes permits changes their count, and every other change of permits takes some out of an epoch: with both as
    /// seen, no epoch is left behind.
    fn permits(&mut self, name: &LimitName, permits: &ConcurrencyImage) {
        let attr = |field| Attr::Permits(name.clone(), field);
        self.limits.push(name.clone());
        let taken = Scalar::Number(permits.consumed);
        self.require(Condition::Is(attr(PermitField::Consumed), taken));
        for (epoch, held) in &permits.epochs {
            let epoch = attr(PermitField::Epoch(*epoch));
            self.require(Condition::Is(epoch.clone(), Scalar::Number(*held)));
            self.remove(epoch);
        }
        self.set(attr(PermitField::Held), 0);
    }
}
