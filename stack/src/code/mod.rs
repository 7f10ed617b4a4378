//! Where the functions' code comes from.

mod archive;
mod compiled_in;
mod elf;
mod error;
mod processor;
mod publish;
mod release;

pub(crate) use archive::Archive;
pub use error::CodeError;
pub(crate) use publish::{publish, store_template};
pub use release::Release;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zae_limiter_template::{CodeBucket, CodeLocation, FunctionCode, LambdaFunction, StackOptions};

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
    ) -> Result<Self, CodeError> {
        Release::new(address, sha256).map(Self::Release)
    }

    /// Reads the archives of the enabled functions. Those of a release are named, and downloaded when they are needed.
    pub(crate) async fn load(&self, options: &StackOptions) -> Result<Loaded, CodeError> {
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
                archive.check_program(function, options.lambda_architecture())?;
            }
            archive.and_then(|archive| archives.insert(function, archive));
        }
        Ok(Loaded { named, archives })
    }
}

/// The archive in the `code_directory` of the options, if that is set.
async fn from_options(
    function: LambdaFunction,
    options: &StackOptions,
) -> Result<Option<Archive>, CodeError> {
    match options.code_directory() {
        Some(directory) => from_directory(Path::new(directory), function, options)
            .await
            .map(Some),
        None => Ok(None),
    }
}

#[cfg(feature = "bundled-functions")]
fn from_program(function: LambdaFunction, options: &StackOptions) -> Result<Archive, CodeError> {
    let wanted = options.lambda_architecture();
    match Code::compiled_in(wanted.as_str(), function.as_str()) {
        Some(bytes) => Archive::new(bytes.to_vec(), &format!("the {function} in this program")),
        None => Err(CodeError::NotCompiledIn { function, wanted }),
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
) -> Result<Archive, CodeError> {
    match archive_path(directory, function, options) {
        Some(path) => Archive::read(path).await,
        None => Err(CodeError::ArchiveMissing {
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
    ) -> Result<FunctionCode, CodeError> {
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
                return Err(CodeError::Missing {
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
mod sample;
#[cfg(test)]
mod tests;
