use serde_json::{Value, json};
use zae_limiter::Timestamp;
use zae_limiter::usage::WindowKind;

use crate::table::{put, snapshot, text};
use crate::tool::Bench;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.ok(&["resource", "set-defaults", "gpt-4", "-l", "rpd:3/day"]);
    bench
}

fn get(bench: &Bench, level: &[&str]) -> Value {
    bench.json(&[&["mode", "get"], level].concat())
}

#[test]
fn a_mode_is_set_shown_and_cleared_at_every_level() {
    let bench = bench();
    for (level, kind) in [
        (&["--system"][..], "system"),
        (&["--resource", "gpt-4"], "resource"),
        (&["--entity", "user-1"], "entity_default"),
        (&["--entity", "user-1", "--resource", "gpt-4"], "entity"),
    ] {
        assert_eq!(get(&bench, level)["mode"], Value::Null);
        let set = bench.json(&[&["mode", "set", "bypass"], level].concat());
        assert_eq!(
            (&set["level"], &set["mode"], &set["changed"]),
            (&kind.into(), &"bypass".into(), &true.into())
        );
        assert_eq!(get(&bench, level)["mode"], "bypass");
    }
    let applies = json!({ "mode": "bypass", "from": "entity" });
    assert_eq!(
        get(&bench, &["--entity", "user-1", "--resource", "gpt-4"])["applies"],
        applies
    );
    let level = bench.json(&["resource", "get-defaults", "gpt-4"]);
    assert_eq!(
        (&level["mode"], &level["limits"][0]["name"]),
        (&"bypass".into(), &"rpd".into())
    );

    let cleared = bench.ok(&["mode", "clear", "--resource", "gpt-4"]);
    assert!(cleared.contains("no mode any more; it was bypass"), "{cleared}");
    assert_eq!(get(&bench, &["--resource", "gpt-4"])["mode"], Value::Null);
    let again = bench.json(&["mode", "clear", "--resource", "gpt-4"]);
    assert_eq!(again["changed"], false);
}

#[test]
fn a_wrong_mode_or_level_is_refused() {
    let bench = bench();
    for wrong in [
        &["mode", "set", "off", "--system"][..],
        &["mode", "set", "observe"],
        &["mode", "get", "--system", "--resource", "gpt-4"],
    ] {
        bench.run(wrong).expect_exit(2);
    }
}

#[test]
fn calls_follow_the_mode() {
    let bench = bench();
    bench.ok(&["mode", "set", "observe", "--resource", "gpt-4"]);
    let acquire = ["acquire", "user-1", "gpt-4", "-c", "rpd:2"];
    assert_eq!(bench.json(&acquire)["admission"], "counted");
    assert_eq!(bench.json(&acquire)["admission"], "observed");
    let left = bench.ok(&["available", "user-1", "gpt-4", "-c", "rpd:2"]);
    assert!(
        left.contains("observed") && left.contains("would be admitted now"),
        "{left}"
    );

    let disabled = bench.json(&["mode", "set", "disabled", "--resource", "gpt-4", "--now"]);
    assert_eq!(disabled["refreshed"], 1);
    bench.run(&acquire).expect_exit(1);
    let left = bench.ok(&["available", "user-1", "gpt-4", "-c", "rpd:1"]);
    assert!(left.contains("the entity may not use the resource"), "{left}");
    bench.ok(&[
        "mode",
        "set",
        "bypass",
        "--entity",
        "user-1",
        "--resource",
        "gpt-4",
    ]);
    assert_eq!(bench.json(&acquire)["admission"], "bypassed");
}

#[test]
fn before_limits_are_enforced_those_are_listed_who_would_be_refused() {
    let bench = bench();
    bench.ok(&["mode", "set", "observe", "--resource", "gpt-4"]);
    let now = zae_limiter::Clock::now(&zae_limiter::SystemClock::default());
    let today = WindowKind::Daily.window_at(now);
    let long_ago = WindowKind::Daily.window_at(Timestamp::from_seconds(now.seconds() - 30 * 86_400));
    for (entity, observed, window) in [("loud", 17, today), ("quiet", 0, today), ("past", 5, long_ago)] {
        let mut usage = snapshot(entity, &window, 3, &[("rpd", 3)], 0);
        usage.push(("_ro", text(observed.to_string())));
        put(&bench, [usage]);
    }
    let enforce = ["mode", "set", "enforce", "--resource", "gpt-4"];
    // The question is asked on a terminal only.
    let asked = bench.run(&enforce);
    let shown = asked.expect_exit(2).stderr;
    assert!(shown.contains("loud") && shown.contains("17"), "{shown}");
    assert!(!shown.contains("quiet") && !shown.contains("past"), "{shown}");
    assert_eq!(
        get(&bench, &["--resource", "gpt-4"])["mode"],
        "observe",
        "nothing was changed"
    );
    let yes = bench.json(&[&enforce[..], &["--since", "60d", "--yes"]].concat());
    let entities = yes["observed"]["entities"].as_array().unwrap();
    let named: Vec<_> = entities
        .iter()
        .map(|entity| {
            (
                entity["entity"].as_str().unwrap(),
                entity["observed"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(named, [("loud", 17), ("past", 5)]);
    assert_eq!(
        (&yes["mode"], &yes["before"]),
        (&"enforce".into(), &"observe".into())
    );
}
