//! Levels with a mode, and the clients that must not read them.

use zae_limiter_schema::{ConfigLevel, ConfigRecord, Limit, LimitSet, Mode};

use crate::records::examples::{number, text};

fn level_with(mode: Option<Mode>, limit: &str) -> ConfigRecord {
    let limits = LimitSet::new([limit.parse::<Limit>().unwrap()]).unwrap();
    ConfigRecord {
        mode,
        ..ConfigRecord::new(ConfigLevel::System, limits)
    }
}

#[test]
fn a_mode_is_stored_by_its_name() {
    for mode in Mode::ALL {
        let record = level_with(Some(mode), "rpm:100");
        let item = record.to_item();
        assert_eq!(item.get("mode"), Some(&text(mode.as_str())));
        assert_eq!(ConfigRecord::from_item(&item).unwrap(), record);
        assert_eq!(mode.to_string().parse(), Ok(mode));
        assert_eq!(
            serde_json::to_string(&mode).unwrap(),
            format!("{:?}", mode.as_str())
        );
    }
    let error = "Observe".parse::<Mode>().unwrap_err().to_string();
    assert_eq!(
        error,
        "mode \"Observe\" is invalid: it must be enforce, observe, bypass or disabled"
    );
}

/// A client that does not know modes enforces the limits: right where they are enforced, wrong everywhere else.
#[test]
fn a_level_that_older_clients_would_misread_has_a_format_that_they_refuse() {
    for (mode, limit, format) in [
        (None, "rpm:100", None),
        (None, "spend:500 per month", Some(2)),
        (Some(Mode::Enforce), "rpm:100", None),
        (Some(Mode::Enforce), "spend:500 per month", Some(2)),
        (Some(Mode::Observe), "rpm:100", Some(3)),
        (Some(Mode::Bypass), "rpm:100", Some(3)),
        (Some(Mode::Disabled), "spend:500 per month", Some(3)),
    ] {
        let item = level_with(mode, limit).to_item();
        assert_eq!(
            item.get("limits_format").cloned(),
            format.map(number),
            "{mode:?} {limit}"
        );
    }
    let bare = ConfigRecord {
        mode: Some(Mode::Disabled),
        ..ConfigRecord::new(ConfigLevel::System, LimitSet::default())
    };
    assert_eq!(
        bare.to_item().get("limits_format"),
        Some(&number(3)),
        "without limits"
    );
}

#[test]
fn a_mode_that_cannot_be_read_is_an_error_and_can_be_repaired() {
    let mut item = level_with(Some(Mode::Bypass), "rpm:100").to_item();
    item.inner_mut().insert("mode".to_owned(), text("sometimes"));
    let error = ConfigRecord::from_item(&item).unwrap_err();
    assert_eq!(error.attribute, "mode");
    assert!(
        error
            .reason
            .contains("must be enforce, observe, bypass or disabled"),
        "{error}"
    );
    let readable = ConfigRecord::readable(ConfigLevel::System, &item);
    assert_eq!((readable.mode, readable.limits.len()), (None, 1));
}
