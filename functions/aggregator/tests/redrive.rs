//! Dead letters on real queues and tables of the local cloud.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Aggregator, DynamoDb, NoAlerts, Settings, redrive};
use zae_limiter_function::{
    Batch, DeadLetter, DeadLetters as _, Function as _, Invocation, Level, Queue, Report,
};
use zae_limiter_schema::WindowKind;
use zae_limiter_testing::MiniStack;
use zae_limiter_testing::stream::create_table;

const TABLE: &str = "redriven";

/// The bucket's `n`th write, which consumes one token.
fn record(n: u64) -> Json {
    let image = |n: u64| json!({"b_rpm_tc": {"N": (n * 1_000).to_string()}, "ev": {"N": n.to_string()}});
    json!({
        "eventID": "1", "eventName": "MODIFY", "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-31T12:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_769_903_998, "SequenceNumber": n.to_string(), "SizeBytes": 1,
            "Keys": {"PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#BUCKET#gpt-4"}},
            "OldImage": image(n - 1), "NewImage": image(n),
        },
    })
}

fn invocation() -> Invocation {
    Invocation::within(Duration::from_secs(30))
}

async fn process(aggregator: &Aggregator<DynamoDb, Queue>, records: &[Json]) {
    let batch: Batch = serde_json::from_value(json!({ "Records": records })).unwrap();
    let mut report = Report::new(Level::Info, &[]);
    let response = aggregator
        .handle(&batch, &invocation(), &mut report)
        .await
        .unwrap();
    assert!(response.batch_item_failures.is_empty(), "{:?}", report.notes());
}

/// Sets or removes what a person did to the snapshot by hand.
async fn tamper(client: &Client, expression: &str) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let mut update = client
        .update_item()
        .table_name(TABLE)
        .key("PK", text("ENTITY#user-1"))
        .key("SK", text("#USAGE#gpt-4#2026-01-31"))
        .update_expression(expression);
    if expression.contains(":v") {
        update = update.expression_attribute_values(":v", text("oops"));
    }
    update.send().await.unwrap();
}

async fn total(client: &Client) -> Option<String> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let row = client
        .get_item()
        .table_name(TABLE)
        .key("PK", text("ENTITY#user-1"))
        .key("SK", text("#USAGE#gpt-4#2026-01-31"))
        .send()
        .await
        .unwrap();
    Some(row.item?.get("rpm")?.as_n().ok()?.clone())
}

#[tokio::test]
async fn dead_letters_in_a_queue_are_counted_once_and_deleted() {
    let aws = MiniStack::shared().aws();
    let (client, sqs) = (Client::new(&aws), aws_sdk_sqs::Client::new(&aws));
    MiniStack::shared().create_table(&create_table(TABLE));
    let url = sqs
        .create_queue()
        .queue_name("redriven-dlq")
        .send()
        .await
        .unwrap();
    let settings = Settings {
        table: TABLE.to_owned(),
        dead_letters: url.queue_url.unwrap(),
        windows: vec![WindowKind::Daily],
        retention_days: 90,
        event_bus: None,
    };
    let table = DynamoDb::new(client.clone(), TABLE);
    let queue = Queue::new(sqs, settings.dead_letters.clone());
    let aggregator = Aggregator::new(table.clone(), queue.clone(), settings.windows.clone(), 90);

    process(&aggregator, &[record(1), record(2)]).await;
    assert_eq!(total(&client).await.as_deref(), Some("2"));
    // DynamoDB rejects a sum of text and number: 3 and 4 become dead letters.
    tamper(&client, "SET rpm = :v").await;
    process(&aggregator, &[record(3), record(4)]).await;
    // While the cause lasts, they stay.
    let early = redrive(&table, &queue, None::<NoAlerts>, &settings, &invocation())
        .await
        .unwrap();
    assert_eq!((early.done, early.kept.len()), (0, 2), "{early:?}");
    assert!(
        early.kept[0].contains("daily usage of user-1 on gpt-4"),
        "{early:?}"
    );
    // The cause is gone, and later records pass.
    tamper(&client, "REMOVE rpm").await;
    process(&aggregator, &[record(5)]).await;
    assert_eq!(total(&client).await.as_deref(), Some("1"));

    // The messages can be received again at once. One of the records is there twice, as after a lost response.
    let batch: Batch = serde_json::from_value(json!({ "Records": [record(4)] })).unwrap();
    for record in batch.records() {
        let letter = DeadLetter::new("aggregator", record, "again");
        queue.send(&letter).await.unwrap();
    }
    let redriven = redrive(&table, &queue, None::<NoAlerts>, &settings, &invocation())
        .await
        .unwrap();
    assert_eq!((redriven.done, redriven.snapshots), (3, 1), "{redriven:?}");
    assert_eq!(total(&client).await.as_deref(), Some("3"));
    let empty = redrive(&table, &queue, None::<NoAlerts>, &settings, &invocation())
        .await
        .unwrap();
    assert_eq!((empty.done, empty.kept.len()), (0, 0), "{empty:?}");
}
