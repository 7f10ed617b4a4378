//! What the functions share: a batch of stream records in, a partial batch response out.
//!
//! | To find | Look in |
//! |---|---|
//! | records as Lambda delivers them, each decoded on its own | [`Batch`], [`Record`], [`EventRecord`] |
//! | the time of an invocation, and retries within it | [`Invocation`] |
//! | what a failed call means for its records | [`CallError`], [`Remedy`] |
//! | records that cannot be processed | [`DeadLetter`], [`DeadLetters`], [`DeadLetterSource`], [`Queue`] |
//! | panics, each the failure of one record | [`reading`], [`processing`] |
//! | which records Lambda delivers again | [`Failures`] |
//! | the log line and metrics of an invocation | [`Report`] |
//! | the environment variables that configure a function | [`Environment`] |
//! | the loop around it all | [`Function`], [`run`] |

mod aws;
mod batch;
mod dead_letter;
mod environment;
mod failures;
mod invocation;
mod panics;
mod remedy;
mod report;
mod run;
mod spread;

pub use aws::{lambda_config, sdk_config};
pub use batch::{Batch, Record};
pub use dead_letter::{DeadLetter, DeadLetterMessage, DeadLetterSource, DeadLetters, Queue, pass_over};
pub use environment::{Environment, InvalidSetting};
pub use failures::{Failures, Unreportable};
pub use invocation::Invocation;
pub use panics::{processing, reading};
pub use remedy::Remedy;
pub use report::{Level, Note, Report, metric};
pub use run::{Function, run};
pub use spread::{MAX_CONCURRENT, spread};

pub use aws_lambda_events::dynamodb::EventRecord;
pub use aws_lambda_events::streams::DynamoDbEventResponse;
pub use zae_limiter_dynamo::CallError;
