//! The table that the example `costs` prints, held to what is promised.

#[path = "../../examples/costs/meter.rs"]
mod meter;
#[path = "../../examples/costs/paths.rs"]
mod paths;

#[tokio::test(start_paused = true)]
async fn every_path_costs_what_is_promised() {
    let measured: Vec<_> = paths::measure()
        .await
        .unwrap()
        .into_iter()
        .map(|cost| {
            let units = format!("{:.1} {:.1}", cost.bill.read_units, cost.bill.write_units);
            (cost.path, cost.bill.calls.len(), units, cost.round_trips)
        })
        .collect();
    let promised = [
        // Path, calls, RCU and WCU, round trips.
        ("cold acquire, new bucket", 2, "3.5 2.0", 2),
        ("cold acquire, new bucket, resource known", 2, "2.0 2.0", 2),
        ("warm acquire", 1, "0.0 1.0", 1),
        ("warm acquire that needs refill", 1, "0.0 1.0", 1),
        ("adjust two limits and commit", 1, "0.0 1.0", 1),
        ("commit without adjustments", 0, "0.0 0.0", 0),
        ("rollback", 1, "0.0 1.0", 1),
        ("100 acquires at once", 1, "0.0 1.0", 1),
        ("cold acquire, bucket exists", 2, "3.5 1.0", 2),
        ("warm acquire, another process wrote since", 2, "0.0 2.0", 2),
        ("acquire after the configuration's minute", 2, "3.0 1.0", 2),
        ("peek", 1, "0.5 0.0", 1),
        ("refusal", 1, "1.0 0.0", 1),
        ("refusal again within a second", 0, "0.0 0.0", 0),
        ("warm acquire, cascade of two", 2, "0.0 2.0", 1),
        (
            "cascade of three after the configuration's minute",
            4,
            "7.0 3.0",
            2,
        ),
        ("warm acquire, cascade of three", 3, "0.0 3.0", 1),
        ("adjust and commit, cascade of two", 2, "0.0 2.0", 1),
    ];
    let promised: Vec<_> = promised
        .into_iter()
        .map(|(path, calls, units, round_trips)| (path, calls, units.to_owned(), round_trips))
        .collect();
    assert_eq!(measured, promised);
}
