//! An event bus that misbehaves.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::Notify;
use zae_limiter_function::CallError;
use zae_limiter_testing::stream::{Chaos, ServiceFault};

use crate::{Alerts, MAX_EVENTS, ThresholdEvent};

/// A bus that takes some events of a call and not others, and whose responses are lost.
pub(crate) struct Bus {
    chaos: Rc<Chaos>,
    crash: Rc<Notify>,
    pub(crate) received: RefCell<Vec<ThresholdEvent>>,
}

impl Bus {
    pub(crate) fn new(chaos: Rc<Chaos>, crash: Rc<Notify>) -> Self {
        Self {
            chaos,
            crash,
            received: RefCell::default(),
        }
    }
}

impl Alerts for Rc<Bus> {
    async fn send(&self, events: &[&ThresholdEvent]) -> Result<Vec<Result<(), CallError>>, CallError> {
        assert!((1..=MAX_EVENTS).contains(&events.len()));
        tokio::task::yield_now().await;
        let mut outcomes = Vec::new();
        for event in events {
            let receive = || self.received.borrow_mut().push((*event).clone());
            outcomes.push(match self.chaos.fault(&event.id) {
                ServiceFault::None => {
                    receive();
                    Ok(())
                }
                ServiceFault::Refused => Err(CallError::Throttled("ThrottlingException".to_owned())),
                ServiceFault::Rejected => Err(CallError::Refused("FutureException".to_owned())),
                ServiceFault::LostResponse | ServiceFault::Late => {
                    receive();
                    return Err(CallError::Unavailable("no response".to_owned()));
                }
                ServiceFault::Crash => {
                    self.crash.notify_one();
                    std::future::pending().await
                }
            });
        }
        Ok(outcomes)
    }
}
