#![allow(clippy::unwrap_used)]

use super::*;

fn asked(number: usize) -> Asked {
    let limit = Limit::per_minute("rpm", 100).unwrap();
    Asked {
        key: BucketKey {
            entity: format!("user-{number}").parse().unwrap(),
            resource: "gpt-4".parse().unwrap(),
        },
        amounts: smallvec::smallvec![(limit.name().clone(), 1_000)],
        limits: LimitSet::new([limit]).unwrap(),
    }
}

#[test]
fn without_room_for_new_buckets_those_that_have_a_share_are_still_admitted() {
    let share = OutageShare::among(NonZeroU32::MIN);
    let now = Duration::ZERO;
    for number in 0..MAX_SHARED {
        assert!(matches!(share.take(&[asked(number)], now), Taken::All));
    }
    assert!(matches!(share.take(&[asked(MAX_SHARED)], now), Taken::NoRoom));
    assert!(matches!(share.take(&[asked(7)], now), Taken::All));
    assert!(matches!(share.take(&[asked(7), asked(8)], now), Taken::All));
    let half_new = [asked(7), asked(MAX_SHARED)];
    assert!(matches!(share.take(&half_new, now), Taken::NoRoom));
    // A minute later all are full again and make room.
    let later = Duration::from_secs(60);
    assert!(matches!(share.take(&half_new, later), Taken::All));
    assert_eq!(share.buckets().len(), 2);
}
