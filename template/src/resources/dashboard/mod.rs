//! The dashboard: the same panels for CloudWatch and for Grafana.

mod cloudwatch;
mod grafana;
mod panels;

pub(crate) use grafana::grafana;

use super::context::Context;
use super::function::Deployed;
use super::ids;
use crate::Error;
use crate::model::cloudwatch::Dashboard;
use crate::model::{Handle, Model};
use panels::{Names, ReaderNames};

/// Adds the dashboard, if the stack has one.
pub(super) fn add(
    model: &mut Model,
    cx: &Context<'_>,
    functions: &[Deployed],
) -> Result<Option<Handle<Dashboard>>, Error> {
    if !cx.options.enable_dashboard() {
        return Ok(None);
    }
    let readers = functions.iter().map(|deployed| ReaderNames {
        which: deployed.which,
        function: deployed.function.name(),
        queue: deployed.queue.name(),
        mapping: deployed.mapping.uuid(),
    });
    let names = Names {
        table: cx.table.name(),
        readers: readers.collect(),
    };
    let dashboard = Dashboard {
        dashboard_name: cx.name.clone(),
        dashboard_body: cloudwatch::body(&panels::all(&names)),
    };
    model.add(ids::DASHBOARD, &dashboard).map(Some)
}
