//! Stack events.

use super::Cloud;
use super::failure::Failure;
use crate::events::{ResourceEvent, starts_operation};

/// At most 20 pages of 100 events. An operation on our stack has a few hundred.
const PAGES: usize = 20;

impl Cloud {
    /// The events of the newest operation, newest first.
    pub(crate) async fn newest_operation(&self, stack: &str) -> Result<Vec<ResourceEvent>, Failure> {
        let (mut events, mut token) = (Vec::new(), None);
        for _ in 0..PAGES {
            let call = self
                .clients
                .cloudformation
                .describe_stack_events()
                .stack_name(stack)
                .set_next_token(token);
            let page = call.send().await;
            let page =
                page.map_err(|error| Failure::of("cloudformation:DescribeStackEvents", stack, &error))?;
            for event in page.stack_events() {
                let event = ResourceEvent::of(event);
                let first = starts_operation(&event);
                events.push(event);
                if first {
                    return Ok(events);
                }
            }
            token = page.next_token().map(str::to_owned);
            if token.is_none() {
                break;
            }
        }
        Ok(events)
    }
}
