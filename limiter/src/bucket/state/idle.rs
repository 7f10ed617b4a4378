//! A bucket that nobody uses, in a tenth of the memory of one that is used.
//!
//! What all buckets with the same limits share is a pointer; what is the bucket's own are a few numbers, most of them small.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{
    BucketConfig, ClientTag, Etag, Image, LimitImage, Params, Slot, SlotIndex, TokenBucket,
};
use zae_limiter_schema::{EntityId, LimitName, Timestamp};

use super::super::idle_bytes::{Reader, Writer};
use super::slots::Ownership;
use super::{LastSeen, QueueState, Reloaded, Sighting};

/// What a bucket's state is folded into while nobody uses it.
#[derive(Debug)]
pub(crate) struct IdleBucket {
    /// The config of the last acquire.
    config: Option<Arc<BucketConfig>>,
    pub(super) bytes: Box<[u8]>,
}

/// What the bytes say.
struct Kept {
    known: LastSeen,
    client: Option<ClientTag>,
    ownership: Ownership,
    last_sequence: i128,
    crowded_at: Option<Duration>,
    refused_at: Option<Duration>,
    wrong_at: Option<Duration>,
    just_read: bool,
    reloaded_at: Option<Duration>,
}

impl QueueState {
    /// True if forgetting it loses nothing: the bucket was never seen, and no write of ours is in doubt.
    pub(crate) fn is_blank(&self) -> bool {
        self.is_idle() && self.unresolved.is_empty() && self.knows_nothing()
    }

    /// The state in short; nothing if it must stay as it is: it has something to do, a write is in doubt, or the bucket has
    /// something that only other writers leave behind.
    pub(crate) fn folded(&self, client: ClientTag) -> Option<IdleBucket> {
        if !self.is_idle() || !self.unresolved.is_empty() || self.unresolved_overflowed {
            return None;
        }
        let mut to = Writer::default();
        match &self.known {
            LastSeen::Nothing => return None,
            LastSeen::Absent(sighting) => {
                to.flag(false);
                write_sighting(&mut to, *sighting);
            }
            LastSeen::Live(image, sighting) => {
                if !image.broken.is_empty() || !image.legacy_slots.is_empty() {
                    return None;
                }
                to.flag(true);
                write_sighting(&mut to, *sighting);
                write_image(&mut to, image, self.config.as_deref());
            }
        }
        let own = (self.client != client).then_some(self.client);
        to.optional(own, |to, client| to.number(client.number(0)));
        self.write_ownership(&mut to);
        for time in [self.crowded_at, self.refused_at, self.guess.wrong_at] {
            to.optional(time, Writer::time);
        }
        to.flag(self.guess.just_read);
        // Without it, the configuration is read once more.
        let reloaded = self.reloaded.as_ref().filter(|read| {
            self.image().is_some_and(|image| image.etag == read.etag)
                && self.config.as_ref().is_some_and(|config| *config == read.config)
        });
        to.optional(reloaded, |to, read| to.time(read.at));
        Some(IdleBucket {
            config: self.config.clone(),
            bytes: to.into_bytes(),
        })
    }

    fn write_ownership(&self, to: &mut Writer) {
        let (index, number) = match self.ownership {
            Ownership::None => (None, None),
            Ownership::Claiming(index) => (Some(index), None),
            Ownership::Owned(index, number) => (Some(index), Some(number)),
        };
        to.optional(index, write_slot);
        to.optional(number, Writer::number);
        let last = number.map(Slot::written_at);
        let last_sequence = (last != Some(self.last_sequence)).then_some(self.last_sequence);
        to.optional(last_sequence, Writer::number);
    }

    /// Takes up a new state where the folded one stopped.
    pub(crate) fn unfold(&mut self, idle: &IdleBucket) {
        let Some(kept) = Kept::read(&mut Reader(&idle.bytes), idle.config.as_deref()) else {
            // Cannot happen, and costs a read.
            return;
        };
        self.config.clone_from(&idle.config);
        self.client = kept.client.unwrap_or(self.client);
        self.ownership = kept.ownership;
        self.last_sequence = kept.last_sequence;
        self.crowded_at = kept.crowded_at;
        self.refused_at = kept.refused_at;
        self.guess.wrong_at = kept.wrong_at;
        self.guess.just_read = kept.just_read;
        self.known = kept.known;
        let read = kept.reloaded_at.zip(idle.config.clone()).zip(self.image());
        self.reloaded = read.map(|((at, config), image)| Reloaded {
            etag: image.etag.clone(),
            config,
            at,
        });
    }
}

impl Kept {
    fn read(from: &mut Reader<'_>, config: Option<&BucketConfig>) -> Option<Self> {
        let is_live = from.flag()?;
        let sighting = Sighting {
            at: from.time()?,
            proven: from.flag()?,
        };
        let known = if is_live {
            LastSeen::Live(Arc::new(read_image(from, config)?), sighting)
        } else {
            LastSeen::Absent(sighting)
        };
        let client = from.optional(Reader::small::<u128>)?.map(ClientTag::from_random);
        let (index, number) = (from.optional(read_slot)?, from.optional(Reader::number)?);
        let last = number.map(Slot::written_at);
        let last_sequence = from.optional(Reader::number)?.or(last)?;
        let ownership = match (index, number) {
            (Some(index), Some(number)) => Ownership::Owned(index, number),
            (Some(index), None) => Ownership::Claiming(index),
            (None, _) => Ownership::None,
        };
        Some(Self {
            known,
            client,
            ownership,
            last_sequence,
            crowded_at: from.optional(Reader::time)?,
            refused_at: from.optional(Reader::time)?,
            wrong_at: from.optional(Reader::time)?,
            just_read: from.flag()?,
            reloaded_at: from.optional(Reader::time)?,
        })
    }
}

fn write_sighting(to: &mut Writer, sighting: Sighting) {
    to.time(sighting.at);
    to.flag(sighting.proven);
}

fn write_slot(to: &mut Writer, index: SlotIndex) {
    let place = SlotIndex::all().take_while(|other| *other != index).count();
    to.number(i128::try_from(place).unwrap_or(0));
}

fn read_slot(from: &mut Reader<'_>) -> Option<SlotIndex> {
    from.small().map(SlotIndex::new)
}

/// Of a bucket that is as configured only the incarnation and the levels are written.
fn write_image(to: &mut Writer, image: &Image, config: Option<&BucketConfig>) {
    to.number(image.refilled_at.millis().into());
    to.number(image.events);
    to.optional(image.expires_at, |to, seconds| to.number(seconds.into()));
    to.number(i128::try_from(image.slots.len()).unwrap_or(0));
    for (index, number) in &image.slots {
        write_slot(to, *index);
        to.number(*number);
    }
    let as_configured = config.is_some_and(|config| is_as_configured(image, config));
    to.flag(as_configured);
    if as_configured {
        to.text(image.incarnation());
    } else {
        to.optional(image.etag.as_ref(), |to, etag| to.text(etag.as_str()));
        to.optional(image.parent.as_ref(), |to, parent| to.text(parent.as_str()));
        to.flag(image.cascade);
        to.number(i128::try_from(image.limits.len()).unwrap_or(0));
    }
    for (name, limit) in &image.limits {
        if !as_configured {
            to.text(name.as_str());
            let params = limit.token_bucket.params;
            let params = [
                params.capacity(),
                params.burst(),
                params.amount(),
                params.period(),
            ];
            for number in params {
                to.number(number);
            }
        }
        to.number(limit.token_bucket.tokens);
        to.number(limit.token_bucket.remainder);
        to.number(limit.consumed);
    }
}

/// True if everything but the incarnation and the levels follows from the config.
fn is_as_configured(image: &Image, config: &BucketConfig) -> bool {
    let etag = image.etag.as_ref();
    image.limits.len() == config.limits().len()
        && config.matches(image)
        && etag.is_some_and(|etag| *etag == config.etag(etag.incarnation()))
}

fn read_image(from: &mut Reader<'_>, config: Option<&BucketConfig>) -> Option<Image> {
    let mut image = Image {
        refilled_at: Timestamp::from_millis(from.small()?),
        events: from.number()?,
        expires_at: from.optional(Reader::small)?,
        slots: BTreeMap::new(),
        etag: None,
        parent: None,
        cascade: false,
        limits: BTreeMap::new(),
        broken: BTreeSet::new(),
        legacy_slots: BTreeMap::new(),
    };
    for _ in 0..from.number()? {
        image.slots.insert(read_slot(from)?, from.number()?);
    }
    if from.flag()? {
        let config = config?;
        image.etag = Some(config.etag(from.text()?));
        image.parent = config.parent().cloned();
        image.cascade = config.cascade();
        for limit in config.limits() {
            let state = read_limit(from, Params::from(limit))?;
            image.limits.insert(limit.name().clone(), state);
        }
        return Some(image);
    }
    image.etag = from.optional(Reader::text)?.map(Etag::from_stored);
    image.parent = from.optional(|from| EntityId::parse(from.text()?).ok())?;
    image.cascade = from.flag()?;
    for _ in 0..from.number()? {
        let name = LimitName::parse(from.text()?).ok()?;
        let params = Params::new(from.number()?, from.number()?, from.number()?, from.number()?)?;
        image.limits.insert(name, read_limit(from, params)?);
    }
    Some(image)
}

fn read_limit(from: &mut Reader<'_>, params: Params) -> Option<LimitImage> {
    Some(LimitImage {
        token_bucket: TokenBucket {
            params,
            tokens: from.number()?,
            remainder: from.number()?,
        },
        consumed: from.number()?,
    })
}
