//! Event source mappings.

use super::Cloud;
use super::failure::Failure;

/// A function that reads a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) uuid: String,
    pub(crate) function_arn: String,
    pub(crate) state: String,
}

impl Mapping {
    /// The function's name, without qualifier.
    pub(crate) fn function(&self) -> &str {
        let after = self.function_arn.split_once(":function:").map(|(_, name)| name);
        let name = after.unwrap_or(&self.function_arn);
        name.split(':').next().unwrap_or(name)
    }
}

impl Cloud {
    /// Every event source mapping of a stream.
    pub(crate) async fn mappings(&self, stream: &str) -> Result<Vec<Mapping>, Failure> {
        let (mut all, mut marker) = (Vec::new(), None);
        loop {
            let call = self.clients.lambda.list_event_source_mappings();
            let page = call.event_source_arn(stream).set_marker(marker).send().await;
            let page = page.map_err(|error| Failure::of("lambda:ListEventSourceMappings", stream, &error))?;
            all.extend(page.event_source_mappings().iter().map(|mapping| Mapping {
                uuid: mapping.uuid().unwrap_or_default().to_owned(),
                function_arn: mapping.function_arn().unwrap_or_default().to_owned(),
                state: mapping.state().unwrap_or_default().to_owned(),
            }));
            marker = page.next_marker;
            if marker.is_none() {
                return Ok(all);
            }
        }
    }
}
