//! What a stack tells about the options that it was deployed with.

use std::collections::BTreeMap;

use zae_limiter_stack::{Change, Error};

use super::tape::{Tape, looks, template};
use super::{body, changed, stack, tags};
use crate::support::bare;

#[tokio::test(start_paused = true)]
async fn a_stack_tells_the_options_that_it_was_deployed_with() {
    let team = BTreeMap::from([("team".to_owned(), "search".to_owned())]);
    let deployed = changed().to_builder().audit_retention_days(7).tags(team);
    let deployed = deployed.build().unwrap();
    let tape = Tape::of([
        looks(&["UPDATE_COMPLETE"], tags(&deployed)),
        template(&body(&deployed)),
    ]);
    let (asked, calls) = stack(&bare(), &tape);
    assert_eq!(asked.deployed_options().await.unwrap(), deployed);
    assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"]);
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_does_not_tell_its_options_in_words_of_this_release_is_an_error() {
    let options_of = async |stored: serde_json::Value| {
        let mut deployed = body(&bare());
        deployed["Metadata"]["zae-limiter"]["options"] = stored;
        let tape = Tape::of([looks(&["CREATE_COMPLETE"], tags(&bare())), template(&deployed)]);
        stack(&bare(), &tape).0.deployed_options().await
    };
    for stored in [
        serde_json::Value::Null,
        r#"{"an_option_of_later":1}"#.into(),
        r#"{"lambda_memory":1}"#.into(),
    ] {
        let error = options_of(stored).await.unwrap_err();
        assert!(
            matches!(error, Error::OptionsUnknown { .. }) && error.to_string().contains("demo"),
            "{error}"
        );
    }
    assert!(options_of("{}".into()).await.is_ok());

    let (absent, _) = stack(
        &bare(),
        &Tape::of([looks(&[""], BTreeMap::new())]).with_free_site(),
    );
    assert!(matches!(
        absent.deployed_options().await,
        Err(Error::NoSuchStack { .. })
    ));
}

/// CloudFormation refuses to change metadata alone.
#[tokio::test(start_paused = true)]
async fn stored_options_that_make_no_difference_are_no_change() {
    let unused = bare().to_builder().lambda_memory(512).build().unwrap();
    let deployed = || {
        Tape::of([
            looks(&["UPDATE_COMPLETE"], tags(&bare())),
            template(&body(&bare())),
        ])
    };
    let (same, calls) = stack(&unused, &deployed());
    assert_eq!(same.ensure().await.unwrap().change, Change::None);
    assert_eq!(calls.names().len(), 2);
    let (same, _) = stack(&unused, &deployed());
    let plan = same.plan().await.unwrap();
    assert!(plan.is_empty(), "{plan}");
}
