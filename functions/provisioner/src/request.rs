//! What CloudFormation and Terraform send.

use serde_json::{Value, json};

/// What is to be done with the limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestType {
    /// Apply the file.
    Create,
    /// Apply the file in place of the one before. A rollback is an update, too.
    Update,
    /// Delete what the resource declared.
    Delete,
    /// Compare, change nothing. Only direct invocations do that.
    Plan,
}

/// A request to the function, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub request_type: RequestType,
    /// The properties of the resource.
    pub properties: Value,
    /// The resource that declares the limits: the names of its stack and of itself, or `Owner` of a direct invocation.
    pub owner: String,
    /// The id that CloudFormation knows the resource by. It never changes, so that no update replaces the resource.
    pub physical_id: String,
}

/// A request that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value} is invalid: {rule}")]
pub struct InvalidRequest {
    field: &'static str,
    value: String,
    rule: &'static str,
}

impl Request {
    /// Parses the event of an invocation.
    ///
    /// Terraform's `aws_lambda_invocation` with `lifecycle_scope = "CRUD"` names the action in `tf.action`.
    ///
    /// ```
    /// use zae_limiter_provisioner::{Request, RequestType};
    ///
    /// let event = serde_json::json!({
    ///     "tf": {"action": "create"},
    ///     "Owner": "terraform:limiter",
    ///     "ResourceProperties": {"Limits": "system: {limits: {rpm: 100}}"},
    /// });
    /// let request = Request::parse(&event).unwrap();
    /// assert_eq!(request.request_type, RequestType::Create);
    /// assert_eq!(request.owner, "terraform:limiter");
    /// ```
    pub fn parse(event: &Value) -> Result<Self, InvalidRequest> {
        let request_type = request_type(event)?;
        let owner = owner(event, request_type)?;
        let known = event["PhysicalResourceId"].as_str();
        Ok(Self {
            request_type,
            properties: event["ResourceProperties"].clone(),
            physical_id: known.map_or_else(|| owner.clone(), str::to_owned),
            owner,
        })
    }

    /// The fields of a response to CloudFormation that repeat the request, also for one that cannot be parsed.
    pub fn echo(event: &Value) -> Value {
        let known = event["PhysicalResourceId"].as_str();
        json!({
            "PhysicalResourceId": known.map_or_else(|| physical_id(event), str::to_owned),
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
        })
    }
}

fn request_type(event: &Value) -> Result<RequestType, InvalidRequest> {
    let (field, given) = match (&event["RequestType"], &event["tf"]["action"]) {
        (Value::Null, action @ Value::String(_)) => ("tf.action", action),
        (given, _) => ("RequestType", given),
    };
    let invalid = |rule| InvalidRequest {
        field,
        value: given.to_string(),
        rule,
    };
    let from_cloudformation = event.get("ResponseURL").is_some();
    match given.as_str().unwrap_or_default() {
        "Create" | "create" => Ok(RequestType::Create),
        "Update" | "update" => Ok(RequestType::Update),
        "Delete" | "delete" => Ok(RequestType::Delete),
        "Plan" if !from_cloudformation => Ok(RequestType::Plan),
        _ => Err(invalid(
            "must be Create, Update, Delete, or Plan in a direct invocation",
        )),
    }
}

/// The owner of a direct invocation that names none.
const DIRECT: &str = "direct";

/// Every change of limits names its owner: two direct invocations without names would delete each other's limits.
fn owner(event: &Value, request_type: RequestType) -> Result<String, InvalidRequest> {
    if let Some(resource) = resource(event) {
        return Ok(resource);
    }
    match &event["Owner"] {
        // A plan writes nothing.
        Value::Null if request_type == RequestType::Plan => Ok(DIRECT.to_owned()),
        Value::String(owner) if !owner.is_empty() => Ok(owner.clone()),
        other => Err(InvalidRequest {
            field: "Owner",
            value: other.to_string(),
            rule: "must be a text that is not empty, such as the name of the configuration that declares the limits",
        }),
    }
}

/// The physical id of a resource that has none yet, also for a request that cannot be parsed.
fn physical_id(event: &Value) -> String {
    resource(event).unwrap_or_else(|| DIRECT.to_owned())
}

/// CloudFormation's ids of a resource: `arn:…:stack/NAME/UUID` and the logical id. Its physical id is no part of it: after a
/// creation without a response, CloudFormation makes one up.
fn resource(event: &Value) -> Option<String> {
    let stack = event["StackId"].as_str()?.split('/').nth(1)?;
    let resource = event["LogicalResourceId"].as_str()?;
    Some(format!("{stack}:{resource}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloudformation(request_type: &str) -> Value {
        json!({
            "RequestType": request_type,
            "ResponseURL": "https://example.com/",
            "StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/app/1-2-3",
            "LogicalResourceId": "Limits",
        })
    }

    #[test]
    fn the_physical_id_is_that_of_the_first_request_or_else_made_of_stack_and_resource() {
        let mut event = cloudformation("Create");
        assert_eq!(Request::parse(&event).unwrap().physical_id, "app:Limits");
        event["PhysicalResourceId"] = json!("given");
        let request = Request::parse(&event).unwrap();
        assert_eq!(
            (request.physical_id.as_str(), request.owner.as_str()),
            ("given", "app:Limits")
        );
    }

    #[test]
    fn an_unknown_request_names_field_value_and_rule() {
        let error = Request::parse(&cloudformation("Refresh")).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("RequestType \"Refresh\" is invalid: must be"),
            "{error}"
        );
        // CloudFormation has no way to show a plan.
        assert!(Request::parse(&cloudformation("Plan")).is_err());
        assert!(Request::parse(&json!({"RequestType": "Plan"})).is_ok());
        let error = Request::parse(&json!({"tf": {"action": "read"}})).unwrap_err();
        assert!(error.to_string().starts_with("tf.action \"read\""), "{error}");
        assert!(Request::parse(&json!([])).is_err());
    }

    #[test]
    fn direct_invocations_name_their_owner() {
        let event = json!({"RequestType": "Create", "Owner": "terraform:limiter"});
        assert_eq!(Request::parse(&event).unwrap().owner, "terraform:limiter");
        let mut event = cloudformation("Create");
        event["Owner"] = json!("ignored");
        assert_eq!(Request::parse(&event).unwrap().owner, "app:Limits");
        for request_type in ["Create", "Update", "Delete"] {
            for owner in [json!(null), json!(""), json!(7)] {
                let event = json!({"RequestType": request_type, "Owner": owner});
                let error = Request::parse(&event).unwrap_err().to_string();
                assert!(
                    error.starts_with(&format!("Owner {owner} is invalid: must be")),
                    "{error}"
                );
            }
        }
        assert!(Request::parse(&json!({"RequestType": "Plan", "Owner": 7})).is_err());
    }
}
