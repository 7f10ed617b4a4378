//! What every part of the stack uses.

use zae_limiter_schema::StackName;

use super::LambdaFunction;
use crate::model::dynamodb::Table;
use crate::model::{Handle, Pseudo, Text, arn};
use crate::options::{PermissionBoundary, StackOptions};

/// The name of the stack in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Fixed: the table can be imported, and long names can be shortened.
    Fixed(StackName),
    /// The name that the template is deployed with.
    Deployed,
}

impl Naming {
    pub(crate) fn text(&self) -> Text {
        match self {
            Self::Fixed(name) => name.as_str().into(),
            Self::Deployed => Pseudo::StackName.into(),
        }
    }
}

pub(super) struct Context<'a> {
    pub(super) options: &'a StackOptions,
    pub(super) naming: &'a Naming,
    /// The stack's name.
    pub(super) name: Text,
    pub(super) table: Handle<Table>,
}

impl Context<'_> {
    /// The name of a function. An export cannot shorten it.
    pub(super) fn function_name(&self, function: LambdaFunction) -> Text {
        match self.naming {
            Naming::Fixed(name) => function.name_in(name).into(),
            Naming::Deployed => self.name.clone().then(format!("-{function}")),
        }
    }

    pub(super) fn boundary(&self) -> Option<Text> {
        self.options.permission_boundary().map(boundary)
    }
}

pub(super) fn boundary(boundary: &PermissionBoundary) -> Text {
    match boundary {
        PermissionBoundary::Arn(arn) => arn.as_str().into(),
        PermissionBoundary::Name(name) => arn::of_account("iam", format!("policy/{name}")),
    }
}
