//! What the resources are, option by option.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use zae_limiter_template::{FunctionCode, StackName, StackOptions, StackOptionsBuilder, Template, render};

use crate::variants;

fn template(options: StackOptionsBuilder) -> Template {
    render(
        &StackName::parse("limiter").unwrap(),
        &options.build().unwrap(),
        &variants::code(),
    )
    .unwrap()
}

fn properties(template: &Template, id: &str) -> Value {
    template.to_value()["Resources"][id]["Properties"].clone()
}

fn has(template: &Template, id: &str) -> bool {
    template.logical_ids().any(|known| known == id)
}

#[test]
fn both_mappings_retry_for_22_hours_and_lose_nothing_silently() {
    let template = template(StackOptions::builder());
    for (function, batch) in [("Aggregator", 1000), ("Archiver", 100)] {
        let mapping = properties(&template, &format!("{function}EventSourceMapping"));
        for (property, expected) in [
            ("Enabled", json!(true)),
            ("StartingPosition", json!("TRIM_HORIZON")),
            ("BatchSize", json!(batch)),
            ("MaximumBatchingWindowInSeconds", json!(5)),
            ("MaximumRetryAttempts", json!(-1)),
            ("MaximumRecordAgeInSeconds", json!(79_200)),
            ("BisectBatchOnFunctionError", json!(true)),
            ("ParallelizationFactor", json!(1)),
            ("FunctionResponseTypes", json!(["ReportBatchItemFailures"])),
            (
                "EventSourceArn",
                json!({ "Fn::GetAtt": ["RateLimitsTable", "StreamArn"] }),
            ),
        ] {
            assert_eq!(mapping[property], expected, "{function} {property}");
        }
        let queue = json!({ "Fn::GetAtt": [format!("{function}DLQ"), "Arn"] });
        assert_eq!(mapping["DestinationConfig"]["OnFailure"]["Destination"], queue);
        assert_eq!(mapping["FilterCriteria"]["Filters"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn filters_are_on_keys_and_say_exactly_this() {
    let template = template(StackOptions::builder());
    let pattern = |id| -> Value {
        let text = properties(&template, id)["FilterCriteria"]["Filters"][0]["Pattern"].clone();
        serde_json::from_str(text.as_str().unwrap()).unwrap()
    };
    assert_eq!(
        pattern("AggregatorEventSourceMapping"),
        json!({ "eventName": ["INSERT", "MODIFY"], "dynamodb": { "Keys": { "SK": { "S": [{ "prefix": "#BUCKET#" }] } } } })
    );
    assert_eq!(
        pattern("ArchiverEventSourceMapping"),
        json!({ "eventName": ["INSERT"], "dynamodb": { "Keys": { "PK": { "S": [{ "prefix": "AUDIT#" }] } } } })
    );
}

#[test]
fn functions_get_the_settings_they_need_and_their_own_queue() {
    let template = template(
        StackOptions::builder()
            .snapshot_windows("monthly,hourly")
            .usage_retention_days(7),
    );
    let variables = |id| properties(&template, id)["Environment"]["Variables"].clone();
    assert_eq!(
        variables("AggregatorFunction"),
        json!({
            "DLQ_URL": { "Ref": "AggregatorDLQ" },
            "SNAPSHOT_TTL_DAYS": "7",
            "SNAPSHOT_WINDOWS": "hourly,monthly",
            "TABLE_NAME": { "Ref": "RateLimitsTable" },
            "ZAE_LIMITER_SCHEMA_VERSION": "0.8.0",
        })
    );
    assert_eq!(
        variables("ArchiverFunction"),
        json!({
            "ARCHIVE_BUCKET_NAME": { "Ref": "AuditArchiveBucket" },
            "DLQ_URL": { "Ref": "ArchiverDLQ" },
            "ZAE_LIMITER_SCHEMA_VERSION": "0.8.0",
        })
    );
}

#[test]
fn every_option_of_a_function_reaches_both() {
    let options = StackOptions::builder()
        .lambda_memory(512)
        .lambda_timeout(30)
        .lambda_architecture("arm64")
        .lambda_reserved_concurrency(3)
        .enable_tracing(true)
        .log_retention_days(7);
    let template = template(options);
    for function in ["Aggregator", "Archiver"] {
        let properties_of = properties(&template, &format!("{function}Function"));
        assert_eq!(properties_of["MemorySize"], 512);
        assert_eq!(properties_of["Timeout"], 30);
        assert_eq!(properties_of["Architectures"], json!(["arm64"]));
        assert_eq!(properties_of["ReservedConcurrentExecutions"], 3);
        assert_eq!(properties_of["TracingConfig"]["Mode"], "Active");
        assert_eq!(
            properties(&template, &format!("{function}LogGroup"))["RetentionInDays"],
            7
        );
    }
}

#[test]
fn table_options_reach_the_table() {
    let options = StackOptions::builder()
        .gsi2_projection("all")
        .pitr_recovery_days(7)
        .enable_deletion_protection(true)
        .enable_contributor_insights(true);
    let table = properties(&template(options), "RateLimitsTable");
    assert_eq!(
        table["GlobalSecondaryIndexes"][1]["Projection"]["ProjectionType"],
        "ALL"
    );
    assert_eq!(
        table["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"],
        7
    );
    assert_eq!(table["DeletionProtectionEnabled"], true);
    assert_eq!(table["ContributorInsightsSpecification"]["Enabled"], true);
    let table = properties(&template(StackOptions::builder()), "RateLimitsTable");
    let projections = [("GSI1", "ALL"), ("GSI2", "KEYS_ONLY"), ("GSI3", "KEYS_ONLY")];
    for (index, (name, projection)) in projections.into_iter().enumerate() {
        assert_eq!(table["GlobalSecondaryIndexes"][index]["IndexName"], name);
        assert_eq!(
            table["GlobalSecondaryIndexes"][index]["Projection"],
            json!({ "ProjectionType": projection })
        );
    }
}

#[test]
fn a_key_encrypts_everything_that_holds_data() {
    let template = template(variants::everything());
    let key = variants::KEY;
    assert_eq!(
        properties(&template, "RateLimitsTable")["SSESpecification"]["KMSMasterKeyId"],
        key
    );
    for function in ["Aggregator", "Archiver"] {
        assert_eq!(
            properties(&template, &format!("{function}DLQ"))["KmsMasterKeyId"],
            key
        );
        assert_eq!(
            properties(&template, &format!("{function}LogGroup"))["KmsKeyId"],
            key
        );
        assert_eq!(
            properties(&template, &format!("{function}Function"))["KmsKeyArn"],
            key
        );
    }
    let bucket = properties(&template, "AuditArchiveBucket");
    let rule = &bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"][0];
    assert_eq!(rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"], key);
}

#[test]
fn a_given_archive_bucket_is_used_and_not_touched() {
    let template = template(StackOptions::builder().archive_bucket("company-audit"));
    assert!(!has(&template, "AuditArchiveBucket") && !has(&template, "AuditArchiveBucketPolicy"));
    assert_eq!(
        properties(&template, "ArchiverFunction")["Environment"]["Variables"]["ARCHIVE_BUCKET_NAME"],
        "company-audit"
    );
    let data = &properties(&template, "ArchiverRole")["Policies"][0]["PolicyDocument"]["Statement"][0];
    assert_eq!(
        data["Resource"],
        json!([{ "Fn::Sub": "arn:${AWS::Partition}:s3:::company-audit/audit/*" }])
    );
}

#[test]
fn an_object_lock_is_on_the_bucket_from_its_creation() {
    let options = StackOptions::builder().audit_archive_object_lock_days(30);
    let bucket = properties(&template(options), "AuditArchiveBucket");
    assert_eq!(bucket["ObjectLockEnabled"], true);
    let retention = &bucket["ObjectLockConfiguration"]["Rule"]["DefaultRetention"];
    assert_eq!(*retention, json!({ "Mode": "GOVERNANCE", "Days": 30 }));
}

#[test]
fn thresholds_reach_the_alarms() {
    let options = StackOptions::builder()
        .lambda_timeout(100)
        .lambda_duration_threshold_pct(50)
        .alarm_error_rate_pct(5)
        .alarm_iterator_age_seconds(600)
        .alarm_throttled_requests(10);
    let template = template(options);
    for (alarm, threshold) in [
        ("GSI2WriteThrottleAlarm", 10),
        ("LambdaDurationAlarm", 50_000),
        ("ArchiverDurationAlarm", 50_000),
        ("StreamIteratorAgeAlarm", 600_000),
        ("ArchiverIteratorAgeAlarm", 600_000),
        ("DynamoDBReadThrottleAlarm", 10),
        ("DynamoDBWriteThrottleAlarm", 10),
        ("AggregatorDLQAlarm", 1),
        ("ArchiverDLQAlarm", 1),
    ] {
        assert_eq!(properties(&template, alarm)["Threshold"], threshold, "{alarm}");
    }
    for alarm in ["LambdaErrorRateAlarm", "ArchiverErrorRateAlarm"] {
        let alarm = properties(&template, alarm);
        assert_eq!(
            (&alarm["Statistic"], &alarm["Threshold"]),
            (&json!("Average"), &json!(0.05))
        );
    }
}

#[test]
fn a_stopped_mapping_raises_an_alarm_and_a_quiet_table_does_not() {
    let template = template(StackOptions::builder());
    for function in ["Aggregator", "Archiver"] {
        let mapping = format!("{function}EventSourceMapping");
        assert_eq!(
            properties(&template, &mapping)["MetricsConfig"],
            json!({ "Metrics": ["EventCount"] })
        );
        let of_mapping = json!([{ "Name": "EventSourceMappingUUID", "Value": { "Ref": mapping } }]);
        let stopped = properties(&template, &format!("{function}StoppedAlarm"));
        assert_eq!(stopped["MetricName"], "PolledEventCount");
        assert_eq!(stopped["Dimensions"], of_mapping);
        // A quiet table reports 0, which is not below 0; a mapping that does not read reports nothing.
        assert_eq!(
            (
                &stopped["ComparisonOperator"],
                &stopped["Threshold"],
                &stopped["TreatMissingData"]
            ),
            (&json!("LessThanThreshold"), &json!(0), &json!("breaching"))
        );
        let failed = properties(&template, &format!("{function}FailedEventsAlarm"));
        assert_eq!(failed["MetricName"], "FailedInvokeEventCount");
        assert_eq!(failed["Dimensions"], of_mapping);
        assert_eq!(failed["TreatMissingData"], "notBreaching");
        for (alarm, metric) in [
            ("Throttle", "Throttles"),
            ("Destination", "DestinationDeliveryFailures"),
        ] {
            let alarm = properties(&template, &format!("{function}{alarm}Alarm"));
            assert_eq!(alarm["MetricName"], metric);
            let function =
                json!([{ "Name": "FunctionName", "Value": { "Ref": format!("{function}Function") } }]);
            assert_eq!(alarm["Dimensions"], function);
        }
    }
}

#[test]
fn every_alarm_tells_the_topic_when_it_begins_and_when_it_is_over() {
    let template = template(StackOptions::builder().alarm_sns_topic(variants::TOPIC));
    let alarms = template
        .resources()
        .filter(|(_, resource)| resource["Type"] == "AWS::CloudWatch::Alarm");
    let mut count = 0;
    for (id, alarm) in alarms {
        assert_eq!(
            alarm["Properties"]["AlarmActions"],
            json!([variants::TOPIC]),
            "{id}"
        );
        assert_eq!(alarm["Properties"]["OKActions"], json!([variants::TOPIC]), "{id}");
        count += 1;
    }
    assert_eq!(count, 24);
}

#[test]
fn a_part_that_is_switched_off_leaves_nothing_behind() {
    let of = |template: &Template, part: &str| template.logical_ids().filter(|id| id.contains(part)).count();
    let no_aggregator = template(StackOptions::builder().enable_aggregator(false));
    assert_eq!(of(&no_aggregator, "Aggregator"), 0);
    assert!(!has(&no_aggregator, "LambdaErrorRateAlarm") && has(&no_aggregator, "DynamoDBReadThrottleAlarm"));
    let no_archival = template(StackOptions::builder().enable_audit_archival(false));
    assert_eq!(of(&no_archival, "Archive"), 0);
    let no_alarms = template(StackOptions::builder().enable_alarms(false));
    assert_eq!(of(&no_alarms, "Alarm"), 0);
    let no_iam = template(StackOptions::builder().create_iam(false));
    assert_eq!(of(&no_iam, "Role") + of(&no_iam, "Policy"), 0);
    let options = variants::nothing_optional().build().unwrap();
    let nothing = render(
        &StackName::parse("limiter").unwrap(),
        &options,
        &FunctionCode::none(),
    )
    .unwrap();
    assert_eq!(nothing.logical_ids().collect::<Vec<_>>(), ["RateLimitsTable"]);
}

#[test]
fn a_function_that_runs_as_a_given_role_has_no_role_in_the_stack() {
    let template = template(variants::enterprise());
    assert!(!has(&template, "AggregatorRole") && !has(&template, "ArchiverRole"));
    let role = &properties(&template, "AggregatorFunction")["Role"];
    assert_eq!(*role, "arn:aws:iam::123456789012:role/pb-limiter-aggr");
}

#[test]
fn role_and_policy_names_follow_their_formats_and_roles_their_boundary() {
    let template = template(variants::enterprise());
    assert_eq!(
        properties(&template, "AppRole")["RoleName"],
        "pb-limiter-app-PowerUser"
    );
    assert_eq!(
        properties(&template, "AcquireOnlyPolicy")["ManagedPolicyName"],
        "pb-limiter-acq"
    );
    let boundary =
        json!({ "Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/company-boundary" });
    assert_eq!(properties(&template, "AppRole")["PermissionsBoundary"], boundary);
}

#[test]
fn regional_names_differ_between_regions() {
    let template = template(StackOptions::builder().regional_iam_names(true));
    let name = json!({ "Fn::Sub": "limiter-${AWS::Region}-acq" });
    assert_eq!(
        properties(&template, "AcquireOnlyPolicy")["ManagedPolicyName"],
        name
    );
    let name = json!({ "Fn::Sub": "limiter-${AWS::Region}-aggr" });
    assert_eq!(properties(&template, "AggregatorRole")["RoleName"], name);
}

#[test]
fn the_dashboard_shows_what_the_alarms_watch() {
    assert!(!has(&template(StackOptions::builder()), "Dashboard"));
    let template = template(StackOptions::builder().enable_dashboard(true));
    let body = properties(&template, "Dashboard")["DashboardBody"]["Fn::Sub"]
        .as_str()
        .unwrap()
        .to_owned();
    let body: Value = serde_json::from_str(&body).unwrap();
    let widgets = body["widgets"].as_array().unwrap();
    let mut shown = std::collections::BTreeSet::new();
    for widget in widgets {
        assert_eq!(widget["properties"]["region"], "${AWS::Region}");
        // A dot stands for the same as in the metric above.
        for metric in widget["properties"]["metrics"].as_array().unwrap() {
            shown.extend(metric[1].as_str().filter(|name| *name != ".").map(str::to_owned));
        }
    }
    for (id, alarm) in template
        .resources()
        .filter(|(_, resource)| resource["Type"] == "AWS::CloudWatch::Alarm")
    {
        let metric = alarm["Properties"]["MetricName"].as_str().unwrap();
        // Both are seen in the log: one as the timeout it comes close to, the other as a queue that stays empty.
        let elsewhere = ["Duration", "DestinationDeliveryFailures"].contains(&metric);
        assert!(elsewhere || shown.contains(metric), "{id}: {metric}");
    }
    let usage = widgets
        .iter()
        .find(|widget| widget["properties"]["title"] == "Acquires per resource")
        .unwrap();
    assert_eq!(
        usage["properties"]["metrics"],
        json!([[{
            "expression": "SEARCH('{ZaeLimiter,FunctionName,Resource} MetricName=\"Acquires\" FunctionName=\"${AggregatorFunction}\"', 'Sum', 300)",
            "id": "e1",
        }]])
    );
}

#[test]
fn trusted_accounts_may_assume_the_role_for_applications_and_no_other() {
    let builder = StackOptions::builder();
    let template = template(builder.create_iam_roles(true).trusted_accounts(["210987654321"]));
    let principals = |id| -> Vec<Value> {
        let role = properties(&template, id);
        let statements = role["AssumeRolePolicyDocument"]["Statement"]
            .as_array()
            .unwrap()
            .clone();
        statements
            .iter()
            .map(|trust| trust["Principal"]["AWS"].clone())
            .collect()
    };
    let own = principals("AdminRole");
    assert_eq!(own.len(), 1);
    assert_eq!(principals("ReadOnlyRole"), own);
    let trusted = principals("AppRole");
    assert_eq!(trusted.len(), 2);
    assert_eq!(trusted[0], own[0]);
    assert_eq!(
        trusted[1],
        json!({ "Fn::Sub": "arn:${AWS::Partition}:iam::210987654321:root" })
    );
    let policies = &properties(&template, "AppRole")["ManagedPolicyArns"];
    assert_eq!(*policies, json!([{ "Ref": "AcquireOnlyPolicy" }]));
}
