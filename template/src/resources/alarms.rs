//! Alarms, each on one metric: local clouds know no computed ones.

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
    pub(super) meaning: &'static str,
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
        let meaning = alarm.alarm_description;
        Ok(Added {
            id: id.clone(),
            meaning,
            alarm: model.add(id, &alarm)?,
        })
    };
    alarms.into_iter().map(add).collect()
}

fn of_function(cx: &Context<'_>, deployed: &Deployed) -> [(LogicalId, Alarm); 4] {
    let (ids, which, text) = (
        deployed.which.ids(),
        deployed.which,
        Descriptions::of(deployed.which),
    );
    let messages = Metric {
        namespace: "AWS/SQS",
        metric_name: "ApproximateNumberOfMessagesVisible",
        dimensions: vec![Dimension {
            name: "QueueName",
            value: deployed.queue.name(),
        }],
    };
    let lambda = |metric_name| Metric {
        namespace: "AWS/Lambda",
        metric_name,
        dimensions: vec![Dimension {
            name: "FunctionName",
            value: deployed.function.name(),
        }],
    };
    let age_name = match which {
        LambdaFunction::Aggregator => "stream-iterator-age",
        LambdaFunction::Archiver => "archiver-iterator-age",
    };
    let slow = cx.options.lambda_timeout() * 1000 * cx.options.lambda_duration_threshold_pct() / 100;
    let behind = cx.options.alarm_iterator_age_seconds() * 1000;
    let queue = Alarm {
        evaluation_periods: 1,
        comparison_operator: Comparison::GreaterThanOrEqualToThreshold,
        ..alarm(
            cx,
            &format!("{which}-dlq-alarm"),
            text.queue,
            messages,
            Statistic::Maximum,
            1,
        )
    };
    // A call counts 1 error or 0, so their average is the share of calls that failed.
    let errors = Alarm {
        threshold: hundredths(cx.options.alarm_error_rate_pct()),
        ..alarm(
            cx,
            &format!("{which}-error-rate"),
            text.errors,
            lambda("Errors"),
            Statistic::Average,
            0,
        )
    };
    let duration = alarm(
        cx,
        &format!("{which}-duration"),
        text.duration,
        lambda("Duration"),
        Statistic::Average,
        slow,
    );
    let age = alarm(
        cx,
        age_name,
        text.age,
        lambda("IteratorAge"),
        Statistic::Maximum,
        behind,
    );
    [
        (ids.queue_alarm, queue),
        (ids.error_alarm, errors),
        (ids.duration_alarm, duration),
        (ids.age_alarm, age),
    ]
}

/// Throttled requests of the table and of each index, which `DynamoDB` counts apart.
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
    // 0 stands for "any", as it does where there is no fraction.
    Number::from_f64(f64::from(percentage) / 100.0)
        .filter(|_| percentage > 0)
        .unwrap_or_else(|| 0.into())
}

struct Descriptions {
    queue: &'static str,
    errors: &'static str,
    duration: &'static str,
    age: &'static str,
}

impl Descriptions {
    const fn of(function: LambdaFunction) -> Self {
        match function {
            LambdaFunction::Aggregator => Self {
                queue: "Changes that the aggregator could not count are in its queue",
                errors: "Calls of the aggregator fail",
                duration: "Calls of the aggregator come close to their timeout",
                age: "The aggregator falls behind; after 22 hours changes are lost from usage",
            },
            LambdaFunction::Archiver => Self {
                queue: "Audit events that could not be archived are in the queue of the archiver",
                errors: "Calls of the archiver fail",
                duration: "Calls of the archiver come close to their timeout",
                age: "The archiver falls behind; after 22 hours events are missing from the archive",
            },
        }
    }
}
