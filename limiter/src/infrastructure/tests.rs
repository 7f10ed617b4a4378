#![allow(clippy::unwrap_used)]

use super::*;

fn outcome(change: &str) -> Outcome {
    let outcome = serde_json::json!({
        "change": change, "stack_id": "", "outputs": {}, "audit_retention_days": 90, "version": "0.1.0", "warnings": []
    });
    serde_json::from_value(outcome).unwrap()
}

fn denied() -> Error {
    Error::PermissionDenied {
        operation: "PutItem",
        table: "demo".to_owned(),
        message: "no".to_owned(),
    }
}

#[test]
fn waiting_for_the_deployment_of_another_process_ends_well_without_the_right_to_write() {
    let awaited = with_records(outcome("awaited"), Err(denied())).unwrap();
    assert!(awaited.warnings[0].contains("not written"), "{awaited:?}");
    assert!(
        with_records(outcome("awaited"), Ok(()))
            .unwrap()
            .warnings
            .is_empty()
    );
    let unchanged = with_records(outcome("none"), Err(denied())).unwrap();
    assert!(unchanged.warnings[0].contains("not written"), "{unchanged:?}");
    // Nobody else writes the records of a stack that this process has changed.
    assert!(with_records(outcome("created"), Err(denied())).is_err());
}
