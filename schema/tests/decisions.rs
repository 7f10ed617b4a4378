//! What a decision says about a bucket, with exact numbers.

use std::time::Duration;

use crate::common::{entity, name, put_limit};
use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, BucketWrite, Decoded, Demand, Evaluation, Image,
    Incarnation, Params, Presence, RefillClause, RetryAfter, Scalar, Slot, SlotBefore, SlotIndex,
    TokenBucket, TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

fn config(limits: &[&str]) -> BucketConfig {
    let limits = limits.iter().map(|text| limit(text));
    BucketConfig::new(LimitSet::new(limits).unwrap(), None, false, TtlRule::Never)
}

/// A bucket with these levels, as the config left it at T0.
fn image(config: &BucketConfig, levels: &[(&str, i128)]) -> Image {
    let mut item = Attributes::default();
    item.insert(Attr::RefilledAt, Scalar::Number(i128::from(T0.millis())));
    item.insert(Attr::Etag, Scalar::Text(config.etag("AAAAAA").as_str().into()));
    for (text, tokens) in levels {
        let limit = limit(text);
        let token_bucket = TokenBucket {
            tokens: *tokens,
            ..TokenBucket::full(Params::from(limit.rate().unwrap()))
        };
        put_limit(&mut item, limit.name(), token_bucket, 0);
    }
    match item.decode().unwrap() {
        Decoded::Bucket(image) => image,
        Decoded::Stub => panic!("a stub"),
    }
}

fn after(millis: i64) -> Timestamp {
    Timestamp::from_millis(T0.millis() + millis)
}

fn taking(debit: i128) -> Batch {
    let mut batch = Batch::default();
    let demand = Demand {
        debit,
        ..Demand::default()
    };
    batch.add(&name("rpm"), demand);
    batch
}

#[test]
fn the_outlook_is_what_a_batch_leaves_and_when_more_is_there() {
    let config = config(&["rpm:60"]);
    let image = image(&config, &[("rpm:60", 10_000)]);
    let outlook = |millis, debit, amount| {
        Evaluation::live(&image, &config, after(millis))
            .outlook(&name("rpm"), &taking(debit), amount)
            .map(|outlook| (outlook.left, outlook.retry_after))
            .unwrap()
    };
    assert_eq!(outlook(0, 4_000, 6_000), (6_000, RetryAfter::Now));
    let second = RetryAfter::After(Duration::from_secs(1));
    assert_eq!(outlook(0, 4_000, 7_000), (6_000, second));
    assert_eq!(outlook(2_000, 4_000, 9_000), (8_000, second));
    assert_eq!(outlook(0, 0, 60_001), (10_000, RetryAfter::Never));
    // Full, and a millitoken short of full.
    assert_eq!(outlook(50_000, 0, 60_000), (60_000, RetryAfter::Now));
    assert_eq!(
        outlook(49_999, 0, 60_000),
        (59_999, RetryAfter::After(Duration::from_millis(1)))
    );
}

/// A third of a millitoken counts until the bucket is full, and not beyond.
#[test]
fn the_outlook_keeps_the_remainder_of_a_refill_unless_the_bucket_is_full() {
    let config = config(&["rpm:1/min"]);
    let image = image(&config, &[("rpm:1/min", 0)]);
    let next = |millis, debit| {
        let evaluation = Evaluation::live(&image, &config, after(millis));
        let outlook = evaluation.outlook(&name("rpm"), &taking(debit), 1_000);
        outlook.unwrap().retry_after
    };
    // A millitoken a 60 ms: 20 ms of the next one are over.
    assert_eq!(next(80, 0), RetryAfter::After(Duration::from_millis(59_920)));
    // Full at 60,000 ms; the time after that is lost.
    assert_eq!(next(60_050, 1_000), RetryAfter::After(Duration::from_secs(60)));
}

/// What is given back counts for what is taken, up to the burst; what a correction takes is gone.
#[test]
fn credits_and_adjustments_of_a_batch_count_before_its_debits() {
    let config = config(&["rpm:60"]);
    let image = image(&config, &[("rpm:60", 10_000)]);
    let evaluation = Evaluation::live(&image, &config, after(2_000));
    let fits = |credit, adjust, debit| {
        let mut batch = Batch::default();
        let demand = Demand {
            credit,
            adjust,
            debit,
            ..Demand::default()
        };
        batch.add(&name("rpm"), demand);
        evaluation.fits(&batch)
    };
    for (credit, adjust, most) in [
        (0, 0, 12_000),
        (5_000, 0, 17_000),
        (5_000, 3_000, 14_000),
        (100_000, 0, 60_000),
        (100_000, 3_000, 57_000),
    ] {
        assert!(fits(credit, adjust, most), "{credit} {adjust}");
        assert!(!fits(credit, adjust, most + 1), "{credit} {adjust}");
    }
}

#[test]
fn the_margin_is_what_200_ms_bring_back_and_at_most_a_fiftieth_of_the_burst() {
    let margin = |text| Params::from(limit(text).rate().unwrap()).margin();
    assert_eq!(margin("rpm:60"), 200, "less than 1,200");
    assert_eq!(margin("rps:100/sec"), 2_000, "less than 20,000");
    assert_eq!(margin("rps:100/sec:1000"), 20_000, "both alike");
}

#[test]
fn a_bucket_matches_only_with_the_same_limits_parent_and_cascade() {
    let rpm = config(&["rpm:60"]);
    let both = config(&["rpm:60", "tpm:100"]);
    let on_item = image(&rpm, &[("rpm:60", 0)]);
    assert!(rpm.matches(&on_item));
    assert!(!both.matches(&on_item), "a limit is missing");
    assert!(!config(&["rpm:61"]).matches(&on_item), "other parameters");
    let child = BucketConfig::new(rpm.limits().clone(), Some(entity("org")), false, TtlRule::Never);
    assert!(!child.matches(&on_item), "another parent");
    let cascading = BucketConfig::new(rpm.limits().clone(), None, true, TtlRule::Never);
    assert!(!cascading.matches(&on_item), "another cascade flag");
    let without_etag = Image {
        etag: None,
        ..on_item.clone()
    };
    assert!(!rpm.matches(&without_etag), "the peer's");
}

#[test]
fn a_limit_too_many_matches_only_under_the_configs_own_etag() {
    let (rpm, both) = (config(&["rpm:60"]), config(&["rpm:60", "tpm:100"]));
    let levels = [("rpm:60", 0), ("tpm:100", 0)];
    assert!(rpm.matches(&image(&rpm, &levels)), "tpm is on its way out");
    assert!(!rpm.matches(&image(&both, &levels)), "tpm is configured");
    let first = [("apm:5", 0), ("rpm:60", 0)];
    assert!(
        rpm.matches(&image(&rpm, &first)),
        "the first by name is on its way out"
    );
    // With as many limits as the config has, another etag is that of an equal configuration.
    let other = config(&["other:1"]);
    assert!(rpm.matches(&image(&other, &levels[..1])));
}

#[test]
fn a_limit_that_is_missing_never_matches_whatever_the_etag_says() {
    let both = config(&["rpm:60", "tpm:100"]);
    assert!(!both.matches(&image(&both, &[("rpm:60", 0)])), "tpm is lost");
    assert!(!both.matches(&image(&both, &[("tpm:100", 0)])), "rpm is lost");
}

#[test]
fn a_config_with_another_rule_of_expiry_is_otherwise_the_same() {
    let (never, week) = (config(&["rpm:60"]), TtlRule::from_multiplier(7));
    let changed = never.clone().with_ttl(week);
    assert_eq!(changed.ttl(), week);
    assert_ne!(week, TtlRule::Never);
    assert_eq!(changed.with_ttl(TtlRule::Never), never);
}

/// Parts of a millitoken are carried over to the next write only if they are still worth the same and still missing.
#[test]
fn the_remainder_of_a_refill_is_kept_unless_the_bucket_was_full_lost_or_has_another_rate() {
    let two = config(&["rpm:7", "tpm:7"]);
    let one = image(&two, &[("rpm:7", 1_000)]);
    let remainder = |evaluation: &Evaluation<'_>, limit: &str, adjust: i128| {
        let demand = Demand {
            adjust,
            ..Demand::default()
        };
        let state = evaluation.limit_state(&name(limit)).unwrap();
        state.rate().unwrap().after_write(demand).remainder
    };
    let live = Evaluation::live(&one, &two, after(1));
    assert_ne!(remainder(&live, "rpm", 0), 0);
    assert_ne!(remainder(&live, "rpm", 500), 0);

    let full = image(&two, &[("rpm:7", 7_000)]);
    let full = Evaluation::live(&full, &two, after(1));
    assert_eq!(remainder(&full, "rpm", 0), 0);
    assert_eq!(remainder(&full, "rpm", 3_000), 0);

    let damaged = Evaluation::parameters(&one, &two, after(1));
    assert_ne!(remainder(&damaged, "rpm", 0), 0);
    assert_eq!(remainder(&damaged, "tpm", 0), 0);

    let faster = config(&["rpm:9"]);
    let changed = Evaluation::parameters(&one, &faster, after(1));
    assert_eq!(remainder(&changed, "rpm", 0), 0);
}

#[test]
fn debits_are_covered_up_to_the_level_of_each_limit() {
    let config = config(&["rpm:60", "tpm:600"]);
    let image = image(&config, &[("rpm:60", 10_000), ("tpm:600", 50_000)]);
    let evaluation = Evaluation::live(&image, &config, T0);
    let covers = |rpm, tpm| evaluation.covers(&[(name("rpm"), rpm), (name("tpm"), tpm)]);
    assert!(covers(0, 0));
    assert!(covers(10_000, 50_000));
    assert!(!covers(10_001, 50_000));
    assert!(!covers(10_000, 50_001));
    assert!(!evaluation.covers(&[(name("other"), 1)]));
}

#[test]
fn a_limit_that_is_new_to_a_bucket_is_not_taken_for_a_damaged_one() {
    let image = image(&config(&["rpm:60"]), &[("rpm:60", 10_000)]);
    let config = config(&["rpm:60", "tpm:600"]);
    let evaluation = Evaluation::parameters(&image, &config, T0);
    let presence = |limit| {
        evaluation
            .limit_state(&name(limit))
            .unwrap()
            .rate()
            .unwrap()
            .presence
    };
    assert_eq!(presence("rpm"), Presence::Kept);
    assert_eq!(presence("tpm"), Presence::Fresh);
}

#[test]
fn a_refill_in_the_future_is_set_back_without_any_refill() {
    let config = config(&["rpm:60"]);
    // A level of 10 at T0, and the time is two minutes before that.
    let image = image(&config, &[("rpm:60", 10_000)]);
    let now = after(-120_000);
    let clamped = Evaluation::live(&image, &config, now);
    assert_eq!(clamped.now(), T0);
    let set_back = clamped.clone().with_refill_set_back(now);
    assert_eq!(set_back.now(), now);
    for evaluation in [&clamped, &set_back] {
        assert!(evaluation.fits(&taking(10_000)) && !evaluation.fits(&taking(10_001)));
    }
    // The tokens on the item cover a call, so that it could leave the time alone.
    for (evaluation, moves) in [(&clamped, false), (&set_back, true)] {
        let write = write(evaluation, &taking(4_000));
        assert_eq!(write.sets_refill_back(), moves);
    }
    let empty = Batch::default();
    let moved = RefillClause::Move {
        from: T0,
        to: now,
        relaxed: Vec::new(),
    };
    assert_eq!(write(&set_back, &empty).refill, moved);
    // Applied, the level is the same, and it grows from then on.
    let mut item = Attributes::default();
    item.insert(Attr::RefilledAt, Scalar::Number(i128::from(T0.millis())));
    item.insert(Attr::Etag, Scalar::Text(config.etag("AAAAAA").as_str().into()));
    let limit = limit("rpm:60");
    let token_bucket = TokenBucket {
        tokens: 10_000,
        ..TokenBucket::full(Params::from(limit.rate().unwrap()))
    };
    put_limit(&mut item, limit.name(), token_bucket, 0);
    let item = item.apply(&write(&set_back, &taking(4_000)).statement()).unwrap();
    let Decoded::Bucket(after_write) = item.decode().unwrap() else {
        panic!("a stub");
    };
    assert_eq!(after_write.refilled_at, now);
    let later = Evaluation::live(&after_write, &config, now.plus_millis(2_000));
    assert!(later.fits(&taking(8_000)) && !later.fits(&taking(8_001)));
    // Nobody sets it back twice: the condition names the time that was seen.
    assert!(item.apply(&write(&set_back, &empty).statement()).is_err());
}

#[test]
fn clocks_that_differ_by_seconds_are_not_wrong() {
    let config = config(&["rpm:60"]);
    let image = image(&config, &[("rpm:60", 10_000)]);
    for behind in 0..=5_000 {
        assert!(!image.is_ahead_of(after(-behind)), "{behind}");
    }
    assert!(image.is_ahead_of(after(-5_001)));
}

fn write(evaluation: &Evaluation<'_>, batch: &Batch) -> BucketWrite {
    let slot = Slot {
        index: SlotIndex::FIRST,
        before: SlotBefore::Any,
        number: 1,
    };
    let key = BucketKey {
        entity: entity("user-1"),
        resource: "gpt-4".parse().unwrap(),
    };
    let incarnation = Incarnation::from_random(1);
    evaluation.write(key, batch, slot, incarnation).unwrap()
}
