//! Counting dead letters, as `zae-limiter usage redrive` does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use zae_limiter::stack::StackOptions;
use zae_limiter::usage::WindowKind;
use zae_limiter_aggregator::{DynamoDb, NoAlerts, Settings, redrive};
use zae_limiter_function::Invocation;
use zae_limiter_template::StackName;
use zae_limiter_template::deployer::{Place, redrive_policy};
use zae_limiter_testing::connection::Recorder;

use super::policy::just_enough;
use super::{TABLE, aws, furnished, queue};

/// The recorder, with messages for the first that receives.
#[derive(Debug, Clone)]
struct Letters {
    recorder: Recorder,
    messages: Arc<Mutex<Vec<Value>>>,
}

impl HttpConnector for Letters {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let receives = request.headers().get("x-amz-target") == Some("AmazonSQS.ReceiveMessage");
        let response = self.recorder.call(request);
        if !receives {
            return response;
        }
        let messages = std::mem::take(&mut *self.messages.lock().unwrap());
        let body = json!({ "Messages": messages }).to_string();
        let status = 200_u16.try_into().unwrap();
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body))))
    }
}

impl HttpClient for Letters {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

/// A message with a dead letter of a function: the first write of a bucket.
fn message(function: &str) -> Value {
    let record = json!({
        "eventID": "1", "eventName": "INSERT", "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-31T12:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_769_903_998, "SequenceNumber": "1", "SizeBytes": 1,
            "Keys": { "PK": { "S": "ENTITY#key" }, "SK": { "S": "#BUCKET#gpt-4" } },
            "NewImage": { "b_rpm_tc": { "N": "1000" }, "ev": { "N": "1" } },
        },
    });
    let letter = json!({ "function": function, "reason": "a test", "sequenceNumber": "1", "record": record });
    json!({ "MessageId": function, "ReceiptHandle": function, "Body": letter.to_string() })
}

#[tokio::test]
async fn counting_dead_letters_is_permitted_what_it_does_and_nothing_else() {
    let recorder = Recorder::to(furnished().await);
    // The archiver's letter is not counted: it goes back to the queue.
    let letters = Letters {
        recorder: recorder.clone(),
        messages: Arc::new(Mutex::new(vec![message("aggregator"), message("archiver")])),
    };
    let aws = aws(&recorder).into_builder().http_client(letters).build();
    let settings = Settings {
        table: TABLE.to_owned(),
        dead_letters: String::new(),
        windows: vec![WindowKind::Daily],
        retention_days: 90,
        event_bus: None,
    };
    let table = DynamoDb::new(aws_sdk_dynamodb::Client::new(&aws), TABLE);
    let time = Invocation::within(Duration::from_secs(60));
    let redriven = redrive(&table, &queue(&aws), None::<NoAlerts>, &settings, &time)
        .await
        .unwrap();
    assert_eq!(
        (redriven.done, redriven.snapshots, redriven.kept.len()),
        (1, 1, 1),
        "{redriven:?}"
    );
    let place = Place {
        partition: "aws".into(),
        region: "us-east-1".into(),
        account: "123456789012".into(),
    };
    let name = StackName::parse(TABLE).unwrap();
    let policy = redrive_policy(&name, &place, &StackOptions::default());
    // The command first finds the function, of a stack or of the Terraform module, and reads its settings.
    let of_the_command = [
        "cloudformation:DescribeStacks",
        "cloudformation:GetTemplate",
        "dynamodb:DescribeTable",
        "dynamodb:ListTagsOfResource",
        "lambda:GetFunctionConfiguration",
        "lambda:ListEventSourceMappings",
    ];
    just_enough(&policy, &recorder.needed(), &of_the_command);
}
