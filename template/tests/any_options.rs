//! Whatever the options, the template is sound.

use crate::variants;
use proptest::prelude::*;
use zae_limiter_template::{StackName, StackOptions, StackOptionsBuilder, Template, export, render};

fn switches() -> impl Strategy<Value = StackOptionsBuilder> {
    prop::collection::vec(any::<bool>(), 14).prop_map(|on| {
        let options = StackOptions::builder()
            .enable_aggregator(on[0])
            .enable_audit_archival(on[1])
            .enable_alarms(on[2])
            .create_iam(on[3])
            .create_iam_roles(on[3] && on[4])
            .enable_tracing(on[5])
            .enable_deletion_protection(on[6])
            .enable_contributor_insights(on[7]);
        let options = if on[8] {
            options.kms_key_arn(variants::KEY)
        } else {
            options
        };
        let options = if on[9] {
            options.alarm_sns_topic(variants::TOPIC)
        } else {
            options
        };
        let options = if on[10] {
            options.permission_boundary("boundary")
        } else {
            options
        };
        let options = if on[11] {
            options.archive_bucket("archive")
        } else {
            options
        };
        let options = if on[12] {
            options.aggregator_role_arn("arn:aws:iam::123456789012:role/a")
        } else {
            options
        };
        if on[13] {
            options.archiver_role_arn("arn:aws:iam::123456789012:role/b")
        } else {
            options
        }
    })
}

fn numbers() -> impl Strategy<Value = (i64, i64, i64, i64, String)> {
    (
        128_i64..=3008,
        1_i64..=900,
        1_i64..=100,
        1_i64..=79_200,
        "[a-zA-Z][a-zA-Z0-9-]{2,54}",
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_options_render_keep_the_rules_and_fit((memory, timeout, pct, age, name) in numbers(), options in switches()) {
        let options = options
            .lambda_memory(memory)
            .lambda_timeout(timeout)
            .lambda_duration_threshold_pct(pct)
            .alarm_iterator_age_seconds(age)
            .build()
            .unwrap();
        let template = render(&StackName::parse(&name).unwrap(), &options, &variants::code()).unwrap();
        prop_assert!(template.to_json().len() <= Template::LONGEST_BODY);
        prop_assert_eq!(&Template::parse(&template.to_yaml()).unwrap(), &template);
        let exported = export::cloudformation(&options).unwrap();
        prop_assert!(exported.logical_ids().eq(template.logical_ids()), "an export has the same resources");
    }
}
