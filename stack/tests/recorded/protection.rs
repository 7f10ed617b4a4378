//! Deletion protection of the table while a stack is created.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_stack::CreateStackOutput;
use aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetError;
use aws_sdk_cloudformation::operation::list_change_sets::ListChangeSetsOutput;
use aws_sdk_cloudformation::operation::update_stack::UpdateStackOutput;
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::operation::tag_resource::TagResourceError;
use aws_sdk_dynamodb::operation::update_table::{UpdateTableError, UpdateTableOutput};
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Change, Error, Event, StackOptions};

use super::logged_import::{Import, TAG};
use super::tape::{Tape, looks, refusal};
use super::throttling::OFTEN;
use super::{ID, changed, count, stack, tags};
use crate::support::{Diary, bare};

fn protects(body: Option<&str>) -> bool {
    let template: serde_json::Value = serde_json::from_str(body.unwrap()).unwrap();
    let protection = "/Resources/RateLimitsTable/Properties/DeletionProtectionEnabled";
    template.pointer(protection) == Some(&true.into())
}

#[tokio::test(start_paused = true)]
async fn a_protected_table_is_created_unprotected_so_that_the_creation_can_roll_back() {
    let unprotected = mock!(Cfn::create_stack)
        .match_requests(|input| !protects(input.template_body()))
        .then_output(|| CreateStackOutput::builder().stack_id(ID).build());
    let protected = mock!(Cfn::update_stack)
        .match_requests(|input| protects(input.template_body()))
        .then_output(|| UpdateStackOutput::builder().stack_id(ID).build());
    let statuses: &[_] = &["", "CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];
    let tape = Tape::of([looks(statuses, tags(&bare())), unprotected, protected]).with_free_site();
    let (created, calls) = stack(&changed(), &tape);
    assert_eq!(created.ensure().await.unwrap().change, Change::Created);
    assert_eq!(
        (count(&calls, "CreateStack"), count(&calls, "UpdateStack")),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_table_is_protected_before_its_import_and_unprotected_after_only_if_asked() {
    let cases: [(StackOptions, Import, &[&str]); 3] = [
        (
            bare(),
            Import::of_unprotected_table(),
            &["tag", "protection true", "import", "protection false", "untag"],
        ),
        (
            changed(),
            Import::of_unprotected_table(),
            &["tag", "protection true", "import", "untag"],
        ),
        (bare(), Import::of_protected_table(), &["import"]),
    ];
    for (options, import, expected) in cases {
        let (importing, _) = stack(&options, &import.tape);
        assert_eq!(importing.ensure().await.unwrap().change, Change::Imported);
        assert_eq!(import.calls(), expected);
    }
}

/// An import whose change set cannot be executed.
fn import_that_cannot_start() -> Import {
    let mut import = Import::of_unprotected_table();
    let denied = mock!(Cfn::execute_change_set)
        .then_error(|| ExecuteChangeSetError::generic(refusal("AccessDenied", "no")));
    let none = mock!(Cfn::list_change_sets).then_output(|| ListChangeSetsOutput::builder().build());
    import.tape.cloudformation.insert(0, denied);
    import.tape.cloudformation.push(none);
    import
}

#[tokio::test(start_paused = true)]
async fn an_import_that_cannot_start_leaves_the_protection_as_it_was() {
    let import = import_that_cannot_start();
    stack(&bare(), &import.tape).0.ensure().await.unwrap_err();
    assert_eq!(
        import.calls(),
        ["tag", "protection true", "protection false", "untag"]
    );
}

pub(crate) fn warns_of_the_tag(diary: &Diary) {
    let told = diary.events();
    assert!(
        told.iter()
            .any(|event| matches!(event, Event::Warning { text } if text.contains(TAG))),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_import_that_cannot_start_leaves_behind_is_told() {
    let import = import_that_cannot_start().refusing_untag();
    let diary = Diary::default();
    let (importing, _) = stack(&bare(), &import.tape);
    importing.observer(diary.clone()).ensure().await.unwrap_err();
    warns_of_the_tag(&diary);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_tagged_is_imported() {
    for code in ["AccessDeniedException", "ResourceInUseException"] {
        let import = Import::of_unprotected_table().with_dynamodb(
            mock!(DynamoDb::tag_resource).then_error(move || TagResourceError::generic(refusal(code, "no"))),
        );
        let diary = Diary::default();
        let (importing, _) = stack(&bare(), &import.tape);
        let outcome = importing.observer(diary.clone()).ensure().await.unwrap();
        assert_eq!(outcome.change, Change::Imported, "{code}");
        assert_eq!(
            import.calls(),
            ["protection true", "import", "protection false"],
            "{code}"
        );
        let told = diary.events();
        assert!(
            told.iter()
                .any(|event| matches!(event, Event::NotChecked { what, .. } if what.contains("protection"))),
            "{code}: {told:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_protected_keeps_no_tag() {
    let import = Import::of_unprotected_table().refusing_protection();
    let error = stack(&bare(), &import.tape).0.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert_eq!(import.calls(), ["tag", "untag"]);
}

#[tokio::test(start_paused = true)]
async fn protection_is_taken_off_once_aws_answers() {
    let slow = mock!(DynamoDb::update_table)
        .sequence()
        .output(|| UpdateTableOutput::builder().build())
        .error(|| UpdateTableError::generic(refusal("ThrottlingException", "Rate exceeded")))
        .times(OFTEN)
        .output(|| UpdateTableOutput::builder().build())
        .repeatedly()
        .build();
    let import = Import::of_unprotected_table().with_dynamodb(slow);
    let (importing, calls) = stack(&bare(), &import.tape);
    let outcome = importing.ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Imported);
    assert!(
        !outcome
            .warnings
            .iter()
            .any(|warning| warning.contains("protection")),
        "{outcome:?}"
    );
    assert_eq!(count(&calls, "UpdateTable"), OFTEN + 2);
    assert_eq!(import.calls(), ["tag", "import", "untag"]);
}

#[tokio::test(start_paused = true)]
async fn the_protection_of_an_import_that_was_rolled_back_is_taken_off_by_the_next() {
    let mut first = Import::of_unprotected_table();
    let rolled_back: &[_] = &["", "", "CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE"];
    let looked = looks(rolled_back, tags(&bare()));
    first.tape.cloudformation.insert(0, looked);
    let error = stack(&bare(), &first.tape).0.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    assert_eq!(
        first.calls(),
        ["tag", "protection true", "import"],
        "the table stays protected while its stack may still be deleted"
    );

    let cases: [(StackOptions, &[&str]); 2] = [
        (bare(), &["import", "protection false", "untag"]),
        (changed(), &["import", "untag"]),
    ];
    for (options, expected) in cases {
        let next = Import::of_tagged_table();
        let (importing, _) = stack(&options, &next.tape);
        assert_eq!(importing.ensure().await.unwrap().change, Change::Imported);
        assert_eq!(next.calls(), expected);
    }
}
