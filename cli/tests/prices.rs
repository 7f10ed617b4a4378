use serde_json::json;
use zae_limiter::Timestamp;
use zae_limiter::usage::WindowKind;

use crate::table::{put, snapshot};
use crate::tool::Bench;

const LITELLM: &str = r#"{
    "gpt-4o": {
        "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-06,
        "max_output_tokens": 16384, "output_cost_per_image": 0.04
    },
    "vendor.small-v1:0": {"input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07}
}"#;

#[test]
fn prices_are_set_shown_and_deleted() {
    let bench = Bench::new();
    bench.ok(&["resource", "set-defaults", "gpt-4", "-l", "usd:5000000/day"]);
    let set = bench.json(&[
        "prices",
        "set",
        "gpt-4",
        "--input-price",
        "$2.50",
        "--output-price",
        "10 usd",
        "--max-output",
        "4096",
        "--token-limit",
        "tpm",
        "--token-limit",
        "tpd",
    ]);
    let prices = json!({ "input": "$2.50", "output": "$10.00", "max_output": 4096, "money_limit": "usd",
        "token_limits": ["tpd", "tpm"] });
    assert_eq!(set, json!({ "resource": "gpt-4", "prices": prices }));
    assert_eq!(bench.json(&["prices", "show", "gpt-4"]), set);
    let shown = bench.ok(&["prices", "show", "gpt-4"]);
    assert!(
        shown.contains("input: $2.50\noutput: $10.00\nmax_output: 4096\n"),
        "{shown}"
    );
    let level = bench.json(&["resource", "get-defaults", "gpt-4"]);
    assert_eq!((&level["prices"], &level["configured"]), (&prices, &json!(true)));

    let deleted = bench.json(&["prices", "delete", "gpt-4", "--yes"]);
    assert_eq!(deleted, json!({ "resource": "gpt-4", "deleted": true }));
    let nothing = bench.ok(&["prices", "delete", "gpt-4", "--yes"]);
    assert!(nothing.contains("nothing to delete"), "{nothing}");
    assert!(
        bench
            .ok(&["prices", "show", "gpt-4"])
            .contains("no prices are set")
    );
    assert_eq!(
        bench.json(&["resource", "get-defaults", "gpt-4"])["limits"][0]["name"],
        "usd"
    );
}

#[test]
fn the_system_has_prices_for_every_other_resource() {
    let bench = Bench::new();
    bench.ok(&["prices", "set", "--system", "--call-price", "$0.01"]);
    assert_eq!(
        bench.json(&["prices", "show", "--system"])["prices"]["per_call"],
        "$0.01"
    );
    assert_eq!(
        bench.json(&["prices", "delete", "--system", "--yes"])["deleted"],
        true
    );
    assert_eq!(
        bench.json(&["prices", "delete", "--system", "--yes"])["deleted"],
        false
    );
    bench.run(&["prices", "show"]).expect_exit(2);
    bench.run(&["prices", "show", "gpt-4", "--system"]).expect_exit(2);
}

#[test]
fn invalid_prices_are_refused() {
    let bench = Bench::new();
    let numbers = bench
        .run(&["prices", "set", "gpt-4", "--input-price", "2.50"])
        .expect_exit(2);
    assert!(numbers.stderr.contains("such as $12.50"), "{numbers:?}");
    let nothing = bench.run(&["prices", "set", "gpt-4"]);
    assert!(
        nothing.code != 0 && nothing.stderr.contains("at least one price"),
        "{nothing:?}"
    );
}

/// Imports both models, with more options.
fn import<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let models = ["-m", "gpt-4o", "--model", "vendor.small-v1:0=small"];
    [&["prices", "import", file], &models[..], more].concat()
}

#[test]
fn prices_are_imported_from_litellms_file() {
    let bench = Bench::new();
    let file = bench.write("prices.json", LITELLM);
    let planned = bench.json(&import(&file, &["--dry-run"]));
    assert_eq!(planned["stored"], false);
    assert_eq!(
        planned["resources"][0]["left_out"],
        json!(["output_cost_per_image"])
    );
    assert_eq!(bench.json(&["prices", "show", "small"])["prices"], json!(null));

    bench.ok(&[
        "prices",
        "set",
        "gpt-4o",
        "--input-price",
        "$1",
        "--default-output",
        "500",
        "--money-limit",
        "spend",
    ]);
    let table = bench.ok(&import(&file, &[]));
    assert!(
        table.contains("$2.50")
            && table.contains("left out output_cost_per_image")
            && table.contains("stored"),
        "{table}"
    );
    let stored = bench.json(&["prices", "show", "gpt-4o"]);
    let expected = json!({ "input": "$2.50", "output": "$10.00", "cached_input": "$1.25", "max_output": 16384,
        "default_output": 500, "money_limit": "spend", "token_limits": ["tpm"] });
    assert_eq!(stored["prices"], expected, "what the file does not say stays");
    assert_eq!(
        bench.json(&["prices", "show", "small"])["prices"]["input"],
        "$0.15"
    );

    let part = bench.ok(&import(&file, &["--as-limits-file"]));
    let limits = bench.write("limits.yaml", &part);
    bench.ok(&["limits", "apply", &limits, "--yes"]);
    let applied = bench.json(&["prices", "show", "small"]);
    assert_eq!(applied["prices"]["output"], "$0.60");
}

#[test]
fn nothing_is_imported_if_a_model_cannot_be() {
    let bench = Bench::new();
    let file = bench.write("prices.json", LITELLM);
    let wrong = bench.run(&["prices", "import", &file, "-m", "gpt-4o", "-m", "gpt-4"]);
    assert!(
        wrong.code != 0
            && wrong
                .stderr
                .contains("gpt-4: is not in the file; did you mean \"gpt-4o\"?"),
        "{wrong:?}"
    );
    let twice = bench.run(&[
        "prices",
        "import",
        &file,
        "-m",
        "gpt-4o",
        "-m",
        "vendor.small-v1:0=gpt-4o",
    ]);
    assert!(twice.stderr.contains("prices of two models"), "{twice:?}");
    assert_eq!(bench.json(&["prices", "show", "gpt-4o"])["prices"], json!(null));
    let name = bench
        .run(&["prices", "import", &file, "-m", "vendor.small-v1:0"])
        .expect_exit(2);
    assert!(name.stderr.contains("write MODEL=RESOURCE"), "{name:?}");
}

#[test]
fn prices_in_a_limits_file_are_planned_line_by_line() {
    let bench = Bench::new();
    let file =
        |prices: &str| format!("resources: {{gpt-4: {{limits: {{usd: 5000000/day}}, prices: {prices}}}}}");
    let first = bench.write("first.yaml", &file("{input: $1, output: $2}"));
    bench.ok(&["limits", "apply", &first, "--yes"]);
    let second = bench.write("second.yaml", &file("{input: $1, output: $3}"));
    let plan = bench.ok(&["limits", "plan", &second]);
    assert!(
        plan.contains("- prices.output: $2.00") && plan.contains("+ prices.output: $3.00"),
        "{plan}"
    );
    assert!(!plan.contains("prices.input"), "{plan}");
}

#[test]
fn usage_of_the_limit_that_counts_money_is_printed_as_money() {
    let bench = Bench::new();
    bench.ok(&["prices", "set", "gpt-4", "--input-price", "$1"]);
    let hour = WindowKind::Hourly.window_at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap());
    let counted = [("tpm", 1_500), ("usd", 1_250_000)];
    put(&bench, [snapshot("user-1", &hour, 2, &counted, 0)]);
    let table = bench.ok(&["usage", "list", "-r", "gpt-4"]);
    assert!(table.contains("tpm=1,500 usd=$1.25"), "{table}");
    let chart = bench.ok(&["usage", "list", "-e", "user-1", "--plot"]);
    assert!(chart.contains("gpt-4 usd, hourly, total $1.25"), "{chart}");
    let totals = bench.ok(&["usage", "summary", "-e", "user-1"]);
    assert!(totals.contains("$1.25") && totals.contains("1,500"), "{totals}");
    let json = bench.json(&["usage", "summary", "-e", "user-1"]);
    assert_eq!(
        json["limits"]["usd"],
        json!({ "total": 1_250_000, "average": 1_250_000.0, "money": "$1.25" })
    );
    assert_eq!(json["limits"]["tpm"]["money"], json!(null));
}
