//! What the functions share: a batch of stream records in, a partial batch response out.
//!
//! | To find | Look in |
//! |---|---|
//! | records as Lambda delivers them, each decoded on its own | [`Batch`], [`Record`], [`EventRecord`] |
//! | the time of an invocation, and retries within it | [`Invocation`] |
//! | what a failed call means for its records | [`CallError`], [`Remedy`] |
//! | records that cannot be processed | [`DeadLetter`], [`DeadLetters`], [`DeadLetterSource`], `Queue` |
//! | panics, each the failure of one record | [`reading`], [`processing`] |
//! | which records Lambda delivers again | [`Failures`] |
//! | the log line and metrics of an invocation | [`Report`] |
//! | the environment variables that configure a function | [`Environment`] |
//! | what a function does with a batch | [`Function`] |
//! | the loop around it all | `run` |
//! | the same without Lambda, on an embedded table | `EmbeddedMapping` |
//!
//! What calls Lambda and SQS needs the feature `lambda`, which is on by default; what runs on an embedded table needs
//! `embedded`.

#[cfg(feature = "lambda")]
mod aws;
mod batch;
mod dead_letter;
#[cfg(feature = "embedded")]
mod embedded;
mod environment;
mod failures;
mod function;
mod invocation;
mod panics;
#[cfg(feature = "lambda")]
mod queue;
mod remedy;
mod report;
#[cfg(feature = "lambda")]
mod run;
mod spread;

#[cfg(feature = "lambda")]
pub use aws::{lambda_config, sdk_config};
pub use batch::{Batch, Record};
pub use dead_letter::{DeadLetter, DeadLetterMessage, DeadLetterSource, DeadLetters, pass_over};
#[cfg(feature = "embedded")]
pub use embedded::{EmbeddedMapping, LoggedDeadLetters};
pub use environment::{Environment, InvalidSetting};
pub use failures::{Failures, Unreportable};
pub use function::Function;
pub use invocation::Invocation;
pub use panics::{processing, reading};
#[cfg(feature = "lambda")]
pub use queue::Queue;
pub use remedy::Remedy;
pub use report::{Level, Note, Report, metric};
#[cfg(feature = "lambda")]
pub use run::run;
pub use spread::{MAX_CONCURRENT, spread};

pub use aws_lambda_events::dynamodb::EventRecord;
pub use aws_lambda_events::streams::DynamoDbEventResponse;
pub use zae_limiter_dynamo::CallError;
