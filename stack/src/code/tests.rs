//! Where archives are found, and which are refused before anything happens.

#![allow(clippy::unwrap_used)]

use super::sample::{Method, archive, function, machine, program};
use super::*;

fn options() -> StackOptions {
    StackOptions::builder()
        .enable_audit_archival(false)
        .build()
        .unwrap()
}

fn arm() -> StackOptions {
    let arm = options().to_builder().lambda_architecture("arm64");
    arm.build().unwrap()
}

/// Why an archive of the aggregator is refused.
async fn refusal(archive: Vec<u8>) -> CodeError {
    let code = Code::bundled([(LambdaFunction::Aggregator, archive)]);
    code.load(&options()).await.unwrap_err()
}

#[tokio::test]
async fn archives_are_found_by_architecture_first() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, script: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, archive("bootstrap", Method::Stored, script.as_bytes())).unwrap();
    };
    write("aggregator.zip", "#!/bin/sh\n");
    let code = Code::Directory(directory.path().into());
    let any = code.load(&options()).await.unwrap().archives[&LambdaFunction::Aggregator].key();
    write("x86_64/aggregator.zip", "#!/bin/bash\n");
    let own = code.load(&options()).await.unwrap().archives[&LambdaFunction::Aggregator].key();
    assert_ne!(any, own);
}

#[tokio::test]
async fn an_archive_that_must_be_there_is_missed_by_its_paths() {
    let directory = tempfile::tempdir().unwrap();
    let error = Code::Directory(directory.path().into())
        .load(&options())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("x86_64/aggregator.zip"), "{error}");
    let if_built = Code::IfBuilt(directory.path().into());
    assert!(if_built.load(&options()).await.unwrap().archives.is_empty());
}

#[tokio::test]
async fn without_archive_and_without_stack_the_error_says_what_to_do() {
    let loaded = Code::AsDeployed.load(&options()).await.unwrap();
    let error = loaded
        .locations("demo", &options(), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("make functions") && error.contains("enable_aggregator"),
        "{error}"
    );
}

#[tokio::test]
async fn something_else_than_an_archive_is_refused() {
    let error = refusal(b"#!/bin/sh".to_vec()).await;
    assert!(matches!(error, CodeError::NotAnArchive { .. }), "{error}");
}

#[tokio::test]
async fn an_archive_that_does_not_begin_with_the_program_is_refused() {
    let other = archive("README.md", Method::Stored, &program(machine::X86_64));
    let nested = archive("bin/bootstrap", Method::Stored, &program(machine::X86_64));
    let cut_off = function(machine::X86_64)[..45].to_vec();
    for archive in [other, nested, cut_off, b"PK\x03\x04".to_vec()] {
        let error = refusal(archive).await;
        assert!(matches!(error, CodeError::NoProgram { .. }), "{error}");
        assert!(error.to_string().contains("bootstrap"), "{error}");
    }
}

#[tokio::test]
async fn an_archive_for_another_processor_is_refused() {
    let error = refusal(function(machine::ARM64)).await.to_string();
    assert!(
        error.contains("arm64") && error.contains("lambda_architecture x86_64"),
        "{error}"
    );
    let code = Code::bundled([(LambdaFunction::Aggregator, function(machine::ARM64))]);
    assert_eq!(code.load(&arm()).await.unwrap().archives.len(), 1);
}

#[tokio::test]
async fn an_archive_for_a_processor_that_lambda_does_not_have_is_refused() {
    let error = refusal(function(machine::RISC_V)).await.to_string();
    assert!(
        error.contains("ELF machine 0xf3") && error.contains("make functions ARCH=x86_64"),
        "{error}"
    );
}

#[tokio::test]
async fn another_processor_needs_an_archive_for_it() {
    let code = FunctionCode::none().with(
        LambdaFunction::Aggregator,
        CodeLocation::Object {
            bucket: CodeBucket::Artifacts,
            key: "a.zip".to_owned(),
        },
    );
    let name = zae_limiter_template::StackName::parse("demo").unwrap();
    let template = zae_limiter_template::render(&name, &options(), &code).unwrap();
    let deployed = Deployed::test(&template.to_json());
    let loaded = Code::AsDeployed.load(&options()).await.unwrap();
    assert!(loaded.locations("demo", &options(), Some(&deployed)).is_ok());
    let error = loaded
        .locations("demo", &arm(), Some(&deployed))
        .unwrap_err()
        .to_string();
    assert!(error.contains("make functions ARCH=arm64"), "{error}");
}
