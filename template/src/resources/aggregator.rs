//! The function that counts usage.

use std::collections::BTreeMap;

use zae_limiter_schema::VersionRecord;

use super::context::Context;
use super::function::{self, Deployed, LambdaFunction, Profile};
use super::policies;
use crate::Error;
use crate::model::lambda::Code;
use crate::model::{Model, Text};

/// Adds the aggregator.
pub(super) fn add(model: &mut Model, cx: &Context<'_>, code: Code) -> Result<Deployed, Error> {
    let windows: Vec<_> = cx
        .options
        .snapshot_windows()
        .iter()
        .map(|window| window.as_str())
        .collect();
    let mut environment = BTreeMap::from([
        ("TABLE_NAME", cx.table.name()),
        ("SNAPSHOT_WINDOWS", Text::from(windows.join(","))),
        (
            "SNAPSHOT_TTL_DAYS",
            Text::from(cx.options.usage_retention_days().to_string()),
        ),
        (
            "ZAE_LIMITER_SCHEMA_VERSION",
            Text::from(VersionRecord::SCHEMA_VERSION),
        ),
    ]);
    if let Some(bus) = cx.options.event_bus() {
        environment.insert("EVENT_BUS", Text::from(bus.as_str()));
    }
    let profile = Profile {
        which: LambdaFunction::Aggregator,
        description: "Counts usage from the changes of buckets",
        role_description: "For the aggregator of the rate limiter",
        external_role: cx.options.aggregator_role_arn().cloned(),
        data: policies::count_usage(&cx.table, cx.options),
        environment,
        filter: crate::filters::aggregator(),
        batch_size: 1000,
        parallelization: cx.options.aggregator_parallelization(),
    };
    function::add(model, cx, code, profile)
}
