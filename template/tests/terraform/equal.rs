//! The module is the template.

use proptest::prelude::*;
use serde_json::{Value, json};
use zae_limiter_template::{Accepts, StackName, StackOptions};

use crate::terraform::cloudformation;
use crate::terraform::compare::{compare, evaluated, ids, with_code};
use crate::terraform::schema::Schema;
use crate::variants;

#[test]
fn the_module_is_the_template_for_every_variant() {
    let variants = [
        StackOptions::builder(),
        variants::everything(),
        variants::nothing_optional(),
        variants::enterprise(),
        variants::alternatives(),
        StackOptions::builder().create_iam(false),
        StackOptions::builder()
            .enable_aggregator(false)
            .enable_dashboard(true),
        StackOptions::builder()
            .enable_audit_archival(false)
            .enable_dashboard(true),
        variants::nothing_optional().enable_dashboard(true),
    ];
    for options in variants {
        compare("limiter", options);
    }
    compare(variants::LONGEST_NAME, variants::everything());
}

/// Each option at a value that is not its default, alone.
#[test]
fn every_option_does_to_the_module_what_it_does_to_the_template() {
    for field in StackOptions::fields() {
        let value = match (&field.default, field.accepts) {
            _ if [
                "code_bucket",
                "code_directory",
                "aggregator_code_key",
                "archiver_code_key",
            ]
            .contains(&field.name) =>
            {
                continue;
            }
            (Value::Bool(on), _) => json!(!on),
            (_, Accepts::Range { least, .. }) if field.default == json!(least) => json!(least + 1),
            (_, Accepts::Range { least, .. }) => json!(least),
            (_, Accepts::Numbers(numbers)) => json!(numbers.last()),
            (_, Accepts::OneOf(words)) => json!(words.iter().find(|word| field.default != **word)),
            (_, Accepts::Windows) => json!(["monthly", "hourly"]),
            (_, Accepts::Tags) => json!({ "team": "search" }),
            (_, Accepts::List { .. }) => match field.name {
                "lambda_subnet_ids" => json!(["subnet-0a1b2c3d", "subnet-1a1b2c3d"]),
                "lambda_security_group_ids" => json!(["sg-0a1b2c3d"]),
                "trusted_accounts" => json!(["210987654321"]),
                other => panic!("give {other} a value"),
            },
            _ => match field.name {
                "kms_key_arn" => json!(variants::KEY),
                "alarm_sns_topic" => json!(variants::TOPIC),
                "archive_bucket" => json!("company-archive"),
                "event_bus" => json!("company-events"),
                "iam_path" => json!("/team/"),
                "permission_boundary" => json!("team/boundary"),
                "role_name_format" | "policy_name_format" => json!("a-{}-b"),
                "aggregator_role_arn" | "archiver_role_arn" => json!("arn:aws:iam::123456789012:role/mine"),
                other => panic!("give {other} a value"),
            },
        };
        let mut options = json!({ field.name: value });
        if field.name == "create_iam" {
            options["aggregator_role_arn"] = json!("arn:aws:iam::123456789012:role/mine");
        }
        match field.name {
            "lambda_subnet_ids" => options["lambda_security_group_ids"] = json!(["sg-0a1b2c3d"]),
            "lambda_security_group_ids" => options["lambda_subnet_ids"] = json!(["subnet-0a1b2c3d"]),
            "trusted_accounts" | "iam_path" => options["create_iam_roles"] = json!(true),
            _ => {}
        }
        if field.name == "audit_archive_object_lock_mode" {
            options["audit_archive_object_lock_days"] = json!(30);
        }
        compare("limiter", serde_json::from_value(options).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_module_is_the_template_for_any_options(
        on in prop::collection::vec(any::<bool>(), 12),
        memory in 128_i64..=3008,
        timeout in 1_i64..=900,
        pct in 1_i64..=100,
        errors in 0_i64..=99,
        name in "[a-zA-Z][a-zA-Z0-9-]{2,54}",
    ) {
        let options = StackOptions::builder()
            .enable_aggregator(on[0])
            .enable_audit_archival(on[1])
            .enable_alarms(on[2])
            .create_iam(on[3])
            .create_iam_roles(on[3] && on[4])
            .enable_tracing(on[5])
            .enable_dashboard(on[6])
            // A region makes names longer.
            .regional_iam_names(on[7] && name.len() <= 40)
            .lambda_memory(memory)
            .lambda_timeout(timeout)
            .lambda_duration_threshold_pct(pct)
            .alarm_error_rate_pct(errors);
        let options = if on[8] { options.kms_key_arn(variants::KEY) } else { options };
        let options = if on[9] { options.archive_bucket("archive") } else { options };
        let options = if on[10] { options.aggregator_role_arn("arn:aws:iam::123456789012:role/a") } else { options };
        let options = if on[11] { options.archiver_role_arn("arn:aws:iam::123456789012:role/b") } else { options };
        compare(&name, options);
    }
}

/// The comparison must be able to fail.
#[test]
fn a_module_that_differs_is_noticed() {
    let name = StackName::parse("limiter").unwrap();
    let options = with_code(StackOptions::builder());
    let evaluated = evaluated(&name, &options);
    let schema = Schema::read();
    let queue = &evaluated.resources[&("aws_sqs_queue".to_owned(), "aggregator_dlq".to_owned())];
    for (attribute, value) in [
        ("visibility", json!(1)),
        ("visibility_timeout_seconds", json!("x")),
        ("arn", json!("a")),
    ] {
        let mut changed = queue.clone();
        changed[attribute] = value;
        assert_eq!(
            schema
                .findings("resource_schemas", "aws_sqs_queue", &changed)
                .len(),
            1,
            "{attribute}"
        );
    }
    let mut resources = evaluated.resources;
    let key = ("aws_sqs_queue".to_owned(), "aggregator_dlq".to_owned());
    resources.get_mut(&key).unwrap()["delay_seconds"] = json!(1);
    let extra = std::panic::catch_unwind(|| cloudformation::stack(&resources, &ids()));
    assert!(extra.is_err(), "an attribute that CloudFormation does not have");
}
