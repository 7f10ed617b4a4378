//! What options must be, and how mistakes in them are told.

use zae_limiter_template::{
    Architecture, Error, IndexProjection, LambdaFunction, StackName, StackOptions, StackOptionsBuilder,
    StreamStart, WindowKind,
};

fn mistakes(options: StackOptionsBuilder) -> Vec<(&'static str, String)> {
    let invalid = options.build().unwrap_err();
    invalid
        .mistakes()
        .iter()
        .map(|mistake| (mistake.field, mistake.value.clone()))
        .collect()
}

fn fields(options: StackOptionsBuilder) -> Vec<&'static str> {
    mistakes(options).into_iter().map(|(field, _)| field).collect()
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let options = StackOptions::default();
    assert_eq!(options, StackOptions::builder().build().unwrap());
    assert_eq!(
        options.snapshot_windows(),
        [WindowKind::Hourly, WindowKind::Daily]
    );
    assert_eq!(
        (options.usage_retention_days(), options.audit_retention_days()),
        (90, 90)
    );
    assert_eq!((options.lambda_timeout(), options.lambda_memory()), (60, 256));
    assert_eq!(
        (options.log_retention_days(), options.audit_archive_glacier_days()),
        (30, 90)
    );
    assert_eq!(
        (
            options.lambda_duration_threshold_pct(),
            options.pitr_recovery_days()
        ),
        (80, None)
    );
    assert!(
        options.enable_aggregator()
            && options.enable_alarms()
            && options.enable_audit_archival()
            && options.create_iam()
    );
    assert!(
        !options.create_iam_roles() && !options.enable_tracing() && !options.enable_deletion_protection()
    );
    assert_eq!(options.lambda_architecture(), Architecture::X86_64);
    assert_eq!(options.gsi2_projection(), IndexProjection::Keys);
    assert_eq!(options.stream_start(), StreamStart::TrimHorizon);
}

#[test]
fn all_mistakes_are_told_together_with_field_value_and_rule() {
    let invalid = StackOptions::builder()
        .lambda_memory(64)
        .log_retention_days(2)
        .aggregator_role_arn("my-role")
        .snapshot_windows("hourly,weekly")
        .create_iam(false)
        .create_iam_roles(true)
        .build()
        .unwrap_err();
    let text = invalid.to_string();
    assert_eq!(invalid.mistakes().len(), 5, "{text}");
    for expected in [
        "the stack options have 5 mistakes:",
        "lambda_memory is 64: must be between 128 and 3008",
        "log_retention_days is 2: must be one of 1, 3, 5,",
        "aggregator_role_arn is \"my-role\": must be arn:PARTITION:iam::ACCOUNT:role/NAME",
        "snapshot_windows is \"hourly,weekly\": must be one or more of hourly, daily, monthly",
        "create_iam_roles is true: must be false when create_iam is false",
    ] {
        assert!(text.contains(expected), "{expected:?} is missing in {text}");
    }
}

#[test]
fn numbers_are_accepted_up_to_their_bounds_and_refused_beyond() {
    type Set = fn(StackOptionsBuilder, i64) -> StackOptionsBuilder;
    let bounds: [(&str, Set, i64, i64); 15] = [
        (
            "usage_retention_days",
            StackOptionsBuilder::usage_retention_days,
            1,
            3650,
        ),
        (
            "audit_retention_days",
            StackOptionsBuilder::audit_retention_days,
            1,
            3650,
        ),
        (
            "aggregator_parallelization",
            StackOptionsBuilder::aggregator_parallelization,
            1,
            10,
        ),
        (
            "pitr_recovery_days",
            StackOptionsBuilder::pitr_recovery_days,
            1,
            35,
        ),
        (
            "log_retention_days",
            StackOptionsBuilder::log_retention_days,
            1,
            3653,
        ),
        ("lambda_timeout", StackOptionsBuilder::lambda_timeout, 1, 900),
        ("lambda_memory", StackOptionsBuilder::lambda_memory, 128, 3008),
        (
            "lambda_reserved_concurrency",
            StackOptionsBuilder::lambda_reserved_concurrency,
            1,
            10_000,
        ),
        (
            "lambda_duration_threshold_pct",
            StackOptionsBuilder::lambda_duration_threshold_pct,
            1,
            100,
        ),
        (
            "alarm_error_rate_pct",
            StackOptionsBuilder::alarm_error_rate_pct,
            0,
            99,
        ),
        (
            "alarm_iterator_age_seconds",
            StackOptionsBuilder::alarm_iterator_age_seconds,
            1,
            79_200,
        ),
        (
            "alarm_throttled_requests",
            StackOptionsBuilder::alarm_throttled_requests,
            0,
            1_000_000,
        ),
        (
            "audit_archive_glacier_days",
            StackOptionsBuilder::audit_archive_glacier_days,
            1,
            3650,
        ),
        (
            "audit_archive_object_lock_days",
            StackOptionsBuilder::audit_archive_object_lock_days,
            1,
            36_500,
        ),
        ("lambda_timeout", StackOptionsBuilder::lambda_timeout, 1, 900),
    ];
    for (field, set, min, max) in bounds {
        for valid in [min, max] {
            assert!(
                set(StackOptions::builder(), valid).build().is_ok(),
                "{field} {valid}"
            );
        }
        for invalid in [min - 1, max + 1, i64::MIN, i64::MAX] {
            assert_eq!(
                mistakes(set(StackOptions::builder(), invalid)),
                [(field, invalid.to_string())]
            );
        }
    }
}

#[test]
fn words_that_are_no_choice_are_refused() {
    let options = StackOptions::builder()
        .lambda_architecture("riscv")
        .gsi2_projection("some")
        .stream_start("now")
        .acquire_policy("none")
        .audit_archive_object_lock_mode("strict");
    let expected = [
        "stream_start",
        "gsi2_projection",
        "lambda_architecture",
        "acquire_policy",
        "audit_archive_object_lock_mode",
    ];
    assert_eq!(fields(options), expected);
}

#[test]
fn no_windows_is_a_mistake() {
    assert_eq!(
        fields(StackOptions::builder().snapshot_windows("")),
        ["snapshot_windows"]
    );
    assert_eq!(
        fields(StackOptions::builder().snapshot_windows(Vec::new())),
        ["snapshot_windows"]
    );
}

#[test]
fn tags_must_fit_aws_and_leave_ours_alone() {
    let tags =
        |key: &str, value: &str| StackOptions::builder().tags([(key.to_owned(), value.to_owned())].into());
    assert!(tags("team", "a+b=c@d:e/f.g_h-i j").build().is_ok());
    let long = |length| "k".repeat(length);
    for (key, value) in [
        ("", "x"),
        ("aws:x", "x"),
        ("AWS:x", "x"),
        ("ManagedBy", "me"),
        ("zae-limiter:name", "x"),
        ("Application", "x"),
        ("a*b", "x"),
        ("team", "a\nb"),
        (long(129).as_str(), "x"),
        ("team", long(257).as_str()),
    ] {
        assert_eq!(fields(tags(key, value)), ["tags"], "{key} {value}");
    }
    let many =
        |count| StackOptions::builder().tags((0..count).map(|i| (format!("t{i}"), String::new())).collect());
    assert!(many(43).build().is_ok());
    assert_eq!(fields(many(44)), ["tags"]);
}

#[test]
fn an_object_lock_is_refused_for_a_bucket_that_is_not_ours() {
    let options = StackOptions::builder()
        .archive_bucket("audit")
        .audit_archive_object_lock_days(1);
    assert_eq!(fields(options), ["audit_archive_object_lock_days"]);
}

#[test]
fn keys_of_archives_need_their_bucket() {
    let keys = || {
        StackOptions::builder()
            .aggregator_code_key("a.zip")
            .archiver_code_key("b.zip")
    };
    assert_eq!(fields(keys()), ["aggregator_code_key", "archiver_code_key"]);
    assert!(keys().code_bucket("code").build().is_ok());
}

#[test]
fn names_that_a_stack_name_makes_too_long_are_told_before_anything_else() {
    let name = StackName::parse("a".repeat(55)).unwrap();
    assert!(StackOptions::default().check_name(&name).is_ok());
    let formats = StackOptions::builder()
        .create_iam_roles(true)
        .role_name_format(format!("{}{{}}", "r".repeat(10)))
        .policy_name_format(format!("{}{{}}", "p".repeat(100)))
        .build()
        .unwrap();
    let invalid = formats.check_name(&name).unwrap_err();
    let of = |field| {
        invalid
            .mistakes()
            .iter()
            .filter(|mistake| mistake.field == field)
            .count()
    };
    assert_eq!((of("role_name_format"), of("policy_name_format")), (5, 3));
    assert!(formats.check_name(&StackName::parse("abc").unwrap()).is_ok());
    let regional = StackOptions::builder().regional_iam_names(true).build().unwrap();
    assert!(regional.check_name(&name).is_err());
    assert!(
        regional
            .to_builder()
            .create_iam(false)
            .build()
            .unwrap()
            .check_name(&name)
            .is_ok()
    );
}

#[test]
fn a_file_is_yaml_or_json_and_says_the_same() {
    let yaml =
        "lambda_memory: 512\nsnapshot_windows: hourly, monthly\ntags:\n  team: platform\nkms_key_arn: null\n";
    let json =
        r#"{"lambda_memory": 512, "snapshot_windows": ["hourly", "monthly"], "tags": {"team": "platform"}}"#;
    let (yaml, json) = (
        StackOptions::from_file(yaml).unwrap(),
        StackOptions::from_file(json).unwrap(),
    );
    assert_eq!(yaml, json);
    assert_eq!(yaml.snapshot_windows(), [WindowKind::Hourly, WindowKind::Monthly]);
}

#[test]
fn an_empty_file_means_the_defaults() {
    for empty in ["", "\n", "# nothing yet\n", "{}"] {
        assert_eq!(
            StackOptions::from_file(empty).unwrap(),
            StackOptions::default(),
            "{empty:?}"
        );
    }
}

#[test]
fn a_file_with_a_field_that_does_not_exist_is_refused() {
    let error = StackOptions::from_file("lambda_memroy: 512").unwrap_err();
    assert!(matches!(error, Error::OptionsFile { .. }));
    assert!(error.to_string().contains("lambda_memroy"), "{error}");
}

#[test]
fn a_file_with_mistakes_tells_all_of_them() {
    let error = StackOptions::from_file("lambda_memory: 1\nlambda_timeout: -1\n").unwrap_err();
    let Error::Options(invalid) = error else {
        panic!("{error}")
    };
    assert_eq!(invalid.mistakes().len(), 2);
}

#[test]
fn options_read_back_what_they_write() {
    let options = StackOptions::builder()
        .lambda_memory(512)
        .kms_key_arn("arn:aws:kms:eu-west-1:123456789012:key/a");
    let options = options.snapshot_windows("daily").build().unwrap();
    let json = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<StackOptions>(&json).unwrap(), options);
    assert_eq!(
        StackOptions::from_file(&serde_yaml::to_string(&options).unwrap()).unwrap(),
        options
    );
    assert!(serde_json::from_str::<StackOptions>(r#"{"lambda_memory": 1}"#).is_err());
}

#[test]
fn without_iam_a_function_needs_a_role_of_its_own() {
    let options = StackOptions::builder()
        .create_iam(false)
        .archiver_role_arn("arn:aws:iam::123456789012:role/x");
    let options = options.build().unwrap();
    assert_eq!(options.functions(), [LambdaFunction::Archiver]);
    assert_eq!(options.functions_without_role(), [LambdaFunction::Aggregator]);
    assert!(StackOptions::default().functions_without_role().is_empty());
}

#[test]
fn names_of_roles_that_are_not_made_need_not_fit() {
    let name = StackName::parse("a".repeat(55)).unwrap();
    let long = || StackOptions::builder().role_name_format("pb-{}-PowerUser");
    assert!(long().build().unwrap().check_name(&name).is_err());
    let given = long()
        .aggregator_role_arn("arn:aws:iam::123456789012:role/a")
        .archiver_role_arn("arn:aws:iam::123456789012:role/b");
    assert!(given.build().unwrap().check_name(&name).is_ok());
    let none = long().enable_aggregator(false).enable_audit_archival(false);
    assert!(none.build().unwrap().check_name(&name).is_ok());
    let roles = long().enable_aggregator(false).enable_audit_archival(false);
    let roles = roles.create_iam_roles(true).build().unwrap();
    assert!(roles.check_name(&name).is_err());
}

#[test]
fn regional_names_fit_in_the_region_with_the_longest_name() {
    let options = StackOptions::builder().regional_iam_names(true).build().unwrap();
    let fits = |length: usize| {
        let name = StackName::parse("a".repeat(length)).unwrap();
        options.check_name(&name).is_ok()
    };
    // 64 for a role, less `-us-isof-south-1` and `-aggr`.
    assert!(fits(43) && !fits(44));
}
