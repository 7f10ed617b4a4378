//! An application that waits for somebody else's deployment, and may not write the records of the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_credential_types::Credentials;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use zae_limiter::RateLimiter;
use zae_limiter::stack::{Change, StackOptions};
use zae_limiter_template::{FunctionCode, StackName, render, stack_tags};

use super::{TABLE, furnished};

/// The statuses of the stack, one for each look at it. The last one stays.
const STATUSES: [&str; 3] = ["UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];

/// An account whose stack somebody else is updating. Writes to the partition `SYSTEM#` are denied.
#[derive(Debug, Clone)]
struct Account {
    store: SharedHttpConnector,
    options: StackOptions,
    looks: Arc<AtomicUsize>,
    denied: Arc<AtomicUsize>,
}

impl Account {
    /// CloudFormation's response to the actions that read a stack.
    fn cloudformation(&self, request: &HttpRequest) -> HttpResponse {
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default());
        let action = body
            .split('&')
            .find_map(|field| field.strip_prefix("Action="))
            .unwrap_or_default();
        let result = match action {
            "DescribeStacks" => self.described(),
            "GetTemplate" => self.template(),
            _ => panic!("an application that waits does not call {request:?}"),
        };
        let text = format!("<{action}Response><{action}Result>{result}</{action}Result></{action}Response>");
        response(200, text)
    }

    fn described(&self) -> String {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        let status = STATUSES[look.min(STATUSES.len() - 1)];
        let tags: String = stack_tags(&name(), &self.options)
            .into_iter()
            .map(|tag| member(&(element("Key", &tag.key) + &element("Value", &tag.value))))
            .collect();
        let id = format!("arn:aws:cloudformation:us-east-1:123456789012:stack/{TABLE}/1");
        let stack = [
            element("StackName", TABLE),
            element("StackId", &id),
            element("StackStatus", status),
            element("CreationTime", "2026-01-31T12:00:00Z"),
            format!("<Tags>{tags}</Tags>"),
        ];
        format!("<Stacks>{}</Stacks>", member(&stack.concat()))
    }

    fn template(&self) -> String {
        let template = render(&name(), &self.options, &FunctionCode::none()).unwrap();
        element("TemplateBody", &template.to_value().to_string())
    }
}

impl HttpConnector for Account {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let Some(operation) = target.strip_prefix("DynamoDB_20120810.") else {
            return HttpConnectorFuture::ready(Ok(self.cloudformation(&request)));
        };
        let body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap();
        if writes_system(operation, &body) {
            self.denied.fetch_add(1, Ordering::SeqCst);
            let error =
                r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not for you"}"#;
            return HttpConnectorFuture::ready(Ok(response(400, error.to_owned())));
        }
        self.store.call(request)
    }
}

impl HttpClient for Account {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

fn name() -> StackName {
    StackName::parse(TABLE).unwrap()
}

fn response(status: u16, body: String) -> HttpResponse {
    HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))
}

fn element(name: &str, text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("<{name}>{text}</{name}>")
}

fn member(content: &str) -> String {
    format!("<member>{content}</member>")
}

/// True if a request writes an item of the partition `SYSTEM#`, by itself or in a transaction.
fn writes_system(operation: &str, body: &Value) -> bool {
    match operation {
        "PutItem" | "UpdateItem" | "DeleteItem" => is_of_system(body),
        "TransactWriteItems" => body["TransactItems"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|part| {
                ["Put", "Update", "Delete"]
                    .iter()
                    .any(|kind| is_of_system(&part[*kind]))
            }),
        _ => false,
    }
}

fn is_of_system(write: &Value) -> bool {
    ["Key", "Item"].iter().any(|field| {
        let partition = write[*field]["PK"]["S"].as_str();
        partition.is_some_and(|partition| partition.starts_with("SYSTEM#"))
    })
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_deployment_of_others_ends_well_without_the_right_to_write_system_records() {
    let options = StackOptions::builder()
        .enable_aggregator(false)
        .enable_audit_archival(false)
        .build()
        .unwrap();
    let account = Account {
        store: SharedHttpConnector::new(furnished().await),
        options: options.clone(),
        looks: Arc::default(),
        denied: Arc::default(),
    };
    let limiter = RateLimiter::builder(TABLE)
        .region("us-east-1")
        .credentials(Credentials::from_keys("key", "secret", None))
        .http_client(account.clone())
        .principal("tester")
        .stack(options)
        .await
        .unwrap();
    let outcome = limiter.ensure_infrastructure().await.unwrap().unwrap();
    assert_eq!(outcome.change, Change::Awaited);
    assert!(account.looks.load(Ordering::SeqCst) >= STATUSES.len());
    assert_eq!(account.denied.load(Ordering::SeqCst), 1, "it is not tried again");
    let [warning] = outcome.warnings.as_slice() else {
        panic!("{outcome:?}")
    };
    assert!(
        warning.contains("version record and retention were not written"),
        "{warning}"
    );
    // The application goes on to use the table.
    let lease = limiter.acquire("key", "gpt-4").consume("rpm", 1).await.unwrap();
    lease.commit().await.unwrap();
}
