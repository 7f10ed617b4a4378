//! The exact conditions and actions of writes: on buckets that hold only rates, which other kinds of limits must not change, and
//! on a bucket with a limit of each kind, which are one write too.

use std::fmt::Write as _;

use zae_limiter_schema::bucket::{
    Action, Attributes, Batch, BucketConfig, BucketKey, BucketWrite, ClientTag, Condition, Decoded, Demand,
    Evaluation, Image, Incarnation, Scalar, Sharing, Slot, SlotBefore, SlotIndex, Statement, TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use crate::common::{entity, name, resource};

const START: i64 = 1_769_889_600_000;

fn config(limits: &[&str]) -> BucketConfig {
    let limits = LimitSet::new(limits.iter().map(|text| text.parse::<Limit>().unwrap())).unwrap();
    BucketConfig::new(limits, Some(entity("org")), true, TtlRule::from_multiplier(7))
}

fn batch(demands: &[(&str, Demand)]) -> Batch {
    let mut batch = Batch {
        acquires: 1,
        ..Batch::default()
    };
    for (limit, demand) in demands {
        batch.add(&name(limit), *demand);
    }
    batch
}

fn key() -> BucketKey {
    BucketKey {
        entity: entity("user-1"),
        resource: resource("gpt-4"),
    }
}

fn write(evaluation: &Evaluation<'_>, batch: &Batch, sequence: i128) -> BucketWrite {
    let slot = Slot {
        index: SlotIndex::FIRST,
        before: SlotBefore::Any,
        number: ClientTag::from_random(7).number(sequence, 0),
    };
    evaluation
        .write(key(), batch, slot, Incarnation::from_random(42))
        .unwrap()
}

fn image(attributes: &Attributes) -> Image {
    match attributes.decode().unwrap() {
        Decoded::Bucket(image) => image,
        Decoded::Stub => panic!("a bucket was written"),
    }
}

fn scalar(value: &Scalar) -> String {
    match value {
        Scalar::Number(number) => number.to_string(),
        Scalar::Text(text) => format!("{text:?}"),
        Scalar::Flag(flag) => flag.to_string(),
        Scalar::Other(other) => format!("{other:?}"),
    }
}

fn condition(one: &Condition) -> String {
    match one {
        Condition::Missing(attr) => format!("missing {attr}"),
        Condition::Is(attr, value) => format!("{attr} = {}", scalar(value)),
        Condition::IsNot(attr, value) => format!("{attr} <> {}", scalar(value)),
        Condition::AtLeast(attr, bound) => format!("{attr} >= {bound}"),
        Condition::AtMost(attr, bound) => format!("{attr} <= {bound}"),
        Condition::Above(attr, bound) => format!("{attr} > {bound}"),
        Condition::AnyOf(alternatives) => {
            let alternative =
                |all: &Vec<Condition>| all.iter().map(condition).collect::<Vec<_>>().join(" and ");
            format!(
                "({})",
                alternatives
                    .iter()
                    .map(alternative)
                    .collect::<Vec<_>>()
                    .join(" or ")
            )
        }
    }
}

fn text(title: &str, statement: &Statement) -> String {
    let mut text = format!("{title}\n");
    for one in &statement.conditions {
        let _ = writeln!(text, "  if {}", condition(one));
    }
    for action in &statement.actions {
        let _ = match action {
            Action::Set(attr, value) => writeln!(text, "  set {attr} = {}", scalar(value)),
            Action::Add(attr, amount) => writeln!(text, "  add {attr} {amount}"),
            Action::Remove(attr) => writeln!(text, "  remove {attr}"),
        };
    }
    text
}

#[test]
fn writes_of_rates_are_as_they_always_were() {
    let first = config(&["rpm:100", "tpm:10000/min:15000", "rpd:1000/day@7"]);
    let at = |millis: i64| Timestamp::from_millis(START + millis);
    let debit = batch(&[("rpm", Demand::debit(1_000)), ("tpm", Demand::debit(500_000))]);
    let mut all = String::new();
    let mut book = |title: &str, write: &BucketWrite, on: &Attributes| {
        let statement = write.statement();
        all += &text(title, &statement);
        on.apply(&statement).unwrap()
    };

    let nothing = Attributes::default();
    let created = book(
        "create",
        &write(&Evaluation::create(&first, at(0)), &debit, 1),
        &nothing,
    );
    let seen = image(&created);
    let touched = book(
        "touch",
        &write(&Evaluation::live(&seen, &first, at(10)), &debit, 2),
        &created,
    );
    let adjust = Demand {
        credit: 3_000,
        adjust: 250_000,
        recount: -1_000,
        ..Demand::default()
    };
    let mixed = batch(&[("rpd", adjust), ("tpm", adjust), ("rpm", Demand::debit(90_000))]);
    let seen = image(&touched);
    let mixed = book(
        "mixed",
        &write(&Evaluation::live(&seen, &first, at(20)), &mixed, 3),
        &touched,
    );
    let seen = image(&mixed);
    let large = batch(&[("rpm", Demand::debit(9_500))]);
    let refilled = book(
        "refill",
        &write(&Evaluation::live(&seen, &first, at(2_001)), &large, 4),
        &mixed,
    );
    let seen = image(&refilled);
    let shared = Evaluation::live(&seen, &first, at(30_000)).with_sharing(Sharing::Shared);
    book("shared", &write(&shared, &debit, 5), &refilled);
    let idle = book(
        "idle",
        &write(&Evaluation::live(&seen, &first, at(200_000_000)), &debit, 6),
        &refilled,
    );
    let second = config(&["rpm:50", "tpm:10000/min:15000", "rps:5/sec"]);
    let seen = image(&idle);
    let changed = book(
        "reconfigure",
        &write(
            &Evaluation::parameters(&seen, &second, at(200_000_500)),
            &debit,
            7,
        ),
        &idle,
    );
    let seen = image(&changed);
    book(
        "drop",
        &write(
            &Evaluation::live(&seen, &second, at(400_000_000)),
            &Batch::default(),
            8,
        ),
        &changed,
    );
    insta::assert_snapshot!(all);
}

#[test]
fn a_limit_of_each_kind_is_taken_in_one_write() {
    let first = config(&["rpm:100", "spend:500 per day", "parallel:8 at once for 10min"]);
    let at = |millis: i64| Timestamp::from_millis(START + millis);
    let (rpm, spend, parallel) = (name("rpm"), name("spend"), name("parallel"));
    let debit = batch(&[
        ("rpm", Demand::debit(1_000)),
        ("spend", Demand::debit(30_000)),
        ("parallel", Demand::debit(1_000)),
    ]);
    let mut all = String::new();
    let mut book = |title: &str, write: &BucketWrite, on: &Attributes| {
        let statement = write.statement();
        all += &text(title, &statement);
        on.apply(&statement).unwrap()
    };

    let create = write(&Evaluation::create(&first, at(0)), &debit, 1);
    let created = book("create", &create, &Attributes::default());
    let seen = image(&created);
    let touched = book(
        "touch",
        &write(&Evaluation::live(&seen, &first, at(10)), &debit, 2),
        &created,
    );
    let seen = image(&touched);
    let take = write(&Evaluation::live(&seen, &first, at(200_000)), &debit, 3);
    let taken = book("full rate", &take, &touched);

    let seen = image(&taken);
    let evaluation = Evaluation::live(&seen, &first, at(200_010));
    let mut ends = Batch::default();
    evaluation.book(&mut ends, &rpm, -500, None, true);
    evaluation.book(&mut ends, &spend, -10_000, create.held(&spend), true);
    evaluation.book(&mut ends, &parallel, -1_000, create.held(&parallel), true);
    let ended = book("commit with a refund", &write(&evaluation, &ends, 4), &taken);

    let seen = image(&ended);
    let evaluation = Evaluation::live(&seen, &first, at(500_000));
    let mut renewal = Batch::default();
    assert!(evaluation.renew(&mut renewal, &parallel, take.held(&parallel).unwrap(), 1_000));
    let renewed = book("renewal", &write(&evaluation, &renewal, 5), &ended);

    let large = batch(&[
        ("rpm", Demand::debit(99_900)),
        ("spend", Demand::debit(30_000)),
        ("parallel", Demand::debit(1_000)),
    ]);
    let seen = image(&renewed);
    let refill = write(&Evaluation::live(&seen, &first, at(600_000)), &large, 6);
    let refilled = book("refill", &refill, &renewed);

    // The next day: the next period begins, and permits that have expired are taken back.
    let seen = image(&refilled);
    let next_day = write(&Evaluation::live(&seen, &first, at(86_400_000)), &debit, 7);
    let next_day = book("next day", &next_day, &refilled);

    let second = config(&["rpm:100", "spend:600 per month", "parallel:9 at once for 20min"]);
    let seen = image(&next_day);
    let evaluation = Evaluation::parameters(&seen, &second, at(86_400_500));
    let changed = book("reconfigure", &write(&evaluation, &debit, 8), &next_day);

    let third = config(&["rpm:100"]);
    let seen = image(&changed);
    let evaluation = Evaluation::parameters(&seen, &third, at(40 * 86_400_000));
    book("drop", &write(&evaluation, &Batch::default(), 9), &changed);
    insta::assert_snapshot!(all);
}
