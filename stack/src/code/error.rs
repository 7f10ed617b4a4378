//! Errors of the functions' code.

use std::path::PathBuf;

use zae_limiter_template::{Architecture, LambdaFunction};

/// Why the code of a function cannot be deployed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// A function is enabled and has no code.
    #[error(
        "the {function} of stack {stack:?} has no code: {}; build the archives with `make functions` and set code_directory, build \
         the program with the feature bundled-functions, name archives in S3 (code_bucket and {function}_code_key), or set {} to false",
        if *deployed { "it is not deployed yet and no archive was given" } else { "the stack does not exist yet and no archive was given" },
        function.switch()
    )]
    Missing {
        /// The function.
        function: LambdaFunction,
        /// The stack's name.
        stack: String,
        /// Whether the stack exists.
        deployed: bool,
    },

    /// An archive was not found.
    #[error(
        "the archive of the {function} was not found at {}; build it with `make functions`",
        paths(looked_at)
    )]
    ArchiveMissing {
        /// The function.
        function: LambdaFunction,
        /// The paths that were tried.
        looked_at: Vec<PathBuf>,
    },

    /// The program has no archive for the architecture of the options.
    #[error(
        "this program contains no {wanted} archive of the {function}: only the architectures that were there when it was built; build \
         them with `make functions ARCH={wanted}` and build the program again, or change lambda_architecture"
    )]
    NotCompiledIn {
        /// Whose.
        function: LambdaFunction,
        /// What the options name.
        wanted: Architecture,
    },

    /// The address or a checksum of a release cannot be one.
    #[error("the release cannot be used: {field} {value:?} {rule}")]
    ReleaseInvalid {
        /// What is wrong: `address` or `sha256`.
        field: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        rule: String,
    },

    /// An archive of a release cannot be downloaded.
    #[error("{address} cannot be downloaded: {problem}")]
    DownloadFailed {
        /// The archive.
        address: String,
        /// Why.
        problem: String,
    },

    /// An archive of a release is not the one that was expected. Nothing was deployed.
    #[error(
        "{address} has the SHA-256 {found}, and {expected} was expected; compare it with the release's .sha256 file"
    )]
    ReleaseDiffers {
        /// The archive.
        address: String,
        /// Its checksum.
        found: String,
        /// The checksum in the program.
        expected: String,
    },

    /// An archive cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    ArchiveUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// The file is not a zip archive.
    #[error("{origin} is not a zip archive; build the functions with `make functions`")]
    NotAnArchive {
        /// The file.
        origin: String,
    },

    /// An archive without a program.
    #[error(
        "the archive of the {function} does not begin with its program, a file named bootstrap; build it with `make functions`"
    )]
    NoProgram {
        /// Whose.
        function: LambdaFunction,
    },

    /// An archive for another processor.
    #[error(
        "the archive of the {function} is built for {found}, and the options have lambda_architecture {wanted}; build it with \
         `make functions ARCH={wanted}`, or set lambda_architecture to {found}"
    )]
    WrongArchitecture {
        /// Whose.
        function: LambdaFunction,
        /// What the program in the archive is built for.
        found: Architecture,
        /// What the options name.
        wanted: Architecture,
    },

    /// An archive for a processor that Lambda does not have.
    #[error(
        "the archive of the {function} is built for ELF machine {machine:#x}, which Lambda does not run; build it with \
         `make functions ARCH={wanted}`"
    )]
    UnknownMachine {
        /// Whose.
        function: LambdaFunction,
        /// The machine in the program's ELF header.
        machine: u16,
        /// What the options name.
        wanted: Architecture,
    },

    /// The options name another processor and there is no archive for it: none was given, or the options name the deployed one.
    #[error(
        "the {function} of stack {stack:?} runs on {deployed}, the options have lambda_architecture {wanted}, and no archive for \
         that was given; build it with `make functions ARCH={wanted}`, and if the options name archives in S3, use another key"
    )]
    ArchitectureChanged {
        /// Whose.
        function: LambdaFunction,
        /// The stack's name.
        stack: String,
        /// What it runs on now.
        deployed: String,
        /// What the options name.
        wanted: Architecture,
    },

    /// The bucket for archives belongs to another account, which could change the functions' code.
    #[error(
        "bucket {bucket} does not belong to account {account}, or s3:ListBucket on it is denied; allow it, or set code_bucket to a bucket \
         of the account"
    )]
    BucketTaken {
        /// The bucket.
        bucket: String,
        /// The caller's account.
        account: String,
    },

    /// The bucket in `code_bucket` does not exist.
    #[error("bucket {bucket} does not exist; create it, or unset code_bucket to use the default bucket")]
    BucketMissing {
        /// The bucket.
        bucket: String,
    },

    /// An object does not have the hash that its key states.
    #[error("{bucket}/{key} does not have the SHA-256 in its name; find out who wrote it and delete it")]
    ArtifactDiffers {
        /// The bucket.
        bucket: String,
        /// The object.
        key: String,
    },
}

fn paths(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(", ")
}
