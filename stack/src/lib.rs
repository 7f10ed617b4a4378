//! The reconciler: creates and changes a CloudFormation stack until it matches its [`StackOptions`].
//!
//! ```no_run
//! use zae_limiter_stack::{Code, Stack, StackName, StackOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let aws = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
//! let options = StackOptions::builder().lambda_memory(512).build()?;
//! let stack = Stack::new(StackName::parse("limiter")?, options, &aws).code(Code::built_in("."));
//!
//! let plan = stack.plan().await?;
//! println!("{plan}");
//! stack.apply(&plan).await?;
//! # Ok(())
//! # }
//! ```
//!
//! | Task | See |
//! |---|---|
//! | deploy when an application starts | [`Stack::ensure`] |
//! | operate a stack | [`Stack::plan`], [`Stack::apply`], [`Stack::drift`], [`Stack::delete`], [`Stack::status`], [`Stack::deployed_options`], [`Stack::set_termination_protection`], [`Stack::discover`] |
//! | provide the functions' code | [`Code`] |
//! | follow progress | [`Event`], [`Observer`] |
//! | handle errors | [`Error`] |
//!
//! Inside, comparing, guarding and explaining are pure functions (`plan`, `guard`, `cause`, `situation`), calls to AWS are in
//! `cloud`, and `reconcile` combines them.

mod adopt;
#[doc(hidden)]
pub mod advised;
mod cause;
mod clients;
mod cloud;
mod code;
mod deployed;
mod desired;
mod error;
mod events;
mod fingerprint;
mod functions;
mod guard;
mod kept;
mod mode;
mod outcome;
mod owner;
mod patience;
mod plan;
mod preflight;
mod reach;
mod reconcile;
mod situation;
mod stack;
mod status;
mod version;

pub use cause::Cause;
pub use clients::{Clients, needs_path_style};
pub use code::{Code, CodeError, Release};
pub use error::Error;
pub use events::{Event, Observer, ResourceEvent};
pub use functions::{FunctionStatus, StreamReader};
pub use guard::Refusal;
pub use mode::Mode;
pub use outcome::{Change, Outcome};
pub use owner::Owner;
pub use plan::{Action, Basis, Kind, OutputChange, Plan, PropertyChange, ResourceChange, TagChange};
pub use preflight::Finding;
pub use reconcile::{Deleted, Deletion, Drift, Kept, PropertyDrift, ResourceDrift, Verdict};
pub use stack::Stack;
pub use status::{Discovered, Health, Status};
pub use zae_limiter_template::deployer::Place;
pub use zae_limiter_template::{LambdaFunction, StackName, StackOptions};
