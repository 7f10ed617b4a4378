//! Events on EventBridge.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use zae_limiter_function::CallError;

use crate::{Alerts, ThresholdEvent};

/// A bus of EventBridge.
#[derive(Debug, Clone)]
pub struct EventBridge {
    client: Client,
    bus: String,
}

impl EventBridge {
    /// The bus of that name or ARN.
    pub fn new(config: &aws_config::SdkConfig, bus: impl Into<String>) -> Self {
        Self {
            client: Client::new(config),
            bus: bus.into(),
        }
    }

    fn entry(&self, event: &ThresholdEvent) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(ThresholdEvent::SOURCE)
            .detail_type(ThresholdEvent::DETAIL_TYPE)
            .resources(&event.table_arn)
            .time(DateTime::from_millis(event.at.millis()))
            .detail(event.to_json())
            .build()
    }
}

impl Alerts for EventBridge {
    async fn send(&self, events: &[&ThresholdEvent]) -> Result<Vec<Result<(), CallError>>, CallError> {
        let entries = events.iter().map(|event| self.entry(event)).collect();
        let sent = self.client.put_events().set_entries(Some(entries)).send().await;
        let sent = sent.map_err(|error| missing_bus(CallError::from(&error)))?;
        let mut entries = sent.entries.unwrap_or_default().into_iter();
        Ok(events
            .iter()
            .map(|_| match entries.next() {
                Some(entry) if entry.event_id.is_some() => Ok(()),
                Some(entry) => Err(missing_bus(CallError::from_code(
                    &entry.error_code.unwrap_or_default(),
                    &entry.error_message.unwrap_or_default(),
                    400,
                ))),
                None => Err(CallError::Unavailable("no response for this event".to_owned())),
            })
            .collect())
    }
}

/// The only resource of the call is the bus.
fn missing_bus(error: CallError) -> CallError {
    match error {
        CallError::TableMissing => CallError::Denied("no such event bus".to_owned()),
        other => other,
    }
}
