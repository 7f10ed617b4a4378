//! A function's real binary, run as Lambda runs it: over the runtime API, in a process that may end at any time.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::http::{Reply, Request, Server};
use super::{Cloud, Failed, Invoke};

/// A function's binary with its environment and the cloud it talks to.
pub struct Lambda<'c> {
    binary: PathBuf,
    variables: Vec<(String, String)>,
    cloud: &'c Cloud,
    time_limit: Duration,
    sandbox: RefCell<Option<Sandbox>>,
    log: Arc<Mutex<Vec<String>>>,
    starts: RefCell<Vec<Duration>>,
    peak: RefCell<u64>,
}

impl<'c> Lambda<'c> {
    /// A function that gets these variables besides those of Lambda and AWS.
    pub fn new(binary: impl Into<PathBuf>, cloud: &'c Cloud, variables: &[(&str, &str)]) -> Self {
        let mut all = vec![
            ("AWS_LAMBDA_FUNCTION_NAME", "function-under-test".to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128".to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("AWS_ENDPOINT_URL", cloud.url()),
            ("DLQ_URL", format!("{}/123456789012/dlq", cloud.url())),
        ];
        all.extend(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        Self {
            binary: binary.into(),
            variables: all
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            cloud,
            time_limit: Duration::from_millis(4_500),
            sandbox: RefCell::new(None),
            log: Arc::default(),
            starts: RefCell::default(),
            peak: RefCell::new(0),
        }
    }

    /// The same with another time limit for invocations.
    #[must_use]
    pub fn with_time_limit(self, time_limit: Duration) -> Self {
        Self { time_limit, ..self }
    }

    /// What the function has printed.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// How long each process took from its start to its first poll.
    pub fn starts(&self) -> Vec<Duration> {
        self.starts.borrow().clone()
    }

    /// The most memory that a process has had resident after an invocation, in bytes; 0 where the system does not say.
    pub fn peak_memory(&self) -> u64 {
        *self.peak.borrow()
    }

    /// Processor time of the running process so far; nothing where there is none or the system does not say.
    pub fn processor_time(&self) -> Duration {
        let sandbox = self.sandbox.borrow();
        sandbox.as_ref().map(Sandbox::processor_time).unwrap_or_default()
    }

    /// Ends the process, as Lambda does with one that is idle.
    pub fn recycle(&self) {
        self.sandbox.borrow_mut().take();
    }

    /// Runs the binary until it ends by itself; true if it ended well.
    pub fn ends_well(&self) -> bool {
        let sandbox = Sandbox::start(self);
        let mut child = sandbox.child.lock().unwrap();
        child.wait().is_ok_and(|status| status.success())
    }
}

impl Invoke for Lambda<'_> {
    async fn invoke(&self, event: &str) -> Result<String, Failed> {
        self.cloud.begin_invocation();
        let mut place = self.sandbox.borrow_mut();
        let sandbox = place.get_or_insert_with(|| Sandbox::start(self));
        let response = sandbox.invoke(event, self.time_limit, &|| self.cloud.crashes());
        let peak = sandbox.peak_memory();
        let most = *self.peak.borrow();
        self.peak.replace(most.max(peak));
        if let Some(start) = sandbox.start_time.lock().unwrap().take() {
            self.starts.borrow_mut().push(start);
        }
        match response {
            Outcome::Responded(response) => response,
            Outcome::Gone(why) => {
                // The next invocation gets a new process.
                place.take();
                Err(Failed(why))
            }
        }
    }
}

enum Outcome {
    Responded(Result<String, Failed>),
    Gone(String),
}

/// One process and the runtime API it polls. Each has an API of its own: a poll of a process that is gone must not take
/// the event of its successor.
struct Sandbox {
    child: Mutex<Child>,
    exchange: Arc<Exchange>,
    start_time: Arc<Mutex<Option<Duration>>>,
    reader: Option<thread::JoinHandle<()>>,
    _api: Server,
}

#[derive(Default)]
struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    event: Option<(String, Duration)>,
    response: Option<Result<String, Failed>>,
    invocations: usize,
    over: bool,
}

impl Sandbox {
    fn start(lambda: &Lambda<'_>) -> Self {
        let exchange = Arc::new(Exchange::default());
        let start_time = Arc::new(Mutex::new(None));
        let (behind, started, first_poll) = (Arc::clone(&exchange), Instant::now(), Arc::clone(&start_time));
        let polled = std::sync::Once::new();
        let api = Server::start(move |request| {
            if request.path.ends_with("/next") {
                polled.call_once(|| *first_poll.lock().unwrap() = Some(started.elapsed()));
            }
            behind.respond(&request)
        });
        let mut child = Command::new(&lambda.binary)
            .env_clear()
            .envs(lambda.variables.iter().cloned())
            .env("AWS_LAMBDA_RUNTIME_API", api.address.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", lambda.binary.display()));
        let (output, log) = (child.stdout.take().unwrap(), Arc::clone(&lambda.log));
        let reader = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                log.lock().unwrap().push(line);
            }
        });
        Self {
            child: Mutex::new(child),
            exchange,
            start_time,
            reader: Some(reader),
            _api: api,
        }
    }

    fn invoke(&self, event: &str, time_limit: Duration, crashes: &dyn Fn() -> bool) -> Outcome {
        let ends = Instant::now() + time_limit;
        let mut state = self.exchange.state.lock().unwrap();
        let until = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + time_limit;
        state.event = Some((event.to_owned(), until));
        state.response = None;
        self.exchange.changed.notify_all();
        loop {
            if let Some(response) = state.response.take() {
                return Outcome::Responded(response);
            }
            if crashes() {
                return Outcome::Gone("the process was killed".to_owned());
            }
            if Instant::now() > ends {
                return Outcome::Gone("the invocation timed out".to_owned());
            }
            if self.child.lock().unwrap().try_wait().unwrap().is_some() {
                return Outcome::Gone("the process ended".to_owned());
            }
            state = self
                .exchange
                .changed
                .wait_timeout(state, Duration::from_millis(20))
                .unwrap()
                .0;
        }
    }

    fn processor_time(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.child.lock().unwrap().id());
        let stat = std::fs::read_to_string(path).unwrap_or_default();
        // The name, in brackets, may hold anything; the times are the 14th and 15th field, in hundredths of a second.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let hundredths: u64 = fields
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        Duration::from_millis(hundredths * 10)
    }

    fn peak_memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.lock().unwrap().id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.exchange.state.lock().unwrap().over = true;
        self.exchange.changed.notify_all();
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
        // What it printed is complete from here on.
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Exchange {
    fn respond(&self, request: &Request) -> Reply {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let path = request.path.trim_start_matches("/2018-06-01/runtime/");
        match path.rsplit('/').next() {
            Some("next") => self.next(),
            Some("response") => self.settle(Ok(body)),
            Some("error") => self.settle(Err(Failed(body))),
            _ => Reply::new(404, path),
        }
    }

    fn next(&self) -> Reply {
        let mut state = self.state.lock().unwrap();
        loop {
            if state.over {
                return Reply::HangUp;
            }
            if let Some((event, until)) = state.event.take() {
                state.invocations += 1;
                let headers = vec![
                    (
                        "lambda-runtime-aws-request-id",
                        format!("request-{}", state.invocations),
                    ),
                    ("lambda-runtime-deadline-ms", until.as_millis().to_string()),
                    (
                        "lambda-runtime-invoked-function-arn",
                        "arn:aws:lambda:us-east-1:123456789012:function:f".to_owned(),
                    ),
                    ("content-type", "application/json".to_owned()),
                ];
                return Reply::Response {
                    status: 200,
                    headers,
                    body: event,
                };
            }
            state = self.changed.wait(state).unwrap();
        }
    }

    fn settle(&self, response: Result<String, Failed>) -> Reply {
        self.state.lock().unwrap().response = Some(response);
        self.changed.notify_all();
        Reply::new(202, r#"{"status":"OK"}"#)
    }
}
