//! The example of the guide says what it should.

#[allow(dead_code, reason = "its main is for running it by itself")]
#[path = "../../examples/configuration.rs"]
mod configuration;

#[tokio::test]
async fn the_walk_through_the_four_levels_tells_where_each_limit_comes_from() {
    let mut told = vec![];
    configuration::walk_through(&mut told).await.unwrap();
    let told = String::from_utf8(told).unwrap();
    for (step, limits, from, policy) in [
        (
            "the builder's defaults",
            "rpm:10/min",
            "builder",
            "block (from builder)",
        ),
        (
            "set for the system",
            "rpm:20/min",
            "system",
            "block (from builder)",
        ),
        (
            "set for the resource",
            "rpm:100/min tpm:40000/min",
            "resource",
            "block (from resource)",
        ),
        (
            "set for the entity ",
            "rpm:300/min",
            "entity_default",
            "block (from resource)",
        ),
        (
            "set for the entity and resource",
            "rpm:1000/min:1500 tpd:5000000/day",
            "entity",
            "allow (from entity)",
        ),
        (
            "deleted again",
            "rpm:300/min",
            "entity_default",
            "block (from resource)",
        ),
        (
            "the entity's deleted too",
            "rpm:100/min tpm:40000/min",
            "resource",
            "block (from resource)",
        ),
    ] {
        let line = told
            .lines()
            .find(|line| line.starts_with(step))
            .unwrap_or_default();
        let rest: Vec<&str> = line[step.len().min(line.len())..].split_whitespace().collect();
        assert_eq!(
            rest.join(" "),
            format!("{limits} {from} {policy}"),
            "{step}: {told}"
        );
    }
    assert!(told.contains("Resources with defaults: gpt-4"), "{told}");
    assert!(
        told.contains("entity_created") && told.contains("by ops@example.com"),
        "{told}"
    );
}
