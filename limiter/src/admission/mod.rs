//! Admission: one conditional write per acquire, exactly once, never too much.
//!
//! Every bucket that this process uses has a [`Lane`](lane::Lane): a queue of calls, the last image seen of the bucket, and at
//! most one write in flight. Calls that arrive while a write is in flight are folded into the next one, in order of
//! arrival; when nothing is in flight nothing waits. What a lane does next is decided by its [`Desk`](desk::Desk), which is
//! pure; [`drive`] carries it out.
//!
//! The image only chooses the write and may refuse; the server's condition admits. A refused write brings the image
//! along, from which the next one is made. A write without an answer is sent again as it is: the client's slot on the
//! item tells whether it happened.

mod acquire;
mod cascade;
mod compile;
mod desk;
mod drive;
mod grant;
mod lane;
mod lanes;
mod lease;
mod level;
mod line;
mod patience;
mod peek;
mod report;
mod roster;
mod server_time;
mod share;
mod status;
mod tally;
mod ticket;

pub use acquire::Acquire;
pub use lease::{Admission, Lease};
pub use peek::Peek;
pub use report::{LimiterStats, Shutdown, Unwritten};
pub use status::{LimitStatus, RateLimitExceeded, RetryAfter};

pub(crate) use compile::compile;
pub(crate) use lanes::Lanes;
pub(crate) use server_time::DateWatch;
