#!/usr/bin/env python3
"""Shows that the tests notice broken rules of the client: breaks each rule in a copy of the source and runs the tests.

    scripts/broken-rules.py --check   every rule can still be broken: its text occurs exactly once
    scripts/broken-rules.py [NAME]    breaks the rules, or the named one, and fails if the tests pass
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUCKET = "limiter/src/bucket/"
CORE = BUCKET + "core/"
WAIT = "limiter/src/acquire/wait.rs"
DYNAMO = "dynamo/src/"
PERMITS = "schema/src/bucket/kinds/concurrency.rs"
QUOTAS = "schema/src/bucket/kinds/quota.rs"
# Name, file, text, replacement, tests that must fail, and more of the same rule as (file, text, replacement) where it is held in
# several places. The tests are of the package of the file, or of the folder before a colon. Tests of `acquire::` and `store::`
# are integration tests, all others unit tests.
RULES = [
    # A bucket that many share.
    ("NoMargin", CORE + "contention.rs", "let alone = !others && !refused;", "let alone = true;", "shared_bucket_costs"),
    ("MarginWithoutOthers", CORE + "contention.rs", "let alone = !others && !refused;", "let alone = false;", "a_bucket_of_one_process_is_exact"),
    ("NoGuess", CORE + "contention.rs", "age > STALE_AFTER", "age > Duration::MAX", "shared_bucket_costs"),
    ("NoShareWhenSaturated", CORE + "contention.rs", "short && self.clients(now.calendar) >= MANY_CLIENTS", "short && self.clients(now.calendar) == u32::MAX", "a_saturated_bucket_refuses"),
    ("RefillsFromOldImages", CORE + "combine.rs", "guessed_wrong && !self.guess.just_read", "guessed_wrong && !self.guess.just_read && false", "shared_bucket_costs"),
    ("EightTries", CORE + "response.rs", "let late = now.elapsed.saturating_sub(request.since) >= self.patience;", "let late = request.conflicts >= 8;", "contention_is_no_outage"),
    ("CrowdedAmongFew", CORE + "contention.rs", "self.others_within(CROWDED_FOR, calendar) >= usize::from(SlotIndex::COUNT)", "self.others_within(CROWDED_FOR, calendar) >= 1", "buckets_that_are_deleted"),
    # Configuration.
    ("ParametersFromCache", CORE + "combine.rs", "!self.may_rewrite(image, &config, now)", "false", "limits_of_calls"),
    ("RewriteIgnoresEtag", CORE + "combine.rs", "read.etag == image.etag", "(read.etag == image.etag || true)", "limits_of_calls"),
    ("CallLimitsReachParents", "limiter/src/acquire/charge.rs", "let call_limits = call_limits.filter(|_| own);", "let _ = own;", "limits_of_calls"),
    ("CallLimitsNeverExpire", BUCKET + "shared.rs", "configs.for_call(limits, expires)", "configs.for_call(limits, TtlRule::Never)", "limits_of_calls"),
    ("LimitsWithoutBound", CORE + "combine.rs", "evaluation.limits().count() > MAX_LIMITS_OF_WRITE {", "evaluation.limits().count() > usize::MAX {", "acquire::limits_of_a_call"),
    # Modes.
    ("BumpsAreIgnored", CORE + "combine.rs", "!was_read && Duration::from_millis(age) <=", "!was_read && Duration::from_millis(age) * 0 >", "modes_that_change"),
    ("ModeChangesGoUnnoticed", CORE + "read.rs", "} => held.mode() != config.mode(),", "} => held.mode() != config.mode() && false,", "modes_that_change"),
    ("ObservedCallsAreCharged", BUCKET + "grant.rs", "if portions.is_empty() && self.passed.is_some() {", "if portions.is_empty() && self.passed.is_some() && false {", "modes_that_change"),
    ("ParentsFollowTheChild", "limiter/src/acquire/cascade.rs", "if charges[index].mode() == Mode::Observe => {", "if charges[0].mode() == Mode::Observe => {", "modes_that_change"),
    # Copies of a process.
    ("TagsFromTheProcess", DYNAMO + "entropy.rs", "getrandom::fill(bytes)", 'Err::<(), _>("broken")', "ids_come_from_the_operating_system"),
    ("NumbersWithoutNonce", CORE + "slots.rs", "now.random >> 32", "now.random * 0", "a_copy_in_the_same_millisecond"),
    ("CopiesGoUnnoticed", CORE + "slots.rs", "is_ours && !self.sent.contains(number)", "is_ours && !self.sent.contains(number) && false", "a_copy_of_this_process"),
    ("CopiesReturnTwice", CORE + "response.rs", "self.drop_shared_with_copy()", "self.drop_untraceable()", "what_two_copies_find_out"),
    # Clocks.
    ("CalendarIsFollowed", DYNAMO + "clock_offset.rs", "Some(before) if (start - before).abs() > CORRECT_BEYOND_MILLIS", "Some(before) if (start - before).abs() == i64::MAX", "a_calendar_that_is_set"),
    ("OneDateDecides", DYNAMO + "clock_offset.rs", "const AGREEING: usize = 3;", "const AGREEING: usize = 1;", "one_wrong_date"),
    ("DatesOfProxiesCount", DYNAMO + "server_time.rs", "&& response.status().as_u16() < 500", "", "responses_that_are_not_dynamodbs"),
    ("FutureRefillStays", CORE + "mod.rs", "(time < image.refilled_at).then_some(time)", "(time < image.refilled_at && false).then_some(time)", "a_bucket_recovers_from_a_clock"),
    ("SkewIsADenial", DYNAMO + "call_error.rs", '"InvalidSignature" if is_about_time(message) => Self::ClockSkew(text),', '"InvalidSignature" if is_about_time(message) => Self::Denied(text),', "a_clock_that_cannot_sign"),
    # Credentials and connections.
    ("EachCallLoads", DYNAMO + "credentials.rs", ".filter(|loading| loading.has_changed().is_ok())", ".filter(|_| false)", "a_call_that_gives_up"),
    ("LoadsWhenExpired", DYNAMO + "credentials.rs", "expiry - REFRESH_AHEAD.min(lifetime / 2)", "expiry", "a_slow_refresh"),
    ("ConnectsInsideAttempts", DYNAMO + "attempt.rs", "while known() == Some(false) && Instant::now() < deadline {", "while known() == None && Instant::now() < deadline {", "connecting_that_takes_longer"),
    ("KeepsBadConnections", "limiter/src/store/connect.rs", ".retry_config(RetryConfig::disabled())", ".retry_config(RetryConfig::disabled().with_reconnect_mode(aws_sdk_dynamodb::config::retry::ReconnectMode::ReuseAllConnections))", "store::connections"),
    # Exactly once.
    ("RepeatedDeliveryCountsTwice", CORE + "slots.rs", "current.is_some_and(|write| write.slot.number == number)", "lost.is_some_and(|write| write.slot.number == number)", "delivered_twice"),
    ("UntraceableChangesAgain", CORE + "unconfirmed.rs", "!request.is_acquire() && carried.contains(&request.id)", "!request.is_acquire() && carried.contains(&request.id) && false", "more_processes_than_slots"),
    ("UnreadableIsForgotten", BUCKET + "actor.rs", "self.bucket.with_core(Core::lost);\n                self.failed", "self.failed", "responses_that_cannot"),
    ("ConflictsAreRefusals", BUCKET + "actor.rs", "WriteOutcome::NotSent(reason)\n                | WriteOutcome::Throttled(reason)\n                | WriteOutcome::Conflict(reason) => {", "WriteOutcome::Conflict(_) => return self.refused(None).await,\n                WriteOutcome::NotSent(reason) | WriteOutcome::Throttled(reason) => {", "hostile_traffic_is_exact"),
    # Several resources in one call.
    ("HalfOfACallIsKept", "limiter/src/acquire/cascade.rs", "    round.acquire(charges, &others, false).await?;\n    if round.refusals.is_empty() {", "    round.acquire(charges, &others, false).await?;\n    if round.refusals.is_empty() || round.grants.iter().any(Option::is_some) {", "calls_that_charge_several"),
    ("ResourcesInTheCallersOrder", "limiter/src/acquire/charge.rs", "resource(one).cmp(resource(other))", "resource(one).cmp(resource(one)).then(other.cmp(other))", "acquire::several::two_calls_that_each_hold"),
    ("WaitsAtEveryResource", WAIT, "Some(short) => self.charges[short].part == part,", "Some(_) => true,", "acquire::several::a_call_that_waits_for_the_budget"),
    ("AmbiguousLimitsAreGuessed", "limiter/src/acquire/lease.rs", "            [_] => Ok(first),\n", "            [_, ..] => Ok(first),\n", "acquire::several::a_limit_that_several"),
    # Waiting.
    ("WaitsBeforeAsking", WAIT, "if !others_wait {", "if others_wait && false {", "patient_calls_on_a_full_bucket"),
    ("PatientCallsAreRefused", WAIT, "RetryAfter::After(wait) if Instant::now() + wait <= self.deadline", "RetryAfter::After(wait) if Instant::now() + wait * 1_000 <= self.deadline", "waiting_calls_are_served_in_order"),
    ("WaitersAskAlone", WAIT, "turn.wake_next(|batch| charge.fits(batch));", "let _ = (turn, charge);", "calls_that_wait_are_combined"),
    ("CallsWithoutAChanceWait", WAIT, "turn.is_behind() && !self.is_due(refused)", "turn.is_behind() && !self.is_due(refused) && false", "acquire::wait_order"),
    ("SeveralAtTheHead", BUCKET + "wait_queue.rs", "if self.woken > 0 {", "if self.woken > 1_000 {", "waiting_calls_are_served_in_order"),
    ("NoJitter", BUCKET + "backoff.rs", "entropy.up_to((wait / WAIT_JITTER).min(MAX_WAIT_JITTER))", "entropy.up_to((wait / WAIT_JITTER).min(MAX_WAIT_JITTER)) * 0", "processes_whose_tokens_are_due"),
    # Outages.
    ("SearchesForever", CORE + "mod.rs", "(nothing_to_search || self.search_stopped)", "nothing_to_search", "an_unconfirmed_write_is_searched_for_once"),
    ("NotSentIsUnconfirmed", BUCKET + "actor.rs", "WriteOutcome::Lost(reason) => {\n                    lost += 1;", "WriteOutcome::Lost(reason) | WriteOutcome::NotSent(reason) => {\n                    lost += 1;", "a_refused_connection_leaves_nothing"),
    ("NoBreaker", BUCKET + "table_health.rs", "let open = breaker.open()?;", "let open = breaker.open().filter(|_| false)?;", "calls_in_an_outage_send_little"),
    ("ReadsCloseTheBreaker", BUCKET + "breaker.rs", "operation == Operation::Read && open.writes_failed", "operation == Operation::Read && !open.writes_failed", "acquire::breaker::while_only_writes_fail"),
    ("FirstResponseCloses", BUCKET + "breaker.rs", "open.responses >= self.responses_to_close", "open.responses >= 1", "calls_in_an_outage_send_little"),
    ("ProbesWithoutPause", BUCKET + "backoff.rs", "let most = doubled(FIRST_PROBE, probes).min(LONGEST_PROBE);", "let most = doubled(FIRST_PROBE, probes).min(Duration::from_millis(1));", "an_outage_is_quiet"),
    ("RetriesWithoutPace", BUCKET + "table_health.rs", "self.retry_pace().reserve(self.clock.elapsed())", "self.retry_pace().reserve(self.clock.elapsed()) * 0", "an_outage_is_quiet"),
    ("ThrottlingOpensBreaker", BUCKET + "actor.rs", "WriteOutcome::Lost(reason) | WriteOutcome::NotSent(reason) => {\n                    shared", "WriteOutcome::Lost(reason) | WriteOutcome::NotSent(reason) | WriteOutcome::Throttled(reason) => {\n                    shared", "throttling_does_not_open"),
    ("CountedCallsAreFree", BUCKET + "outage_fraction.rs", "own.changed(*change));", "own.changed(*change * 0));", "while_the_table_comes_and_goes"),
    ("SettlingWaitsForTraffic", CORE + "mod.rs", "!has_older && (has_newer || self.has_nothing_to_do())", "!has_older && !has_newer && self.has_nothing_to_do()", "acquire::bucket_task"),
    ("DisconnectsAreFree", "limiter/src/tower/call.rs", "refund_on_disconnect: false,", "refund_on_disconnect: true,", "acquire::layer_costs"),
    # Quotas and limits on calls in flight.
    ("RefundIntoAnyPeriod", QUOTAS, "(Some(Held::Period(end)), Some(open)) => end == open,", "(Some(Held::Period(_)), Some(_)) => true,", "limiter:worlds::kinds"),
    ("PeriodsByOwnBoundaries", QUOTAS, "Some(end) if now < end => (self.used, Some(end)),", "Some(end) if self.period.end_after(now) <= end => (self.used, Some(end)),", "limiter:worlds::kinds"),
    ("UsedQuotasExpire", QUOTAS, "if self.used_after(demand) > 0 || self.topped_up + demand.top_up > 0 {", "if self.topped_up + demand.top_up > 0 {", "schema:kind_changes"),
    ("ReclaimsEarly", PERMITS, "const GRACE_MILLIS: i64 = 2_000;", "const GRACE_MILLIS: i64 = -3_000;", "limiter:worlds::kinds"),
    ("UnconfirmedRenewalsCount", CORE + "permits.rs", "self.lot.lose();\n    }\n}", "self.lot.renewed(self.to);\n    }\n}", "worlds::kinds"),
    # Token chunks.
    ("ChunkSpentTwice", CORE + "chunks/mod.rs", "for (limit, amount) in amounts {\n            add(&mut chunk.amounts, limit, -amount);", "for (limit, amount) in amounts {\n            add(&mut chunk.amounts, limit, -amount * 0);", "chunks::"),
    ("ChunkReturnedTwice", CORE + "chunks/mod.rs", "(limit, -amount))", "(limit, -amount * 2))", "chunks::"),
    ("ChunkSpentAfterChange", CORE + "chunks/mod.rs", "bucket.is_none_or(|bucket| bucket.etag == chunk.image.etag)", "bucket.is_none_or(|bucket| bucket.etag == chunk.image.etag || true)", "chunks::"),
    ("ChunkNotCounted", BUCKET + "handle.rs", "self.shared.counters().chunk_tokens_changed(change);", "self.shared.counters().chunk_tokens_changed(change * 0);", "chunks::"),
]


def source(file):
    return (ROOT / file).read_text()


def changes(rule):
    """The changes that break a rule: file, text, replacement."""
    _, file, text, replacement, _, *more = rule
    return [(file, text, replacement), *(more[0] if more else [])]


def check():
    wrong = [rule[0] for rule in RULES if any(source(file).count(text) != 1 for file, text, _ in changes(rule))]
    for name in wrong:
        print(f"broken-rules: a text of {name} does not occur exactly once", file=sys.stderr)
    return not wrong


def fresh_copy():
    copy = ROOT / "target" / "broken-rules" / "source"
    shutil.rmtree(copy, ignore_errors=True)
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    for tracked in filter(None, names):
        if (ROOT / tracked).is_file() or (ROOT / tracked).is_symlink():
            (copy / tracked).parent.mkdir(parents=True, exist_ok=True)
            # With its time, so that cargo compiles only what is broken; a link to a folder stays one.
            shutil.copy2(ROOT / tracked, copy / tracked, follow_symlinks=False)
    return copy


def notices(copy, rule):
    name, tests = rule[0], rule[4]
    for file, text, replacement in changes(rule):
        (copy / file).write_text((copy / file).read_text().replace(text, replacement))
    environment = dict(os.environ, CARGO_TARGET_DIR=str(ROOT / "target"))
    elsewhere = re.match(r"(\w+):(?!:)(.*)", tests)
    folder, tests = elsewhere.groups() if elsewhere else (rule[1].split("/")[0], tests)
    target = ["--test", "main"] if folder == "schema" or tests.startswith(("acquire::", "store::")) else ["--lib"]
    package = "zae-limiter" if folder == "limiter" else f"zae-limiter-{folder}"
    cargo = [os.environ.get("CARGO", "cargo"), "test", "--quiet", "--locked", "-p", package, *target]
    try:
        subprocess.run([*cargo, "--no-run"], cwd=copy, env=environment, check=True)
        failed = subprocess.run([*cargo, "--", tests], cwd=copy, env=environment).returncode != 0
    finally:
        # Written again, so that cargo compiles it again: an older time would not be noticed.
        for file, _, _ in changes(rule):
            (copy / file).write_text(source(file))
            # The copy's builds take the place of the project's own, for cargo too.
            os.utime(ROOT / file)
    print(f"{name}: {'noticed' if failed else 'NOT NOTICED'}", flush=True)
    return failed


def main():
    if not check():
        return 1
    if sys.argv[1:] == ["--check"]:
        return 0
    wanted = [rule for rule in RULES if not sys.argv[1:] or rule[0] in sys.argv[1:]]
    copy = fresh_copy()
    return 0 if wanted and all([notices(copy, rule) for rule in wanted]) else 1


sys.exit(main())
