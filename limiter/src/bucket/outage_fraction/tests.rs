#![allow(clippy::unwrap_used, clippy::panic)]

use zae_limiter_schema::Limit;

use super::*;

fn asked(number: usize) -> LocalCharge {
    asked_of(number, Limit::per_minute("rpm", 100).unwrap(), 1)
}

/// One limit of a bucket, and this many tokens of it.
fn asked_of(number: usize, limit: Limit, tokens: i128) -> LocalCharge {
    LocalCharge {
        part: 0,
        left: Amounts::new(),
        key: BucketKey {
            entity: format!("user-{number}").parse().unwrap(),
            resource: "gpt-4".parse().unwrap(),
        },
        amounts: smallvec::smallvec![(limit.name().clone(), tokens * 1_000)],
        limits: LimitSet::new([limit]).unwrap(),
    }
}

fn per_minute(name: &str, capacity: u64) -> Limit {
    Limit::per_minute(name, capacity).unwrap()
}

#[test]
fn without_room_for_new_buckets_those_that_have_a_share_are_still_admitted() {
    let share = OutageFraction::among(NonZeroU32::MIN);
    let now = Duration::ZERO;
    for number in 0..MAX_SHARED {
        assert!(matches!(
            share.take(&[asked(number)], now, Timestamp::MIN),
            Taken::All
        ));
    }
    assert!(matches!(
        share.take(&[asked(MAX_SHARED)], now, Timestamp::MIN),
        Taken::NoRoom
    ));
    assert!(matches!(share.take(&[asked(7)], now, Timestamp::MIN), Taken::All));
    assert!(matches!(
        share.take(&[asked(7), asked(8)], now, Timestamp::MIN),
        Taken::All
    ));
    let half_new = [asked(7), asked(MAX_SHARED)];
    assert!(matches!(
        share.take(&half_new, now, Timestamp::MIN),
        Taken::NoRoom
    ));
    // A minute later all are full again and make room.
    let later = Duration::from_secs(60);
    assert!(matches!(share.take(&half_new, later, Timestamp::MIN), Taken::All));
    assert_eq!(share.buckets().len(), 2);
}

#[test]
fn a_call_with_limits_of_its_own_does_not_fill_the_others_up() {
    let share = OutageFraction::among(NonZeroU32::MIN);
    let now = Duration::ZERO;
    let take = |limit, tokens, now| share.take(&[asked_of(1, limit, tokens)], now, Timestamp::MIN);
    assert!(matches!(take(per_minute("rpm", 10), 10, now), Taken::All));
    assert!(matches!(take(per_minute("tpm", 5), 5, now), Taken::All));
    for _ in 0..2 {
        assert!(matches!(take(per_minute("rpm", 10), 1, now), Taken::TooLittle(_)));
        assert!(matches!(take(per_minute("tpm", 5), 1, now), Taken::TooLittle(_)));
        assert!(matches!(take(per_minute("rps", 10), 1, now), Taken::All));
    }
    // What is full again is not remembered.
    let later = Duration::from_secs(60);
    assert!(matches!(take(per_minute("rpm", 10), 1, later), Taken::All));
    assert_eq!(share.buckets()[&asked(1).key].len(), 1);
}

#[test]
fn the_limits_of_calls_are_bounded() {
    let share = OutageFraction::among(NonZeroU32::MIN);
    let take = |number: usize, now| {
        let limit = per_minute(&format!("limit-{number}"), 10);
        share.take(&[asked_of(1, limit, 1)], now, Timestamp::MIN)
    };
    for number in 0..MAX_LIMITS {
        assert!(matches!(take(number, Duration::ZERO), Taken::All), "{number}");
    }
    assert!(matches!(take(MAX_LIMITS, Duration::ZERO), Taken::NoRoom));
    assert!(matches!(take(0, Duration::ZERO), Taken::All));
    assert!(matches!(take(MAX_LIMITS, Duration::from_secs(60)), Taken::All));
}

#[test]
fn a_limit_that_changes_keeps_what_was_taken() {
    for (capacity, left) in [(100, 40), (1_000, 40), (10, 10)] {
        let share = OutageFraction::among(NonZeroU32::MIN);
        let now = Duration::ZERO;
        let before = asked_of(1, per_minute("rpm", 100), 60);
        assert!(matches!(share.take(&[before], now, Timestamp::MIN), Taken::All));
        let take = |tokens| {
            share.take(
                &[asked_of(1, per_minute("rpm", capacity), tokens)],
                now,
                Timestamp::MIN,
            )
        };
        assert!(matches!(take(left + 1), Taken::TooLittle(_)), "{capacity}");
        assert!(matches!(take(left), Taken::All), "{capacity}");
        assert!(matches!(take(1), Taken::TooLittle(_)), "{capacity}");
    }
}

#[test]
fn a_limit_too_small_for_so_many_processes_admits_nothing() {
    let share = OutageFraction::among(NonZeroU32::MAX);
    let Taken::TooLittle(statuses) = share.take(&[asked(1)], Duration::ZERO, Timestamp::MIN) else {
        panic!("admitted")
    };
    assert_eq!(statuses.len(), 1);
    assert_eq!(
        (statuses[0].available, statuses[0].retry_after),
        (0, RetryAfter::Never)
    );
    assert!(share.buckets().is_empty());
}

/// The whole of a limit of one token a second, with a burst of 60.
struct Part {
    share: OutageFraction,
    asked: LocalCharge,
}

impl Part {
    fn new() -> Self {
        Self {
            share: OutageFraction::among(NonZeroU32::MIN),
            asked: asked_of(1, per_minute("rpm", 60), 1),
        }
    }

    /// The table admitted this, or got it back.
    fn counted(&self, tokens: i128, now: Duration) {
        let changes = [("rpm".parse().unwrap(), tokens * 1_000)];
        let (key, limits) = (&self.asked.key, &self.asked.limits);
        self.share
            .book_counted(key, limits, &changes, (now, Timestamp::MIN));
    }

    /// Takes one token, if there is one.
    fn admits(&self, seconds: u64) -> bool {
        let now = Duration::from_secs(seconds);
        let taken = self
            .share
            .take(std::slice::from_ref(&self.asked), now, Timestamp::MIN);
        matches!(taken, Taken::All)
    }
}

#[test]
fn what_is_counted_makes_debt_of_at_most_one_burst() {
    let part = Part::new();
    part.counted(1_000, Duration::ZERO);
    assert!(!part.admits(60) && part.admits(61));
    part.counted(2, Duration::from_secs(61));
    part.counted(-2, Duration::from_secs(61));
    assert!(!part.admits(61) && part.admits(62));
}

#[test]
fn what_is_counted_and_given_back_at_once_forgives_no_debt() {
    let part = Part::new();
    part.counted(120, Duration::ZERO);
    part.counted(60, Duration::ZERO);
    part.counted(-60, Duration::ZERO);
    assert!(!part.admits(60) && part.admits(61));
}

#[test]
fn a_part_that_is_booked_more_than_once_in_a_millisecond_refills() {
    let part = Part::new();
    part.counted(60, Duration::ZERO);
    for tick in 1..=2_500 {
        part.counted(0, tick * Duration::from_micros(400));
    }
    assert!(part.admits(1));
}

#[test]
fn what_is_counted_on_a_bucket_without_room_is_left_out() {
    let share = OutageFraction::among(NonZeroU32::MIN);
    let limits = asked(0).limits;
    for number in 0..=MAX_SHARED {
        let asked = asked(number);
        share.book_counted(
            &asked.key,
            &limits,
            &asked.amounts,
            (Duration::ZERO, Timestamp::MIN),
        );
    }
    assert_eq!(share.buckets().len(), MAX_SHARED);
    let later = Duration::from_secs(60);
    share.book_counted(
        &asked(MAX_SHARED).key,
        &limits,
        &asked(0).amounts,
        (later, Timestamp::MIN),
    );
    assert_eq!(share.buckets().len(), 1);
}

#[test]
fn of_a_quota_a_process_has_its_part_of_what_was_left_and_of_permits_whole_ones() {
    let share = OutageFraction::among(NonZeroU32::new(2).unwrap());
    let now = Duration::ZERO;
    let take = |limit: &str, tokens, left: Option<i128>| {
        let mut asked = asked_of(1, limit.parse().unwrap(), tokens);
        let name = asked.amounts[0].0.clone();
        asked.left.extend(left.map(|left| (name, left * 1_000)));
        matches!(share.take(&[asked], now, Timestamp::MIN), Taken::All)
    };
    let spend = "spend:10 per day";
    assert!(
        take(spend, 3, Some(6)) && !take(spend, 1, Some(6)),
        "half of the 6 that were left"
    );
    let fresh = "fresh:10 per day";
    assert!(
        take(fresh, 5, None) && !take(fresh, 1, None),
        "half of all if nothing is known"
    );
    let parallel = "parallel:5 at once for 10min";
    assert!(take(parallel, 1, None) && take(parallel, 1, None) && !take(parallel, 1, None));
    let key = asked_of(1, parallel.parse().unwrap(), 1).key;
    share.book(
        &[(key, smallvec::smallvec![("parallel".parse().unwrap(), -1_000)])],
        now,
    );
    assert!(take(parallel, 1, None), "a call has ended");
    assert!(
        !take("few:1 at once for 10min", 1, None),
        "no whole permit for each process"
    );
}
