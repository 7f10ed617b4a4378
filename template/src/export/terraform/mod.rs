//! Terraform: the module of native resources, the module around the CloudFormation template, and policies as data sources.

mod module;
mod policy;
mod text;
mod wrapper;

pub use policy::policy_data_source;

pub(super) use module::files as module;
pub(super) use module::limits_provisioner;
pub(super) use wrapper::files as wrapper;
