//! Whatever the options, the template is sound.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use zae_limiter_template::{StackName, StackOptions, StackOptionsBuilder, Template, export, render};

use crate::variants;

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
        prop_assert!(template.size() <= Template::LONGEST_OBJECT);
        prop_assert_eq!(template.needs_upload(), template.to_json().len() > Template::LONGEST_BODY);
        prop_assert_eq!(&Template::parse(&template.to_yaml()).unwrap(), &template);
        let exported = export::cloudformation(&options).unwrap();
        prop_assert!(exported.logical_ids().eq(template.logical_ids()), "an export has the same resources");
    }

    /// The longest names and ARNs that AWS has make a template that CloudFormation takes from a bucket, not one that is refused.
    #[test]
    fn names_and_arns_of_any_length_render(
        name in "[a-zA-Z][a-zA-Z0-9-]{2,54}",
        topic in "[a-zA-Z0-9_-]{1,256}",
        role in "[a-zA-Z0-9+=,.@_/-]{1,576}",
        tags in prop::collection::btree_map("[a-zA-Z]{1,128}", "[a-z]{0,256}", 0..43),
    ) {
        let options = variants::everything()
            .alarm_sns_topic(format!("arn:aws-us-gov:sns:us-gov-west-1:123456789012:{topic}"))
            .aggregator_role_arn(format!("arn:aws-us-gov:iam::123456789012:role/{role}"))
            .kms_key_arn("arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/mrk-0123456789abcdef0123456789abcdef")
            .tags(tags)
            .build()
            .unwrap();
        let template = render(&StackName::parse(&name).unwrap(), &options, &variants::code()).unwrap();
        prop_assert!(template.size() <= Template::LONGEST_OBJECT);
        let exported = export::cloudformation(&options).unwrap();
        prop_assert!(exported.size() <= Template::LONGEST_OBJECT);
        let wrapper = export::terraform_wrapper(&options).unwrap();
        prop_assert!(wrapper.iter().any(|file| file.contents == exported.to_json()));
    }
}

/// Everything on with a topic's name of 47 characters once was refused.
#[test]
fn a_long_topic_makes_a_template_that_is_uploaded() {
    let topic = format!("arn:aws:sns:eu-central-1:123456789012:{}", "t".repeat(256));
    let options = variants::everything().alarm_sns_topic(topic).build().unwrap();
    let name = StackName::parse(variants::LONGEST_NAME).unwrap();
    let template = render(&name, &options, &variants::code()).unwrap();
    assert!(template.needs_upload() && template.size() < Template::LONGEST_OBJECT);
    let ordinary = render(&name, &StackOptions::default(), &variants::code()).unwrap();
    assert!(!ordinary.needs_upload());
}
