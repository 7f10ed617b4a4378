//! The race of two writers on one bucket, step by step, with exact numbers.

use crate::common::{entity, name, put_limit, resource};
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, BucketWrite, Decoded, Demand, Evaluation, Image,
    Incarnation, Params, Refused, RetryAfter, Scalar, Sharing, Slot, SlotBefore, SlotIndex, TokenBucket,
    TtlRule, WriteKind,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

const T0: i64 = 1_706_000_000_000;

/// Two processes on one bucket.
struct Race {
    config: BucketConfig,
    item: Attributes,
}

impl Race {
    /// The bucket at T0: each limit with its level in millitokens.
    fn new(levels: &[(&str, i128)]) -> Self {
        let limits: Vec<Limit> = levels.iter().map(|(text, _)| text.parse().unwrap()).collect();
        let mut item = Attributes::default();
        for (limit, (_, tokens)) in limits.iter().zip(levels) {
            let token_bucket = TokenBucket {
                tokens: *tokens,
                ..TokenBucket::full(Params::from(limit.rate().unwrap()))
            };
            put_limit(&mut item, limit.name(), token_bucket, 0);
        }
        let config = BucketConfig::new(LimitSet::new(limits).unwrap(), None, false, TtlRule::Never);
        item.insert(Attr::RefilledAt, Scalar::Number(i128::from(T0)));
        item.insert(Attr::Etag, Scalar::Text(config.etag("gen001").as_str().into()));
        Self { config, item }
    }

    /// What one process wants to write, from the item as it reads it now.
    fn plan(&self, client: &str, takes: &[(&str, i128)], now: i64) -> BucketWrite {
        let image = image(&self.item);
        Evaluation::live(&image, &self.config, at(now))
            .write(key(), &batch(takes), slot(client), Incarnation::from_random(0))
            .unwrap()
    }

    /// The server's response.
    fn send(&mut self, write: &BucketWrite) -> Result<(), Refused> {
        self.item = self.item.apply(&write.statement())?;
        Ok(())
    }

    fn stored(&self, limit: &str) -> TokenBucket {
        image(&self.item).limits[&name(limit)].token_bucket
    }
}

fn image(item: &Attributes) -> Image {
    let Decoded::Bucket(image) = item.decode().unwrap() else {
        panic!("a stub")
    };
    image
}

fn batch(takes: &[(&str, i128)]) -> Batch {
    let mut batch = Batch {
        acquires: 1,
        ..Batch::default()
    };
    for (limit, tokens) in takes {
        let debit = tokens * 1_000;
        batch.add(
            &name(limit),
            Demand {
                debit,
                ..Demand::default()
            },
        );
    }
    batch
}

fn slot(client: &str) -> Slot {
    Slot {
        // Each client has a slot of its own.
        index: SlotIndex::new(client.bytes().last().unwrap_or(0)),
        before: SlotBefore::Empty,
        number: i128::from(T0),
    }
}

fn key() -> BucketKey {
    BucketKey {
        entity: entity("user-123"),
        resource: resource("gpt-4"),
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// 90 of 100 a minute at T0; a second later A takes 3 and B takes 7, both from the image of T0. The refill of that
/// second, 1.67 tokens, must be given once: 90 + 1.67 − 3 − 7 = 81.67.
#[test]
fn two_writers_whose_tokens_are_there_do_not_even_meet() {
    let mut race = Race::new(&[("rpm:100", 90_000)]);
    let t1 = T0 + 1_000;
    let (a, b) = (
        race.plan("aaaa", &[("rpm", 3)], t1),
        race.plan("bbbb", &[("rpm", 7)], t1),
    );
    assert_eq!(
        (a.kind, b.kind),
        (WriteKind::Touch, WriteKind::Touch),
        "no refill is needed"
    );
    assert_eq!(race.send(&a), Ok(()));
    assert_eq!(race.stored("rpm").tokens, 87_000);
    assert_eq!(race.send(&b), Ok(()), "its range of levels still holds");

    let after = race.stored("rpm");
    assert_eq!((after.tokens, image(&race.item).refilled_at), (80_000, at(T0)));
    // 80,000 on the item and 1,666 ⅔ since T0: 81.6666… tokens, no rounding.
    let refilled = after.refilled(1_000);
    assert_eq!((refilled.tokens, refilled.remainder), (81_666, 40_000));
    assert_eq!(
        race.send(&b),
        Err(Refused::Condition),
        "a second copy does nothing"
    );
}

/// The same race where both need the refill, because a second limit is empty: 0 of 10,000 a minute, of which 166.67
/// have come back. A settles; B's settle is refused and planned again from the item that the refusal carries.
#[test]
fn a_stale_settle_is_refused_and_planned_again_without_a_second_refill() {
    let mut race = Race::new(&[("rpm:100", 90_000), ("tpm:10000", 0)]);
    let t1 = T0 + 1_000;
    let takes_of_b = [("rpm", 7), ("tpm", 50)];
    let a = race.plan("aaaa", &[("rpm", 3), ("tpm", 100)], t1);
    let b = race.plan("bbbb", &takes_of_b, t1);
    assert_eq!((a.kind, b.kind), (WriteKind::Refill, WriteKind::Refill));

    assert_eq!(race.send(&a), Ok(()));
    assert_eq!(image(&race.item).refilled_at, at(t1));
    // 90,000 + 1,666 ⅔ − 3,000 and 166,666 ⅔ − 100,000; the thirds are in the remainders, 40,000 of 60,000.
    let (rpm, tpm) = (race.stored("rpm"), race.stored("tpm"));
    assert_eq!((rpm.tokens, rpm.remainder), (88_666, 40_000));
    assert_eq!((tpm.tokens, tpm.remainder), (66_666, 40_000));

    let before = race.item.clone();
    assert_eq!(race.send(&b), Err(Refused::Condition), "rf is no longer T0");
    assert_eq!(race.item, before, "a refused write changes nothing");

    let again = race.plan("bbbb", &takes_of_b, t1);
    assert_eq!(
        again.kind,
        WriteKind::Touch,
        "the refill of this second is booked already"
    );
    assert_eq!(race.send(&again), Ok(()));
    let (rpm, tpm) = (race.stored("rpm"), race.stored("tpm"));
    assert_eq!((rpm.tokens, rpm.remainder), (81_666, 40_000), "81.67 tokens");
    assert_eq!((tpm.tokens, tpm.remainder), (16_666, 40_000));
    assert_eq!(image(&race.item).refilled_at, at(t1));
    let image = image(&race.item);
    assert_eq!(image.limits[&name("rpm")].consumed, 10_000, "3 and 7 are counted");
    assert_eq!(image.limits[&name("tpm")].consumed, 150_000);
    assert_eq!(image.events, 2);
}

#[test]
fn when_the_winner_left_too_little_the_loser_is_told_so_instead_of_going_below_zero() {
    let mut race = Race::new(&[("rpm:100", 2_000)]);
    let t1 = T0 + 1_000;
    let (a, b) = (
        race.plan("aaaa", &[("rpm", 3)], t1),
        race.plan("bbbb", &[("rpm", 2)], t1),
    );
    assert_eq!(race.send(&a), Ok(()));
    assert_eq!(race.stored("rpm").tokens, 666);
    assert_eq!(race.send(&b), Err(Refused::Condition));
    let image = image(&race.item);
    let evaluation = Evaluation::live(&image, &race.config, at(t1));
    assert!(!evaluation.fits(&batch(&[("rpm", 2)])));
    // 666 ⅔ are there, 1,333 ⅓ are missing: exactly 800 ms at 100 a minute.
    let outlook = evaluation.outlook(&name("rpm"), &Batch::default(), 2_000);
    let outlook = outlook.map(|outlook| (outlook.left, outlook.retry_after));
    assert_eq!(outlook, Some((666, RetryAfter::after_millis(800))));
}

#[test]
fn of_two_that_create_the_bucket_one_wins_and_the_other_takes_from_it() {
    let mut race = Race::new(&[("rpm:100", 0)]);
    race.item = Attributes::default();
    let create = |client, takes| {
        Evaluation::create(&race.config, at(T0))
            .write(
                key(),
                &batch(&[("rpm", takes)]),
                slot(client),
                Incarnation::from_random(1),
            )
            .unwrap()
    };
    let (a, b) = (create("aaaa", 3), create("bbbb", 7));
    assert_eq!((a.kind, b.kind), (WriteKind::Create, WriteKind::Create));
    assert_eq!(race.send(&a), Ok(()));
    assert_eq!(race.send(&b), Err(Refused::Condition));
    let again = race.plan("bbbb", &[("rpm", 7)], T0);
    assert_eq!(race.send(&again), Ok(()));
    assert_eq!(race.stored("rpm").tokens, 90_000);
}

/// On a full bucket that others write too, a write leaves room for the refill of the next seconds, and only there.
#[test]
fn a_full_bucket_is_left_a_margin_below_its_burst_if_others_write_it_too() {
    for (sharing, level) in [(Sharing::Alone, 59_000), (Sharing::Shared, 58_800)] {
        let mut race = Race::new(&[("rpm:60", 60_000)]);
        let now = at(T0 + 1_000);
        let before = image(&race.item);
        let write = Evaluation::live(&before, &race.config, now)
            .with_sharing(sharing)
            .write(
                key(),
                &batch(&[("rpm", 1)]),
                slot("aaaa"),
                Incarnation::from_random(0),
            )
            .unwrap();
        race.send(&write).unwrap();
        let left = image(&race.item);
        let left = Evaluation::live(&left, &race.config, now);
        assert_eq!(
            left.limit_state(&name("rpm")).unwrap().level(Demand::default()),
            level,
            "{sharing:?}"
        );
    }
}
