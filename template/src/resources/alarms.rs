//! Alarms, each on one metric: local clouds do not support metric math.

use serde_json::Number;
use zae_limiter_schema::keys::{GSI1, GSI2, GSI3};

use super::context::Context;
use super::function::{Deployed, LambdaFunction};
use super::ids;
use crate::Error;
use crate::model::cloudwatch::{Alarm, Comparison, Dimension, Metric, Statistic};
use crate::model::{Handle, LogicalId, Model, Text};

const FIVE_MINUTES: u32 = 300;

/// An alarm of the stack.
pub(super) struct Added {
    pub(super) id: LogicalId,
    pub(super) alarm: Handle<Alarm>,
}

/// Adds the alarms, if the stack has any.
pub(super) fn add(model: &mut Model, cx: &Context<'_>, functions: &[Deployed]) -> Result<Vec<Added>, Error> {
    if !cx.options.enable_alarms() {
        return Ok(vec![]);
    }
    let mut alarms = Vec::new();
    for function in functions {
        alarms.extend(of_function(cx, function));
    }
    alarms.extend(of_table(cx));
    let add = |(id, alarm): (LogicalId, Alarm)| {
        Ok(Added {
            id: id.clone(),
            alarm: model.add(id, &alarm)?,
        })
    };
    alarms.into_iter().map(add).collect()
}

fn of_function(cx: &Context<'_>, deployed: &Deployed) -> Vec<(LogicalId, Alarm)> {
    let mut alarms = of_invocations(cx, deployed);
    alarms.extend(of_mapping(cx, deployed));
    alarms
}

/// A metric of Lambda, for a function.
fn of_lambda(metric_name: &'static str, deployed: &Deployed) -> Metric {
    Metric {
        namespace: "AWS/Lambda",
        metric_name,
        dimensions: vec![Dimension {
            name: "FunctionName",
            value: deployed.function.name(),
        }],
    }
}

fn of_invocations(cx: &Context<'_>, deployed: &Deployed) -> Vec<(LogicalId, Alarm)> {
    let (ids, which, text) = (
        deployed.which.ids(),
        deployed.which,
        Descriptions::of(deployed.which),
    );
    let age_name = match which {
        LambdaFunction::Aggregator => "stream-iterator-age",
        LambdaFunction::Archiver => "archiver-iterator-age",
    };
    let slow = cx.options.lambda_timeout() * 1000 * cx.options.lambda_duration_threshold_pct() / 100;
    let behind = cx.options.alarm_iterator_age_seconds() * 1000;
    let throttles = cx.options.alarm_throttled_requests();
    let on = |name: &str, meaning, metric_name, statistic, threshold| {
        alarm(
            cx,
            name,
            meaning,
            of_lambda(metric_name, deployed),
            statistic,
            threshold,
        )
    };
    let named = |name: &str| format!("{which}-{name}");
    // An invocation counts as 1 error or 0, so the average is the share of invocations that failed.
    let errors = Alarm {
        threshold: hundredths(cx.options.alarm_error_rate_pct()),
        ..on(&named("error-rate"), text.errors, "Errors", Statistic::Average, 0)
    };
    let duration = on(
        &named("duration"),
        text.duration,
        "Duration",
        Statistic::Average,
        slow,
    );
    let age = on(age_name, text.age, "IteratorAge", Statistic::Maximum, behind);
    let throttled = on(
        &named("throttles"),
        text.throttles,
        "Throttles",
        Statistic::Sum,
        throttles,
    );
    let destination = Alarm {
        evaluation_periods: 1,
        ..on(
            &named("destination-failures"),
            text.destination,
            "DestinationDeliveryFailures",
            Statistic::Sum,
            0,
        )
    };
    vec![
        (ids.queue_alarm, queue(cx, deployed, text.queue)),
        (ids.error_alarm, errors),
        (ids.duration_alarm, duration),
        (ids.age_alarm, age),
        (ids.throttle_alarm, throttled),
        (ids.destination_alarm, destination),
    ]
}

fn queue(cx: &Context<'_>, deployed: &Deployed, meaning: &'static str) -> Alarm {
    let messages = Metric {
        namespace: "AWS/SQS",
        metric_name: "ApproximateNumberOfMessagesVisible",
        dimensions: vec![Dimension {
            name: "QueueName",
            value: deployed.queue.name(),
        }],
    };
    let name = format!("{}-dlq-alarm", deployed.which);
    Alarm {
        evaluation_periods: 1,
        comparison_operator: Comparison::GreaterThanOrEqualToThreshold,
        ..alarm(cx, &name, meaning, messages, Statistic::Maximum, 1)
    }
}

/// Lambda's metrics of a function, `IteratorAge` included, exist only while batches finish. Those of the mapping exist as long
/// as it reads the stream, with 0 for a quiet table: when they are missing, the mapping is disabled or cannot read.
fn of_mapping(cx: &Context<'_>, deployed: &Deployed) -> [(LogicalId, Alarm); 2] {
    let (ids, which, text) = (
        deployed.which.ids(),
        deployed.which,
        Descriptions::of(deployed.which),
    );
    let metric = |metric_name| Metric {
        namespace: "AWS/Lambda",
        metric_name,
        dimensions: vec![Dimension {
            name: "EventSourceMappingUUID",
            value: deployed.mapping.uuid(),
        }],
    };
    let name = format!("{which}-stopped");
    // No value is below 0, so only missing data raises it.
    let stopped = Alarm {
        evaluation_periods: 3,
        comparison_operator: Comparison::LessThanThreshold,
        treat_missing_data: "breaching",
        ..alarm(
            cx,
            &name,
            text.stopped,
            metric("PolledEventCount"),
            Statistic::Sum,
            0,
        )
    };
    let name = format!("{which}-failed-events");
    // A batch that fails once and succeeds on a retry is no reason to wake anybody.
    let failed = Alarm {
        evaluation_periods: 3,
        ..alarm(
            cx,
            &name,
            text.failed,
            metric("FailedInvokeEventCount"),
            Statistic::Sum,
            0,
        )
    };
    [(ids.stopped_alarm, stopped), (ids.failed_events_alarm, failed)]
}

/// Throttled requests of the table and of each index, which `DynamoDB` counts separately.
fn of_table(cx: &Context<'_>) -> Vec<(LogicalId, Alarm)> {
    let indexes = [
        (None, ids::READ_THROTTLE_ALARM, ids::WRITE_THROTTLE_ALARM),
        (
            Some(GSI1),
            ids::GSI1_READ_THROTTLE_ALARM,
            ids::GSI1_WRITE_THROTTLE_ALARM,
        ),
        (
            Some(GSI2),
            ids::GSI2_READ_THROTTLE_ALARM,
            ids::GSI2_WRITE_THROTTLE_ALARM,
        ),
        (
            Some(GSI3),
            ids::GSI3_READ_THROTTLE_ALARM,
            ids::GSI3_WRITE_THROTTLE_ALARM,
        ),
    ];
    let mut alarms = Vec::new();
    for (index, read, write) in indexes {
        alarms.push((read, throttle(cx, index, "read", "ReadThrottleEvents")));
        alarms.push((write, throttle(cx, index, "write", "WriteThrottleEvents")));
    }
    alarms
}

fn throttle(cx: &Context<'_>, index: Option<&str>, what: &str, metric_name: &'static str) -> Alarm {
    let mut dimensions = vec![Dimension {
        name: "TableName",
        value: cx.table.name(),
    }];
    dimensions.extend(index.map(|name| Dimension {
        name: "GlobalSecondaryIndexName",
        value: name.into(),
    }));
    let metric = Metric {
        namespace: "AWS/DynamoDB",
        metric_name,
        dimensions,
    };
    let of = index
        .map(|name| format!("{}-", name.to_lowercase()))
        .unwrap_or_default();
    let meaning = match (index, what) {
        (None, "read") => "Reads of the table are throttled",
        (None, _) => "Writes of the table are throttled; look for a hot entity",
        (Some(_), "read") => "Reads of an index are throttled",
        (Some(_), _) => "Writes of an index are throttled; look for a hot resource or parent",
    };
    let threshold = cx.options.alarm_throttled_requests();
    alarm(
        cx,
        &format!("{of}{what}-throttle"),
        meaning,
        metric,
        Statistic::Sum,
        threshold,
    )
}

fn alarm(
    cx: &Context<'_>,
    name: &str,
    meaning: &'static str,
    metric: Metric,
    statistic: Statistic,
    threshold: u32,
) -> Alarm {
    let topics: Vec<_> = cx
        .options
        .alarm_sns_topic()
        .iter()
        .map(|topic| Text::from(topic.as_str()))
        .collect();
    Alarm {
        alarm_name: cx.name.clone().then(format!("-{name}")),
        alarm_description: meaning,
        metric,
        statistic,
        period: FIVE_MINUTES,
        evaluation_periods: 2,
        comparison_operator: Comparison::GreaterThanThreshold,
        threshold: threshold.into(),
        treat_missing_data: "notBreaching",
        alarm_actions: topics.clone(),
        ok_actions: topics,
    }
}

fn hundredths(percentage: u32) -> Number {
    // 0 stays a whole number, as it is without a fraction.
    Number::from_f64(f64::from(percentage) / 100.0)
        .filter(|_| percentage > 0)
        .unwrap_or_else(|| 0.into())
}

struct Descriptions {
    queue: &'static str,
    errors: &'static str,
    duration: &'static str,
    age: &'static str,
    stopped: &'static str,
    failed: &'static str,
    throttles: &'static str,
    destination: &'static str,
}

impl Descriptions {
    const fn of(function: LambdaFunction) -> Self {
        match function {
            LambdaFunction::Aggregator => Self {
                queue: "The aggregator's dead-letter queue has changes that it could not count",
                errors: "Invocations of the aggregator fail",
                duration: "Invocations of the aggregator come close to their timeout",
                age: "The aggregator falls behind; after 22 hours changes are lost from usage",
                stopped: "The aggregator's event source mapping is disabled or cannot read the stream",
                failed: "The aggregator cannot be invoked, or fails for the same records; check its role and code",
                throttles: "Invocations of the aggregator are throttled; check its concurrency",
                destination: "Lambda cannot write to the aggregator's dead-letter queue",
            },
            LambdaFunction::Archiver => Self {
                queue: "The archiver's dead-letter queue has audit events that it could not archive",
                errors: "Invocations of the archiver fail",
                duration: "Invocations of the archiver come close to their timeout",
                age: "The archiver falls behind; after 22 hours events are missing from the archive",
                stopped: "The archiver's event source mapping is disabled or cannot read the stream",
                failed: "The archiver cannot be invoked, or fails for the same records; check its role and code",
                throttles: "Invocations of the archiver are throttled; check its concurrency",
                destination: "Lambda cannot write to the archiver's dead-letter queue",
            },
        }
    }
}
