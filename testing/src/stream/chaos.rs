//! What goes wrong between a function and the services it calls.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use fastrand::Rng;

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceFault {
    /// Nothing: it is performed and gets a response.
    None,
    /// It is refused for now and not performed.
    Refused,
    /// It is refused with an error that nobody knows, and not performed.
    Rejected,
    /// It is performed, and the response is lost.
    LostResponse,
    /// There is no response, and it is performed at some later time.
    Late,
    /// The function's process ends here, and the call is not performed.
    Crash,
}

/// How calls fare during one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing happens.
    Calm,
    /// Some calls of every kind go wrong.
    Rough,
    /// Calls on some of the keys are refused throughout.
    Patchy(u64),
    /// Calls on some of the keys are rejected throughout.
    Rejecting(u64),
    /// Every call is refused.
    Outage,
    /// All is well until the process ends after this many calls.
    Crash(u32),
}

/// A source of trouble that a seed determines.
#[derive(Debug)]
pub struct Chaos {
    random: RefCell<Rng>,
    trouble: Cell<Trouble>,
    outage: Cell<u32>,
    crash: Cell<Option<u32>>,
    percent: Cell<u8>,
    rejecting: bool,
    /// How many calls were refused, lost, late or cut off.
    pub faults: Cell<u64>,
}

impl Chaos {
    /// Trouble in this percentage of the invocations.
    pub fn new(seed: u64, percent: u8) -> Self {
        Self {
            random: RefCell::new(Rng::with_seed(seed)),
            trouble: Cell::new(Trouble::Calm),
            outage: Cell::new(0),
            crash: Cell::new(None),
            percent: Cell::new(percent),
            rejecting: false,
            faults: Cell::new(0),
        }
    }

    /// The same, with keys that are rejected in some of the invocations.
    #[must_use]
    pub fn rejecting(self) -> Self {
        Self {
            rejecting: true,
            ..self
        }
    }

    /// Nothing goes wrong from now on.
    pub fn calm(&self) {
        self.percent.set(0);
        self.outage.set(0);
        self.trouble.set(Trouble::Calm);
    }

    /// Every call of the next invocations is refused.
    pub fn begin_outage(&self, invocations: u32) {
        self.outage.set(invocations);
    }

    /// The next invocation is well until its process ends, after this many calls.
    pub fn begin_crash(&self, calls: u32) {
        self.crash.set(Some(calls));
    }

    /// An invocation begins; what it will be like.
    pub fn begin_invocation(&self) -> Trouble {
        let mut random = self.random.borrow_mut();
        let trouble = if let Some(calls) = self.crash.take() {
            Trouble::Crash(calls)
        } else if self.outage.get() > 0 {
            self.outage.set(self.outage.get() - 1);
            Trouble::Outage
        } else if random.u8(..100) >= self.percent.get() {
            Trouble::Calm
        } else {
            match random.u8(..10) {
                0..4 if self.rejecting => Trouble::Rejecting(random.u64(..)),
                0..4 => Trouble::Rough,
                4..7 => Trouble::Patchy(random.u64(..)),
                7 => Trouble::Outage,
                _ => Trouble::Crash(random.u32(1..60)),
            }
        };
        self.trouble.set(trouble);
        trouble
    }

    /// What happens to a call on something with this name.
    pub fn fault(&self, name: &str) -> ServiceFault {
        let fault = self.draw(name);
        if fault != ServiceFault::None {
            self.faults.set(self.faults.get() + 1);
        }
        fault
    }

    fn draw(&self, name: &str) -> ServiceFault {
        let mut random = self.random.borrow_mut();
        match self.trouble.get() {
            Trouble::Outage => ServiceFault::Refused,
            Trouble::Patchy(seed) if is_hit(seed, name) => ServiceFault::Refused,
            Trouble::Rejecting(seed) if is_hit(seed, name) => ServiceFault::Rejected,
            Trouble::Calm | Trouble::Patchy(_) | Trouble::Rejecting(_) => ServiceFault::None,
            Trouble::Crash(0) => ServiceFault::Crash,
            Trouble::Crash(left) => {
                self.trouble.set(Trouble::Crash(left - 1));
                ServiceFault::None
            }
            Trouble::Rough => match random.u8(..100) {
                0..8 => ServiceFault::Refused,
                8..14 => ServiceFault::LostResponse,
                14..18 => ServiceFault::Late,
                _ => ServiceFault::None,
            },
        }
    }

    /// A number below `end`.
    pub fn below(&self, end: usize) -> usize {
        self.random.borrow_mut().usize(..end)
    }
}

/// True for about one name in six.
fn is_hit(seed: u64, name: &str) -> bool {
    let mut hasher = DefaultHasher::new();
    (seed, name).hash(&mut hasher);
    hasher.finish().is_multiple_of(6)
}
