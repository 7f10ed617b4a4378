//! What both functions share: a batch of stream records in, a partial batch response out.
//!
//! | To find | Look in |
//! |---|---|
//! | records as Lambda delivers them, each readable on its own | [`Batch`], [`Record`] |
//! | how long an invocation may still take, and calls that are repeated within it | [`Budget`], [`retrying`] |
//! | what a failed call means for the batch | [`CallFailure`] |
//! | records that can never be processed | [`DeadLetter`], [`DeadLetters`], [`Queue`] |
//! | panics, which are the failure of one record | [`reading`], [`processing`] |
//! | which records Lambda has to deliver again | [`Failures`] |
//! | the log line and metrics of an invocation | [`Report`] |
//! | the variables a function is configured by | [`Environment`] |
//! | the loop around it all | [`Function`], [`run`] |

mod aws;
mod batch;
mod budget;
mod call;
mod dead_letter;
mod environment;
mod failures;
mod panics;
mod report;
mod run;
mod spread;

pub use aws::sdk_config;
pub use batch::{Batch, Record};
pub use budget::Budget;
pub use call::{CallFailure, retrying};
pub use dead_letter::{DeadLetter, DeadLetters, Queue, pass_over};
pub use environment::{Environment, InvalidSetting};
pub use failures::{Failures, Unreportable};
pub use panics::{processing, reading};
pub use report::{Level, Note, Report, metric};
pub use run::{Function, run};
pub use spread::{AT_ONCE, spread};

pub use aws_lambda_events::dynamodb::EventRecord;
pub use aws_lambda_events::streams::DynamoDbEventResponse;
