//! Alarms.

use super::context::Context;
use super::function::{Deployed, LambdaFunction};
use super::{ids, table};
use crate::Error;
use crate::model::cloudwatch::{
    Alarm, Comparison, Dimension, Metric, MetricOverTime, MetricQuery, MetricStat, Statistic, Watched,
};
use crate::model::{Handle, LogicalId, Model, Text};

const FIVE_MINUTES: u32 = 300;

/// An alarm of the stack, by the name that its output has.
pub(super) struct Added {
    pub(super) id: LogicalId,
    pub(super) meaning: &'static str,
    pub(super) alarm: Handle<Alarm>,
}

/// Adds the alarms, if the stack has any.
pub(super) fn add(model: &mut Model, cx: &Context<'_>, functions: &[Deployed]) -> Result<Vec<Added>, Error> {
    if !cx.options.enable_alarms {
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
    let ids = deployed.which.ids();
    let which = deployed.which;
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
    let one = |metric, statistic| {
        Watched::One(MetricOverTime {
            metric,
            statistic,
            period: FIVE_MINUTES,
        })
    };
    let text = Descriptions::of(which);
    let age = if which == LambdaFunction::Aggregator {
        "stream-iterator-age"
    } else {
        "archiver-iterator-age"
    };
    let slow = cx.options.lambda_timeout * 1000 * cx.options.lambda_duration_threshold_pct / 100;
    [
        (
            ids.queue_alarm,
            Alarm {
                evaluation_periods: 1,
                comparison_operator: Comparison::GreaterThanOrEqualToThreshold,
                ..alarm(
                    cx,
                    format!("{which}-dlq-alarm"),
                    text.queue,
                    one(messages, Statistic::Maximum),
                    1,
                )
            },
        ),
        (
            ids.error_alarm,
            alarm(
                cx,
                format!("{which}-error-rate"),
                text.errors,
                error_rate(&lambda),
                cx.options.alarm_error_rate_pct,
            ),
        ),
        (
            ids.duration_alarm,
            alarm(
                cx,
                format!("{which}-duration"),
                text.duration,
                one(lambda("Duration"), Statistic::Average),
                slow,
            ),
        ),
        (
            ids.age_alarm,
            alarm(
                cx,
                age,
                text.age,
                one(lambda("IteratorAge"), Statistic::Maximum),
                cx.options.alarm_iterator_age_seconds * 1000,
            ),
        ),
    ]
}

/// Failed calls in a hundred.
fn error_rate(lambda: &impl Fn(&'static str) -> Metric) -> Watched {
    let result = computed(
        "rate",
        "100 * errors / MAX([errors, invocations])",
        "Failed calls in %",
    );
    let metrics = vec![
        result,
        input("errors", lambda("Errors"), Statistic::Sum),
        input("invocations", lambda("Invocations"), Statistic::Sum),
    ];
    Watched::Computed { metrics }
}

fn of_table(cx: &Context<'_>) -> [(LogicalId, Alarm); 2] {
    let threshold = cx.options.alarm_throttled_requests;
    let make = |name: &str, text, metric| alarm(cx, name, text, throttles(cx, metric), threshold);
    let read = "Reads of the table or of one of its indexes are throttled";
    let write =
        "Writes of the table or of one of its indexes are throttled: look for a hot entity or resource";
    [
        (
            ids::READ_THROTTLE_ALARM,
            make("read-throttle", read, "ReadThrottleEvents"),
        ),
        (
            ids::WRITE_THROTTLE_ALARM,
            make("write-throttle", write, "WriteThrottleEvents"),
        ),
    ]
}

/// Throttled requests of the table and of each index, which `DynamoDB` counts apart.
fn throttles(cx: &Context<'_>, metric_name: &'static str) -> Watched {
    let table = || Dimension {
        name: "TableName",
        value: cx.table.name(),
    };
    let metric = |dimensions| Metric {
        namespace: "AWS/DynamoDB",
        metric_name,
        dimensions,
    };
    let mut inputs = vec![input("table", metric(vec![table()]), Statistic::Sum)];
    for index in table::INDEXES {
        let dimension = Dimension {
            name: "GlobalSecondaryIndexName",
            value: Text::from(index),
        };
        inputs.push(input(
            &index.to_lowercase(),
            metric(vec![table(), dimension]),
            Statistic::Sum,
        ));
    }
    let terms: Vec<_> = inputs
        .iter()
        .map(|input| format!("FILL({}, 0)", input.id))
        .collect();
    let mut metrics = vec![computed("throttled", terms.join(" + "), "Throttled requests")];
    metrics.extend(inputs);
    Watched::Computed { metrics }
}

fn computed(id: &str, expression: impl Into<String>, label: &'static str) -> MetricQuery {
    MetricQuery {
        id: id.to_owned(),
        return_data: true,
        label: Some(label),
        expression: Some(expression.into()),
        metric_stat: None,
    }
}

fn input(id: &str, metric: Metric, stat: Statistic) -> MetricQuery {
    MetricQuery {
        id: id.to_owned(),
        return_data: false,
        label: None,
        expression: None,
        metric_stat: Some(MetricStat {
            metric,
            period: FIVE_MINUTES,
            stat,
        }),
    }
}

fn alarm(
    cx: &Context<'_>,
    name: impl AsRef<str>,
    alarm_description: &'static str,
    watched: Watched,
    threshold: u32,
) -> Alarm {
    let topics: Vec<_> = cx
        .options
        .alarm_sns_topic
        .iter()
        .map(|topic| Text::from(topic.as_str()))
        .collect();
    Alarm {
        alarm_name: cx.name.clone().then(format!("-{}", name.as_ref())),
        alarm_description,
        watched,
        evaluation_periods: 2,
        comparison_operator: Comparison::GreaterThanThreshold,
        threshold,
        treat_missing_data: "notBreaching",
        alarm_actions: topics.clone(),
        ok_actions: topics,
    }
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
                age: "The aggregator falls behind: after 22 hours changes are lost from usage",
            },
            LambdaFunction::Archiver => Self {
                queue: "Audit events that could not be archived are in the archiver's queue",
                errors: "Calls of the archiver fail",
                duration: "Calls of the archiver come close to their timeout",
                age: "The archiver falls behind: after 22 hours events are missing from the archive",
            },
        }
    }
}
