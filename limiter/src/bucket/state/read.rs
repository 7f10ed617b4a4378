//! What a read of the bucket says about the calls that wait and the writes without an answer.

use super::super::request::Request;
use super::slots::Trace;
use super::{Completion, LastSeen, Moment, QueueState};

impl QueueState {
    /// The bucket as just read, consistently.
    pub(crate) fn reread(&mut self, found: &LastSeen, moment: Moment) -> Vec<Completion> {
        self.looked();
        self.guess.just_read = true;
        let first = self.knows_nothing() && self.unresolved.is_empty();
        self.known = found.clone();
        match found {
            LastSeen::Live(_, _) if first => {
                self.adopt(found);
                Vec::new()
            }
            LastSeen::Live(image, _) => match self.trace(image, None, moment) {
                Trace::NoneYet => Vec::new(),
                Trace::Happened(number) => self.happened(number),
                Trace::Untraceable => self.drop_untraceable(),
            },
            LastSeen::Absent(_) | LastSeen::Nothing => {
                self.nothing_there();
                Vec::new()
            }
        }
    }

    /// The bucket could not be read. True if the next write can do without: it guesses from the image that is known.
    pub(crate) fn goes_on_unread(&mut self) -> bool {
        let goes_on = std::mem::take(&mut self.guess.optional_read);
        self.guess.just_read |= goes_on;
        goes_on
    }

    /// Calls that wait have the bucket before them as it is now.
    pub(super) fn looked(&mut self) {
        self.queue.iter_mut().for_each(Request::looked);
    }
}
