//! What is kept for each bucket: whole while it is used, folded into a few bytes when others were used since.

use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;

use crate::lru_map::LruMap;

/// How many are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacity {
    /// Whole ones beyond this number are folded as far as nobody uses them.
    pub(crate) whole: usize,
    /// Whole ones that nobody uses and that cannot be folded are forgotten beyond this number.
    pub(crate) unfoldable: usize,
    /// There are never more whole ones than this, used or not.
    pub(crate) max: usize,
    /// Folded ones beyond this number are forgotten.
    pub(crate) folded: usize,
}

/// What may become of one that nobody holds.
#[derive(Debug)]
pub(crate) enum Unused<F> {
    /// It stays: it has something to do.
    Busy,
    /// It stays while there is room for it: forgetting it loses something, folding it too.
    Unfoldable,
    /// There is nothing to keep.
    Blank,
    /// It can be kept like this.
    Folded(F),
}

/// Things by bucket. Those that were not used for longest are folded, and forgotten.
#[derive(Debug)]
pub(crate) struct BoundedMap<T, F> {
    whole: LruMap<BucketKey, Arc<T>>,
    folded: LruMap<BucketKey, F>,
    capacity: Capacity,
    /// The next time to look for unused ones is when there are this many: a scan is slow.
    look_at: usize,
    /// How often whole ones were used since. As many uses as there are whole ones are worth a scan too: those that were
    /// once used all at a time need not come to be.
    uses: usize,
}

impl<T, F> BoundedMap<T, F> {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            whole: LruMap::bounded(capacity.max),
            folded: LruMap::bounded(capacity.folded),
            capacity,
            look_at: capacity.whole,
            uses: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.whole.len() + self.folded.len()
    }

    /// All whole ones; the others have nothing to do.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.whole.iter().map(|(_, item)| item.clone()).collect()
    }

    /// The whole one of a bucket, which is used now.
    pub(crate) fn get(&mut self, key: &BucketKey, unused: impl Fn(&T) -> Unused<F>) -> Option<Arc<T>> {
        let item = self.whole.touch(key)?.clone();
        self.uses += 1;
        if self.whole.len() > self.capacity.whole && self.uses >= self.whole.len() {
            self.look(unused);
        }
        Some(item)
    }

    /// Adds the one of a bucket that has no whole one, made from the folded one if there is one. Nothing if all that there
    /// is room for are used.
    pub(crate) fn add(
        &mut self,
        key: &BucketKey,
        unused: impl Fn(&T) -> Unused<F>,
        make: impl FnOnce(BucketKey, Option<F>) -> T,
    ) -> Option<Arc<T>> {
        if self.whole.len() >= self.look_at || self.whole.len() >= self.capacity.max {
            self.look(unused);
        }
        if self.whole.len() >= self.capacity.max {
            return None;
        }
        // With the key that is kept already, so that no name is in memory twice.
        let (key, folded) = match self.folded.remove(key) {
            Some((key, folded)) => (key, Some(folded)),
            None => (key.clone(), None),
        };
        let item = Arc::new(make(key.clone(), folded));
        self.whole.insert(key, item.clone());
        Some(item)
    }

    /// Many at a time, so that it is rarely done.
    fn step(&self) -> usize {
        (self.whole.len().max(self.capacity.whole) / 8).max(1)
    }

    /// Looks for unused ones, and settles when to look again.
    fn look(&mut self, unused: impl Fn(&T) -> Unused<F>) {
        self.fold(unused);
        self.look_at = self.capacity.whole.max(self.whole.len() + self.step());
        self.uses = 0;
    }

    /// Folds those that were not used for longest, as far as nobody holds them.
    fn fold(&mut self, unused: impl Fn(&T) -> Unused<F>) {
        let beyond = (self.whole.len() + self.step()).saturating_sub(self.capacity.whole);
        let (mut folded, mut unfoldable) = (Vec::new(), Vec::new());
        for (key, item) in self.whole.iter() {
            if folded.len() == beyond {
                break;
            }
            if Arc::strong_count(item) > 1 {
                continue;
            }
            match unused(item) {
                Unused::Busy => {}
                Unused::Unfoldable => unfoldable.push(key.clone()),
                Unused::Blank => folded.push((key.clone(), None)),
                Unused::Folded(small) => folded.push((key.clone(), Some(small))),
            }
        }
        for (key, small) in folded {
            self.whole.remove(&key);
            if let Some(small) = small {
                self.folded.insert(key, small);
            }
        }
        let beyond = (self.whole.len() + self.step()).saturating_sub(self.capacity.unfoldable);
        for key in unfoldable.into_iter().take(beyond) {
            self.whole.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
