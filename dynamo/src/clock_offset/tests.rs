use super::*;

/// A machine whose calendar is off by this much, and a server whose calendar is right.
struct Machine {
    offset: ClockOffset,
    off_by: i64,
    elapsed: i64,
}

const START: i64 = 1_700_000_000_000;

fn machine(off_by: i64) -> Machine {
    Machine {
        offset: ClockOffset::default(),
        off_by,
        elapsed: 0,
    }
}

impl Machine {
    fn local(&self) -> LocalTime {
        LocalTime {
            now: Timestamp::from_millis(START + self.elapsed + self.off_by),
            elapsed: time(self.elapsed),
        }
    }

    /// How far a reading after this pause is from the true time.
    fn error_after(&mut self, pause: i64) -> i64 {
        self.elapsed += pause;
        let local = self.local();
        self.offset.read(local) + self.off_by
    }

    /// Some time passes; then the server responds after `there`, and the response is read after `back`.
    fn call(&mut self, pause: i64, there: i64, back: i64) -> i64 {
        let sent = self.elapsed + pause;
        let date = (START + sent + there) / 1000 * 1000;
        self.elapsed = sent + there + back;
        let now = self.local();
        self.offset.observe(date, time(sent), now)
    }

    /// Enough responses for a decision.
    fn calls(&mut self) -> i64 {
        (0..AGREEING)
            .map(|_| self.call(100, 5, 5))
            .last()
            .unwrap_or_default()
    }
}

fn time(millis: i64) -> Duration {
    Duration::from_millis(millis.max(0).cast_unsigned())
}

#[test]
fn a_clock_within_two_seconds_is_never_corrected() {
    for off_by in [-2_000, -1_999, -1_000, 0, 700, 1_500, 2_000] {
        let mut machine = machine(off_by);
        for call in 0..200 {
            let offset = machine.call(37 * call % 1_100, call % 500, 13 * call % 500);
            assert_eq!(offset, 0, "off by {off_by}, call {call}");
        }
    }
}

#[test]
fn a_clock_that_is_certainly_wrong_is_corrected_once_three_responses_agree() {
    for off_by in [-60_000, -3_100, 3_100, 120_000] {
        let mut machine = machine(off_by);
        assert_eq!((machine.call(0, 5, 5), machine.call(0, 5, 5)), (0, 0), "{off_by}");
        let offset = machine.call(0, 5, 5);
        assert!((offset + off_by).abs() <= 505, "{off_by}: {offset}");
    }
}

#[test]
fn a_clock_that_is_more_than_five_minutes_off_is_corrected_by_the_first_response() {
    for off_by in [-3_600_000, 302_000] {
        let offset = machine(off_by).call(0, 5, 5);
        assert!((offset + off_by).abs() <= 505, "{off_by}: {offset}");
    }
}

#[test]
fn one_wrong_date_changes_nothing() {
    for off_by in [0, 60_000] {
        for wrong in [-600_000, -180_000, 180_000, 600_000] {
            let mut machine = machine(off_by);
            for _ in 0..7 {
                machine.calls();
            }
            let before = machine.error_after(1);
            let (now, sent) = (machine.local(), time(machine.elapsed));
            let date = START + machine.elapsed + wrong;
            machine.offset.observe(date / 1000 * 1000, sent, now);
            assert_eq!(machine.error_after(1), before, "{off_by} {wrong}");
            machine.call(0, 5, 5);
            assert!((machine.error_after(1) - before).abs() <= 505, "{off_by} {wrong}");
        }
    }
}

#[test]
fn a_calendar_that_is_set_does_not_move_the_time() {
    // Before any response, and once responses have shown that it is right.
    for responses in [false, true] {
        for step in [-120_000, 120_000] {
            let mut machine = machine(0);
            if responses {
                machine.calls();
            }
            assert_eq!(machine.error_after(10), 0);
            machine.off_by = step;
            assert_eq!(machine.error_after(10), 0, "{step}");
            machine.calls();
            assert!(machine.error_after(10).abs() <= 1_000, "{step}");
        }
    }
}

#[test]
fn a_wrong_calendar_that_is_set_right_does_not_move_the_time() {
    let mut machine = machine(-120_000);
    machine.calls();
    let before = machine.error_after(10);
    assert!(before.abs() <= 505, "{before}");
    machine.off_by = 0;
    assert_eq!(machine.error_after(10), before);
    assert_eq!(
        machine.call(10, 5, 5),
        0,
        "the responses before agree with it too"
    );
    assert_eq!(machine.error_after(10), 0);
}

#[test]
fn a_jump_that_no_response_judges_is_followed_after_ten_minutes() {
    let mut machine = machine(0);
    machine.error_after(10);
    machine.off_by = 3_600_000;
    assert_eq!(machine.error_after(600_000), 0);
    assert_eq!(machine.error_after(600_001), 3_600_000);
}

#[test]
fn a_correction_does_not_follow_the_seconds_of_the_header() {
    for start in (0..1_000).step_by(90) {
        let mut machine = machine(60_000);
        machine.call(start, 5, 5);
        machine.call(0, 5, 5);
        let mut distance = (machine.call(0, 5, 5) + 60_000).abs();
        assert!(distance <= 505);
        for call in 0..100 {
            let next = (machine.call(70, 5, 5) + 60_000).abs();
            assert!(next <= distance, "call {call}: from {distance} to {next}");
            distance = next;
        }
        assert!(distance <= 90, "{distance}");
    }
}

#[test]
fn a_clock_near_the_bound_is_not_corrected_and_released_in_turn() {
    let mut machine = machine(2_700);
    let mut changes = 0;
    let mut corrected = false;
    for call in 0..500 {
        let offset = machine.call(311, call % 300, call % 200);
        changes += u32::from((offset != 0) != corrected);
        corrected = offset != 0;
    }
    assert!(corrected && changes == 1, "{changes}");
}

#[test]
fn a_response_that_is_read_late_is_no_evidence() {
    let mut machine = machine(0);
    for _ in 0..20 {
        assert_eq!(machine.call(10, 5, 4_000), 0);
    }
    assert!(machine.offset.samples.is_empty());
}

#[test]
fn the_response_with_the_shortest_round_trip_decides() {
    let mut machine = machine(10_000);
    machine.call(0, 450, 450);
    machine.call(0, 450, 450);
    let good = machine.call(0, 1, 1);
    assert!((good + 10_000).abs() <= 501, "{good}");
    for _ in 2..SAMPLES {
        assert_eq!(machine.call(300, 10, 900), good);
    }
    let best = machine
        .offset
        .samples
        .iter()
        .map(|sample| sample.round_trip)
        .min();
    assert_eq!(best, Some(time(2)));
}

#[test]
fn a_machine_that_slept_learns_the_time_from_three_responses() {
    let mut machine = machine(0);
    machine.calls();
    // Its monotonic clock stood still for an hour, and its calendar with it.
    let mut offset = 0;
    for _ in 0..AGREEING {
        let sent = machine.elapsed;
        machine.elapsed += 20;
        let date = (START + machine.elapsed + 3_600_000) / 1000 * 1000;
        let now = machine.local();
        offset = machine.offset.observe(date, time(sent), now);
    }
    assert!((offset - 3_600_000).abs() <= 1_000, "{offset}");
}

/// How far the latest time is after the true one.
fn latest_after_truth(machine: &Machine) -> Option<i64> {
    let latest = machine.offset.latest(machine.local())?;
    Some(latest.millis() - START - machine.elapsed)
}

#[test]
fn the_latest_time_is_known_once_three_responses_agree_and_never_before_the_true_one() {
    for off_by in [-120_000, -2_000, 0, 1_500, 120_000] {
        let mut machine = machine(off_by);
        for call in 0..200 {
            let latest = latest_after_truth(&machine);
            assert_eq!(latest.is_some(), call >= 3, "off by {off_by}, call {call}");
            assert!(
                latest.is_none_or(|after| (0..=2_000).contains(&after)),
                "{latest:?}"
            );
            machine.call(37 * call % 1_100, call % 500, 13 * call % 500);
        }
        // The calendar and the monotonic clock agree for a while.
        machine.elapsed += 600_000;
        assert!(latest_after_truth(&machine).is_some(), "{off_by}");
        machine.elapsed += 1_000;
        assert!(latest_after_truth(&machine).is_none(), "{off_by}");
    }
}

#[test]
fn the_latest_time_is_unknown_after_a_jump_or_a_response_that_contradicts_it() {
    let mut jumped = machine(0);
    jumped.calls();
    jumped.off_by = 3_600_000;
    assert!(
        latest_after_truth(&jumped).is_none(),
        "the machine may have slept"
    );

    // Both clocks stood still for an hour, as in a snapshot: the first response shows it, however slow it is.
    for back in [5, 5_000] {
        let mut restored = machine(0);
        restored.calls();
        let sent = restored.elapsed + 100;
        let date = (START + sent + 3_600_000) / 1000 * 1000;
        restored.elapsed = sent + back;
        let now = restored.local();
        restored.offset.observe(date, time(sent), now);
        assert!(latest_after_truth(&restored).is_none(), "{back}");
    }
}
