//! The panels of both dashboards.

use zae_limiter_schema::table::TABLE;

use crate::model::Text;
use crate::resources::LambdaFunction;

/// The names that the metrics are measured for.
pub(super) struct Names {
    pub(super) table: Text,
    pub(super) readers: Vec<ReaderNames>,
}

/// The names of a function that reads the stream.
pub(super) struct ReaderNames {
    pub(super) which: LambdaFunction,
    pub(super) function: Text,
    pub(super) queue: Text,
    pub(super) mapping: Text,
}

/// A chart.
pub(super) struct Panel {
    pub(super) title: String,
    /// What the series count, on the left axis.
    pub(super) unit: Unit,
    pub(super) series: Vec<Series>,
    /// What the series are combined to, on an axis of its own.
    pub(super) total: Option<Total>,
    /// Instead of series that are known beforehand.
    pub(super) search: Option<Search>,
}

/// The unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A number per point of the chart.
    Count,
    Milliseconds,
}

/// One metric with one more dimension, each value of which is a series.
pub(super) struct Search {
    pub(super) namespace: &'static str,
    pub(super) metric: &'static str,
    pub(super) statistic: &'static str,
    /// The dimension that is given.
    pub(super) given: (&'static str, Text),
    /// The dimension whose values are searched.
    pub(super) searched: &'static str,
}

impl Search {
    /// The seconds that a point of the chart stands for.
    pub(super) const PERIOD: u32 = 300;

    /// The search in CloudWatch's metric math, for this value of the given dimension.
    pub(super) fn expression(&self, value: &str) -> String {
        let (namespace, metric, statistic) = (self.namespace, self.metric, self.statistic);
        let ((given, _), searched) = (&self.given, self.searched);
        format!(
            "SEARCH('{{{namespace},{given},{searched}}} MetricName=\"{metric}\" {given}=\"{value}\"', '{statistic}', {})",
            Self::PERIOD
        )
    }
}

/// One metric of a chart.
pub(super) struct Series {
    pub(super) namespace: &'static str,
    pub(super) metric: &'static str,
    pub(super) statistic: &'static str,
    pub(super) label: String,
    pub(super) dimensions: Vec<(&'static str, Text)>,
}

/// A sum of all series, each with a factor.
pub(super) struct Total {
    pub(super) label: &'static str,
    pub(super) factors: Vec<f64>,
}

impl Total {
    /// The sum in CloudWatch's metric math. The series are `m0`, `m1` and so on.
    pub(super) fn expression(&self) -> String {
        let mut sums: Vec<(String, Vec<String>)> = Vec::new();
        for (number, factor) in self.factors.iter().enumerate() {
            let (factor, term) = (format!("{factor:.9}"), format!("FILL(m{number},0)"));
            match sums.last_mut().filter(|(last, _)| *last == factor) {
                Some((_, terms)) => terms.push(term),
                None => sums.push((factor, vec![term])),
            }
        }
        let sums = sums
            .iter()
            .map(|(factor, terms)| format!("({})*{factor}", terms.join("+")));
        sums.collect::<Vec<_>>().join("+")
    }
}

/// On-demand prices in us-east-1, in US dollars per request unit.
const READ_PRICE: f64 = 0.125e-6;
const WRITE_PRICE: f64 = 0.625e-6;

pub(super) fn all(names: &Names) -> Vec<Panel> {
    let mut panels = vec![consumed(names), throttled(names), latency(names)];
    panels.extend(names.readers.iter().flat_map(of_reader));
    let counter = |reader: &&ReaderNames| reader.which == LambdaFunction::Aggregator;
    panels.extend(names.readers.iter().find(counter).map(usage));
    panels
}

/// Acquires by resource, as the aggregator counts them.
fn usage(names: &ReaderNames) -> Panel {
    Panel {
        search: Some(Search {
            namespace: "ZaeLimiter",
            metric: "Acquires",
            statistic: "Sum",
            given: ("FunctionName", names.function.clone()),
            searched: "Resource",
        }),
        ..panel("Acquires per resource", vec![])
    }
}

fn panel(title: impl Into<String>, series: Vec<Series>) -> Panel {
    Panel {
        title: title.into(),
        unit: Unit::Count,
        series,
        total: None,
        search: None,
    }
}

impl Panel {
    fn in_milliseconds(self) -> Self {
        let unit = Unit::Milliseconds;
        Self { unit, ..self }
    }
}

/// A metric of the table, and of each index.
fn of_table(names: &Names, metric: &'static str, what: &str) -> Vec<Series> {
    let of = |index: Option<&'static str>| {
        let mut dimensions = vec![("TableName", names.table.clone())];
        dimensions.extend(index.map(|index| ("GlobalSecondaryIndexName", index.into())));
        Series {
            namespace: "AWS/DynamoDB",
            metric,
            statistic: "Sum",
            label: format!("{what}, {}", index.unwrap_or("table")),
            dimensions,
        }
    };
    let indexes = TABLE.indexes.into_iter().map(|index| Some(index.name));
    std::iter::once(None).chain(indexes).map(of).collect()
}

fn consumed(names: &Names) -> Panel {
    let reads = of_table(names, "ConsumedReadCapacityUnits", "reads");
    let writes = of_table(names, "ConsumedWriteCapacityUnits", "writes");
    let factors = reads
        .iter()
        .map(|_| READ_PRICE)
        .chain(writes.iter().map(|_| WRITE_PRICE));
    Panel {
        title: "Consumed capacity, and its estimated cost (on-demand, us-east-1)".to_owned(),
        unit: Unit::Count,
        total: Some(Total {
            label: "US dollars",
            factors: factors.collect(),
        }),
        search: None,
        series: reads.into_iter().chain(writes).collect(),
    }
}

fn throttled(names: &Names) -> Panel {
    let mut series = of_table(names, "ReadThrottleEvents", "reads");
    series.extend(of_table(names, "WriteThrottleEvents", "writes"));
    panel("Throttled requests", series)
}

fn latency(names: &Names) -> Panel {
    let series = ["UpdateItem", "BatchGetItem", "GetItem"]
        .into_iter()
        .flat_map(|operation| {
            ["p50", "p99"].map(|statistic| Series {
                namespace: "AWS/DynamoDB",
                metric: "SuccessfulRequestLatency",
                statistic,
                label: format!("{operation} {statistic}"),
                dimensions: vec![
                    ("TableName", names.table.clone()),
                    ("Operation", operation.into()),
                ],
            })
        });
    panel("Latency of the table", series.collect()).in_milliseconds()
}

fn of_reader(names: &ReaderNames) -> [Panel; 4] {
    let which = names.which;
    let series = |namespace, metric, statistic, label: &str, dimension, value: &Text| Series {
        namespace,
        metric,
        statistic,
        label: label.to_owned(),
        dimensions: vec![(dimension, value.clone())],
    };
    let lambda = |metric, statistic, label: &str| {
        series(
            "AWS/Lambda",
            metric,
            statistic,
            label,
            "FunctionName",
            &names.function,
        )
    };
    let mapping = |metric, label: &str| {
        series(
            "AWS/Lambda",
            metric,
            "Sum",
            label,
            "EventSourceMappingUUID",
            &names.mapping,
        )
    };
    let own = |metric, label: &str| {
        series(
            "ZaeLimiter",
            metric,
            "Sum",
            label,
            "FunctionName",
            &names.function,
        )
    };
    let queue = series(
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        "Maximum",
        "in the queue",
        "QueueName",
        &names.queue,
    );
    let counted = match which {
        LambdaFunction::Aggregator => own("Snapshots", "usage rows written"),
        LambdaFunction::Archiver => own("Records", "events"),
    };
    [
        panel(
            format!("Lag of the {which}"),
            vec![lambda("IteratorAge", "Maximum", "iterator age")],
        )
        .in_milliseconds(),
        panel(
            format!("Invocations of the {which}"),
            vec![
                lambda("Invocations", "Sum", "invocations"),
                lambda("Errors", "Sum", "errors"),
                lambda("Throttles", "Sum", "throttles"),
            ],
        ),
        panel(
            format!("Events of the {which}"),
            vec![
                mapping("PolledEventCount", "polled"),
                mapping("InvokedEventCount", "delivered"),
                mapping("FailedInvokeEventCount", "failed"),
                counted,
            ],
        ),
        panel(
            format!("Dead letters of the {which}"),
            vec![queue, own("DeadLetters", "written by the function")],
        ),
    ]
}
