//! Where the functions' code comes from.

mod archive;
mod compiled_in;
mod elf;
mod processor;
mod publish;
mod release;

pub(crate) use archive::Archive;
pub(crate) use publish::publish;
pub use release::Release;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zae_limiter_template::{CodeBucket, CodeLocation, FunctionCode, LambdaFunction, StackOptions};

use crate::Error;
use crate::deployed::Deployed;

/// Where the functions' archives come from.
///
/// Archives that the options name by key (`code_bucket`, `aggregator_code_key`, `archiver_code_key`) take precedence.
/// The default uses the `code_directory` option if it is set.
///
/// | Archives | Source |
/// |---|---|
/// | compiled into the program | `Code::CompiledIn`, feature `bundled-functions` |
/// | in a directory | [`Code::Directory`], [`Code::built_in`], or the option `code_directory` |
/// | published with a release | [`Code::release`] |
/// | in S3 | the options `code_bucket`, `aggregator_code_key`, `archiver_code_key` |
/// | in memory | [`Code::bundled`] |
/// | none: the deployed code stays | [`Code::AsDeployed`] |
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Code {
    /// No archives: an existing stack keeps its code. For applications that were built without the functions, and the default
    /// without the feature `bundled-functions`.
    #[cfg_attr(not(feature = "bundled-functions"), default)]
    AsDeployed,
    /// The archives that the feature `bundled-functions` compiled into the program, and the default with that feature.
    /// An archive that is missing for the architecture of the options is an error.
    #[cfg(feature = "bundled-functions")]
    #[default]
    CompiledIn,
    /// Archives in a directory, `{architecture}/{function}.zip` or `{function}.zip`. A missing archive is an error.
    Directory(PathBuf),
    /// Archives in a directory; functions without an archive keep their deployed code.
    IfBuilt(PathBuf),
    /// Archives in memory, such as from `include_bytes!`.
    Bundled(BTreeMap<LambdaFunction, Vec<u8>>),
    /// Archives of a release. An archive is downloaded when the stack's bucket does not have it yet.
    Release(Release),
}

impl Code {
    /// The archives that were built in this workspace: `target/functions/{architecture}/{function}.zip`.
    pub fn built_in(workspace: impl AsRef<Path>) -> Self {
        Self::IfBuilt(workspace.as_ref().join("target").join("functions"))
    }

    /// Archives in memory.
    ///
    /// ```
    /// use zae_limiter_stack::{Code, LambdaFunction};
    ///
    /// # let (aggregator, archiver) = (vec![], vec![]);
    /// let code = Code::bundled([(LambdaFunction::Aggregator, aggregator), (LambdaFunction::Archiver, archiver)]);
    /// assert!(matches!(code, Code::Bundled(archives) if archives.len() == 2));
    /// ```
    pub fn bundled(archives: impl IntoIterator<Item = (LambdaFunction, Vec<u8>)>) -> Self {
        Self::Bundled(archives.into_iter().collect())
    }

    /// Archives that were published with a release, or copied to a bucket of your own: see [`Release`].
    ///
    /// ```
    /// use zae_limiter_stack::{Code, LambdaFunction};
    ///
    /// # fn example() -> Result<(), zae_limiter_stack::Error> {
    /// let code = Code::release(
    ///     "https://github.com/OWNER/REPO/releases/download/v0.1.0",
    ///     [
    ///         (LambdaFunction::Aggregator, "8dcc7e601606217f3b754766511182a916b17e9a26a94c9d887104eba92e9bb2"),
    ///         (LambdaFunction::Archiver, "b7d8b1a0e5e2b3bd3b4a1c6d8f0e9a7c5b3d1f2e4a6c8e0f1a3b5c7d9e1f3a5b"),
    ///     ],
    /// )?;
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    pub fn release<'a>(
        address: &str,
        sha256: impl IntoIterator<Item = (LambdaFunction, &'a str)>,
    ) -> Result<Self, Error> {
        Release::new(address, sha256).map(Self::Release)
    }

    /// Reads the archives of the enabled functions. Those of a release are named, and downloaded when they are needed.
    pub(crate) async fn load(&self, options: &StackOptions) -> Result<Loaded, Error> {
        let named = FunctionCode::of(options);
        let mut archives = BTreeMap::new();
        for function in options.functions() {
            if named.get(function).is_some() {
                continue;
            }
            let archive = match self {
                Self::AsDeployed => from_options(function, options).await?,
                #[cfg(feature = "bundled-functions")]
                Self::CompiledIn => match from_options(function, options).await? {
                    Some(archive) => Some(archive),
                    None => Some(from_program(function, options)?),
                },
                Self::Directory(directory) => Some(from_directory(directory, function, options).await?),
                Self::IfBuilt(directory) => match archive_path(directory, function, options) {
                    Some(path) => Some(Archive::read(path).await?),
                    None => None,
                },
                Self::Bundled(archives) => match archives.get(&function) {
                    Some(bytes) => Some(Archive::new(bytes.clone(), &format!("the bundled {function}"))?),
                    None => None,
                },
                Self::Release(release) => Some(release.archive(function, options.lambda_architecture())?),
            };
            if let Some(archive) = &archive {
                archive.check_architecture(function, options.lambda_architecture())?;
            }
            archive.and_then(|archive| archives.insert(function, archive));
        }
        Ok(Loaded { named, archives })
    }
}

/// The archive in the `code_directory` of the options, if that is set.
async fn from_options(function: LambdaFunction, options: &StackOptions) -> Result<Option<Archive>, Error> {
    match options.code_directory() {
        Some(directory) => from_directory(Path::new(directory), function, options)
            .await
            .map(Some),
        None => Ok(None),
    }
}

#[cfg(feature = "bundled-functions")]
fn from_program(function: LambdaFunction, options: &StackOptions) -> Result<Archive, Error> {
    let wanted = options.lambda_architecture();
    match Code::compiled_in(wanted.as_str(), function.as_str()) {
        Some(bytes) => Archive::new(bytes.to_vec(), &format!("the {function} in this program")),
        None => Err(Error::NotCompiledIn { function, wanted }),
    }
}

fn archive_path(directory: &Path, function: LambdaFunction, options: &StackOptions) -> Option<PathBuf> {
    candidates(directory, function, options)
        .into_iter()
        .find(|path| path.is_file())
}

fn candidates(directory: &Path, function: LambdaFunction, options: &StackOptions) -> [PathBuf; 2] {
    let file = format!("{function}.zip");
    [
        directory.join(options.lambda_architecture().as_str()).join(&file),
        directory.join(file),
    ]
}

async fn from_directory(
    directory: &Path,
    function: LambdaFunction,
    options: &StackOptions,
) -> Result<Archive, Error> {
    match archive_path(directory, function, options) {
        Some(path) => Archive::read(path).await,
        None => Err(Error::ArchiveMissing {
            function,
            looked_at: candidates(directory, function, options).into(),
        }),
    }
}

/// Archives in memory, and locations of others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loaded {
    named: FunctionCode,
    pub(crate) archives: BTreeMap<LambdaFunction, Archive>,
}

impl Loaded {
    /// The functions that keep their deployed code.
    pub(crate) fn without_archive(&self, options: &StackOptions) -> Vec<LambdaFunction> {
        let brought = |function: &LambdaFunction| {
            self.named.get(*function).is_some() || self.archives.contains_key(function)
        };
        options
            .functions()
            .into_iter()
            .filter(|function| !brought(function))
            .collect()
    }

    /// The location of each function's code: its archive, or the deployed location.
    pub(crate) fn locations(
        &self,
        stack: &str,
        options: &StackOptions,
        deployed: Option<&Deployed>,
    ) -> Result<FunctionCode, Error> {
        let mut code = self.named.clone();
        for function in options.functions() {
            if let Some(named) = code.get(function) {
                processor::check_named(named, stack, function, options, deployed)?;
                continue;
            }
            let given = self.archives.get(&function).map(|archive| CodeLocation::Object {
                bucket: CodeBucket::of(options),
                key: archive.key(),
            });
            let location = match given {
                Some(given) => Some(given),
                None => processor::kept(stack, function, options, deployed)?,
            };
            let Some(location) = location else {
                return Err(Error::CodeMissing {
                    function,
                    stack: stack.to_owned(),
                    deployed: deployed.is_some(),
                });
            };
            code = code.with(function, location);
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const ZIP: &[u8] = b"PK\x03\x04rest";

    fn options() -> StackOptions {
        StackOptions::builder()
            .enable_audit_archival(false)
            .build()
            .unwrap()
    }

    #[tokio::test]
    async fn archives_are_found_by_architecture_first() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        write("aggregator.zip", b"PK\x03\x04any");
        let code = Code::Directory(directory.path().into());
        let any = code.load(&options()).await.unwrap().archives[&LambdaFunction::Aggregator].key();
        write("x86_64/aggregator.zip", ZIP);
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
        assert!(
            Code::IfBuilt(directory.path().into())
                .load(&options())
                .await
                .unwrap()
                .archives
                .is_empty()
        );
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
    async fn something_else_than_an_archive_is_refused_before_anything_happens() {
        let code = Code::bundled([(LambdaFunction::Aggregator, b"#!/bin/sh".to_vec())]);
        assert!(matches!(
            code.load(&options()).await,
            Err(Error::NotAnArchive { .. })
        ));
    }

    #[tokio::test]
    async fn an_archive_for_another_processor_is_refused_before_anything_happens() {
        let mut program = b"\x7fELF".to_vec();
        program.resize(18, 0);
        program.extend(0xb7_u16.to_le_bytes());
        let mut archive = b"PK\x03\x04".to_vec();
        archive.resize(26, 0);
        archive.extend([9, 0, 0, 0]);
        archive.extend(b"bootstrap");
        archive.extend(program);
        let code = Code::bundled([(LambdaFunction::Aggregator, archive)]);
        let error = code.load(&options()).await.unwrap_err().to_string();
        assert!(
            error.contains("arm64") && error.contains("lambda_architecture x86_64"),
            "{error}"
        );
        let arm = options()
            .to_builder()
            .lambda_architecture("arm64")
            .build()
            .unwrap();
        assert_eq!(code.load(&arm).await.unwrap().archives.len(), 1);
    }

    #[tokio::test]
    async fn an_archive_for_a_processor_that_lambda_does_not_have_is_refused() {
        let mut program = b"\x7fELF".to_vec();
        program.resize(18, 0);
        program.extend(0xf3_u16.to_le_bytes());
        let mut archive = b"PK\x03\x04".to_vec();
        archive.resize(26, 0);
        archive.extend([9, 0, 0, 0]);
        archive.extend(b"bootstrap");
        archive.extend(program);
        let code = Code::bundled([(LambdaFunction::Aggregator, archive)]);
        let error = code.load(&options()).await.unwrap_err().to_string();
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
        let arm = options()
            .to_builder()
            .lambda_architecture("arm64")
            .build()
            .unwrap();
        let error = loaded
            .locations("demo", &arm, Some(&deployed))
            .unwrap_err()
            .to_string();
        assert!(error.contains("make functions ARCH=arm64"), "{error}");
    }
}
