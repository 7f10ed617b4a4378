//! The aggregator in the process, on simulated streams and over tables that misbehave.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bus;
mod memory;
mod redrives;
mod table;
mod tests;
mod thresholds;

use bus::Bus;
use memory::Memory;
use table::{Backend, Dynoxide, Unreliable};

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report,
};
use zae_limiter_schema::WindowKind;
use zae_limiter_testing::stream::{Chaos, Failed, Invoke, Ledger, Mapping, Options, ServiceFault, Workload};

use crate::Aggregator;
use crate::rules::Rules;

/// The aggregator as Lambda would run it, but in the process: invocations end at their time limit or when a call crashes.
struct InProcess<B> {
    aggregator: Aggregator<Unreliable<B>, Letters, Rc<Bus>>,
    bus: Rc<Bus>,
    chaos: Rc<Chaos>,
    crash: Rc<Notify>,
    letters: Letters,
    report: RefCell<Report>,
}

impl<B: Backend> InProcess<B> {
    fn new(backend: B, chaos: Chaos, rules: Rules) -> Self {
        let (chaos, crash) = (Rc::new(chaos), Rc::new(Notify::new()));
        let letters = Letters {
            chaos: Rc::clone(&chaos),
            crash: Rc::clone(&crash),
            kept: Rc::default(),
        };
        let table = Unreliable::new(backend, Rc::clone(&chaos), Rc::clone(&crash));
        let bus = Rc::new(Bus::new(Rc::clone(&chaos), Rc::clone(&crash)));
        let aggregator = Aggregator::new(table, letters.clone(), WindowKind::ALL.to_vec(), 90);
        let aggregator = aggregator.with_rules(rules).with_alerts(Some(Rc::clone(&bus)));
        let report = RefCell::new(Report::new(Level::Info, &[]));
        Self {
            aggregator,
            bus,
            chaos,
            crash,
            letters,
            report,
        }
    }

    fn table(&self) -> &Unreliable<B> {
        self.aggregator.table()
    }

    /// Rows that are not what was consumed, after every write that was still under way has arrived.
    fn differences(&self, ledger: &Ledger) -> Vec<String> {
        let table = self.aggregator.table();
        table.settle();
        ledger.differences(&Ledger::of(table.backend.snapshots()))
    }
}

impl<B: Backend> Invoke for InProcess<B> {
    async fn invoke(&self, event: &str) -> Result<String, Failed> {
        self.chaos.begin_invocation();
        let batch: Batch = serde_json::from_str(event).map_err(|error| Failed(error.to_string()))?;
        let seconds = [4, 10, 60][self.chaos.below(3)];
        let mut report = self.report.borrow().clone();
        let invocation = Invocation::within(Duration::from_secs(seconds));
        let response = tokio::select! {
            biased;
            () = self.crash.notified() => return Err(Failed("the process was killed".to_owned())),
            response = self.aggregator.handle(&batch, &invocation, &mut report) => response,
            () = tokio::time::sleep(Duration::from_secs(seconds)) => return Err(Failed("timed out".to_owned())),
        };
        self.report.replace(report);
        let response = response.map_err(|error| Failed(error.to_string()))?;
        Ok(serde_json::to_string(&response).unwrap())
    }
}

/// Dead letters that are kept, unless sending them goes wrong.
#[derive(Clone)]
struct Letters {
    chaos: Rc<Chaos>,
    crash: Rc<Notify>,
    kept: Rc<RefCell<Vec<String>>>,
}

impl DeadLetters for Letters {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        let message = letter.to_message();
        let fault = self.chaos.fault(&message);
        if matches!(
            fault,
            ServiceFault::None | ServiceFault::LostResponse | ServiceFault::Late
        ) {
            self.kept.borrow_mut().push(message);
        }
        match fault {
            ServiceFault::None => Ok(()),
            ServiceFault::Crash => {
                self.crash.notify_one();
                std::future::pending().await
            }
            _ => Err(CallError::Unavailable("no response".to_owned())),
        }
    }
}

/// What came of a run.
struct Outcome {
    differences: Vec<String>,
    discarded: usize,
    letters: Vec<String>,
    faults: u64,
    deliveries: usize,
    duplicates: u64,
}

/// How a run is made difficult.
struct Trial {
    seed: u64,
    rules: Rules,
    options: Options,
    /// The percentage of invocations that run into trouble.
    trouble: u8,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let options = Options {
            rewinds: 8,
            overlaps: 5,
            replays: 1,
            ..Options::aggregator()
        };
        Self {
            seed,
            rules: Rules::default(),
            options,
            trouble: 30,
        }
    }

    /// Runs the workload through the aggregator, stream by stream, with an outage of a dozen invocations in each.
    async fn run<B: Backend>(&self, backend: B, workload: &Workload) -> Outcome {
        let function = InProcess::new(backend, Chaos::new(self.seed, self.trouble), self.rules);
        let (mut discarded, mut deliveries) = (0, 0);
        for stream in &workload.streams {
            let mut mapping = Mapping::new(stream, self.options.clone(), self.seed);
            if self.trouble > 0 {
                function.chaos.begin_outage(12);
            }
            mapping.run(&function).await;
            discarded += mapping.discarded.len();
            deliveries += mapping.deliveries;
        }
        Outcome {
            differences: function.differences(&workload.ledger),
            discarded,
            letters: function.letters.kept.borrow().clone(),
            faults: function.chaos.faults.get(),
            deliveries,
            duplicates: function.report.borrow().counted(crate::metric::DUPLICATES),
        }
    }
}
