//! Errors of the client as Python exceptions, which `zae_limiter_rs._errors` makes.

use pyo3::prelude::*;
use serde_json::{Value, json};
use zae_limiter::Error;
use zae_limiter::error::{Conflict, Internal, Invalid, NotFound};

use crate::records;

/// What goes to Python: a kind, and what the exception of that kind needs.
pub(crate) struct Failure {
    kind: &'static str,
    details: Value,
}

impl Failure {
    pub(crate) fn invalid(field: &str, value: &str, rule: &str) -> Self {
        let details = json!({ "field": field, "value": value, "rule": rule });
        Self {
            kind: "invalid",
            details,
        }
    }

    /// A stack that could not be created or changed.
    pub(crate) fn creation(stack: &str, error: &zae_limiter::stack::Error) -> Self {
        Self {
            kind: "creation",
            details: json!({ "stack_name": stack, "message": error.to_string() }),
        }
    }

    /// The failure of a call that may create or change this stack.
    pub(crate) fn of(error: Error, stack: &str) -> Self {
        match error {
            Error::Stack(error) => Self::creation(stack, &error),
            error => error.into(),
        }
    }

    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        let make = || {
            let details = records::to_python(py, &self.details)?;
            py.import("zae_limiter_rs._errors")?
                .call_method1("make", (self.kind, details))
        };
        match make() {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

impl From<zae_limiter::stack::Error> for Failure {
    fn from(error: zae_limiter::stack::Error) -> Self {
        Self {
            kind: "infrastructure",
            details: json!({ "message": error.to_string() }),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let unavailable = error.is_unavailable();
        let (kind, details) = match error {
            Error::Invalid(Invalid::Name(name)) => (
                "name",
                json!({ "field": name.field(), "value": name.value(), "rule": name.rule() }),
            ),
            Error::Invalid(Invalid::Argument { field, value, rule }) => {
                ("invalid", json!({ "field": field, "value": value, "rule": rule }))
            }
            Error::Invalid(_) => ("value", json!({})),
            Error::Refused(refusal) => {
                let statuses: Vec<_> = refusal.statuses().iter().map(records::status).collect();
                ("refused", json!({ "statuses": statuses }))
            }
            Error::Disabled {
                entity,
                resource,
                mode_from,
            } => (
                "disabled",
                json!({ "entity_id": entity.as_str(), "resource": resource.as_str(), "mode_from": mode_from }),
            ),
            Error::Conflict(Conflict::KeyReused { request, .. }) => (
                "invalid",
                json!({
                    "field": "idempotency_key",
                    "value": "",
                    "rule": format!("it was used for another change: {request}"),
                }),
            ),
            Error::Conflict(Conflict::EntityExists { entity }) => {
                ("entity_exists", json!({ "entity_id": entity.as_str() }))
            }
            Error::NotFound(
                NotFound::Entity { entity: missing } | NotFound::Parent { parent: missing, .. },
            ) => ("entity_not_found", json!({ "entity_id": missing.as_str() })),
            Error::NotFound(NotFound::Limits { entity, resource }) => (
                "no_limits",
                json!({ "entity_id": entity.as_str(), "resource": resource.as_str() }),
            ),
            Error::NotFound(NotFound::Prices { resource }) => {
                ("no_prices", json!({ "resource": resource.as_str() }))
            }
            Error::NotFound(NotFound::Table { table, .. }) => ("table_missing", json!({ "table": table })),
            Error::Internal(Internal::IncompatibleSchema {
                schema,
                client,
                reason,
                ..
            }) => (
                "incompatible_schema",
                json!({ "schema": schema, "client": client, "reason": reason }),
            ),
            Error::Conflict(
                Conflict::ParentCycle { .. } | Conflict::TooManyParents { .. } | Conflict::HasChildren { .. },
            ) => ("entity", json!({})),
            Error::PermissionDenied {
                operation,
                table,
                message,
            } => (
                "permission",
                json!({ "operation": operation, "table": table, "reason": message }),
            ),
            Error::Overloaded {
                entity,
                resource,
                what,
                limit,
            } => (
                "overloaded",
                json!({ "entity_id": entity.as_str(), "resource": resource.as_str(), "what": what, "limit": limit }),
            ),
            _ if unavailable => ("unavailable", json!({})),
            _ => ("infrastructure", json!({})),
        };
        let mut details = details;
        if let Value::Object(fields) = &mut details {
            fields.insert("message".to_owned(), Value::String(message));
        }
        Self { kind, details }
    }
}
