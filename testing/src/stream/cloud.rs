//! DynamoDB, SQS, S3 and EventBridge over HTTP, as far as the functions use them, and with things going wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{Reply, Request, Server};
use super::{Chaos, Database, ServiceFault};

/// An object of the archive as S3 keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its bytes.
    pub body: Vec<u8>,
    /// `Content-Type`.
    pub content_type: String,
    /// `Content-Encoding`.
    pub content_encoding: String,
}

/// The services that the functions call.
pub struct Cloud {
    services: Arc<Services>,
    server: Server,
}

struct Services {
    database: Database,
    chaos: Mutex<Chaos>,
    letters: Mutex<Vec<String>>,
    events: Mutex<Vec<Value>>,
    /// Events that were refused once.
    refused_events: Mutex<BTreeSet<String>>,
    objects: Mutex<BTreeMap<String, Stored>>,
    rewritten: AtomicUsize,
    calls: AtomicUsize,
    crash: AtomicBool,
    late: AtomicUsize,
}

impl Cloud {
    /// Services that are at the mercy of chaos.
    pub fn start(chaos: Chaos) -> Self {
        let services = Arc::new(Services {
            database: Database::new(),
            chaos: Mutex::new(chaos),
            letters: Mutex::default(),
            events: Mutex::default(),
            refused_events: Mutex::default(),
            objects: Mutex::default(),
            rewritten: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            crash: AtomicBool::new(false),
            late: AtomicUsize::new(0),
        });
        let behind = Arc::clone(&services);
        let server = Server::start(move |request| behind.respond(request));
        Self { services, server }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The table.
    pub fn database(&self) -> &Database {
        &self.services.database
    }

    /// Dead letters in the order in which they came.
    pub fn letters(&self) -> Vec<String> {
        self.services.letters.lock().unwrap().clone()
    }

    /// The entries that EventBridge has accepted, some of them repeatedly.
    pub fn events(&self) -> Vec<Value> {
        self.services.events.lock().unwrap().clone()
    }

    /// How many entries EventBridge has refused for now, of calls that it carried out.
    pub fn refused_events(&self) -> usize {
        self.services.refused_events.lock().unwrap().len()
    }

    /// The archive.
    pub fn objects(&self) -> BTreeMap<String, Stored> {
        self.services.objects.lock().unwrap().clone()
    }

    /// How often an object was written again, with the same bytes or it panics.
    pub fn rewritten(&self) -> usize {
        self.services.rewritten.load(Ordering::SeqCst)
    }

    /// How many requests came.
    pub fn calls(&self) -> usize {
        self.services.calls.load(Ordering::SeqCst)
    }

    /// What went wrong so far.
    pub fn faults(&self) -> u64 {
        self.services.chaos.lock().unwrap().faults.get()
    }

    /// Waits until every call that was to be late has happened.
    pub fn settle(&self) {
        while self.services.late.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every call of the next invocations is refused.
    pub fn begin_outage(&self, invocations: u32) {
        self.services.chaos.lock().unwrap().begin_outage(invocations);
    }

    /// The next invocation is well until its process ends, after this many calls.
    pub fn begin_crash(&self, calls: u32) {
        self.services.chaos.lock().unwrap().begin_crash(calls);
    }

    pub(crate) fn begin_invocation(&self) {
        self.services.crash.store(false, Ordering::SeqCst);
        self.services.chaos.lock().unwrap().begin_invocation();
    }

    /// True when the function's process is to end now.
    pub(crate) fn crashes(&self) -> bool {
        self.services.crash.load(Ordering::SeqCst)
    }
}

impl Services {
    fn respond(self: &Arc<Self>, request: Request) -> Reply {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let call = Call::of(request);
        let fault = self.chaos.lock().unwrap().fault(&call.name());
        match fault {
            ServiceFault::None => self.perform(&call),
            ServiceFault::Refused => call.refusal(),
            ServiceFault::Rejected => {
                Reply::new(400, r#"{"__type":"FutureException","message":"unheard of"}"#)
            }
            ServiceFault::LostResponse => {
                self.perform(&call);
                Reply::HangUp
            }
            ServiceFault::Late => {
                let services = Arc::clone(self);
                self.late.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(fastrand::u64(1..300)));
                    services.perform(&call);
                    services.late.fetch_sub(1, Ordering::SeqCst);
                });
                Reply::HangUp
            }
            ServiceFault::Crash => {
                self.crash.store(true, Ordering::SeqCst);
                Reply::HangUp
            }
        }
    }

    fn perform(&self, call: &Call) -> Reply {
        match call {
            Call::DynamoDb { operation, body } => {
                let (status, json) = self.database.respond(operation, body);
                Reply::new(status, json)
            }
            Call::Sqs { message } => {
                self.letters.lock().unwrap().push(message.clone());
                Reply::new(200, r#"{"MessageId":"1","MD5OfMessageBody":""}"#)
            }
            Call::Events { entries } => Reply::new(200, self.put_events(entries)),
            Call::S3 { key, object } => {
                let before = self.objects.lock().unwrap().insert(key.clone(), object.clone());
                if let Some(before) = before {
                    assert_eq!(&before, object, "an event that comes again gives the same bytes");
                    self.rewritten.fetch_add(1, Ordering::SeqCst);
                }
                Reply::Response {
                    status: 200,
                    headers: vec![("etag", "\"1\"".to_owned())],
                    body: String::new(),
                }
            }
        }
    }
}

impl Services {
    /// Accepts some entries and refuses others, each at most once.
    fn put_events(&self, entries: &[Value]) -> String {
        assert!((1..=10).contains(&entries.len()));
        let (mut refused, mut failed) = (self.refused_events.lock().unwrap(), 0);
        let entries = entries.iter().map(|entry| {
            let code = ["ThrottlingException", "InternalFailure"][usize::from(fastrand::bool())];
            if fastrand::u8(..4) == 0 && refused.insert(entry["Detail"].to_string()) {
                failed += 1;
                return json!({"ErrorCode": code, "ErrorMessage": "not now"});
            }
            self.events.lock().unwrap().push(entry.clone());
            json!({"EventId": "1"})
        });
        let entries: Vec<_> = entries.collect();
        json!({"FailedEntryCount": failed, "Entries": entries}).to_string()
    }
}

enum Call {
    DynamoDb { operation: String, body: Vec<u8> },
    Sqs { message: String },
    Events { entries: Vec<Value> },
    S3 { key: String, object: Stored },
}

impl Call {
    fn of(request: Request) -> Self {
        let target = request.header("x-amz-target").to_owned();
        if let Some(operation) = target.strip_prefix("DynamoDB_20120810.") {
            return Self::DynamoDb {
                operation: operation.to_owned(),
                body: request.body,
            };
        }
        if target == "AmazonSQS.SendMessage" {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            return Self::Sqs {
                message: body["MessageBody"].as_str().unwrap().to_owned(),
            };
        }
        if target == "AWSEvents.PutEvents" {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            return Self::Events {
                entries: body["Entries"].as_array().unwrap().clone(),
            };
        }
        assert_eq!(request.method, "PUT", "{} {target}", request.path);
        let path = request.path.split('?').next().unwrap_or_default();
        let key = path
            .trim_start_matches('/')
            .split_once('/')
            .map_or("", |(_, key)| key);
        let object = Stored {
            content_type: request.header("content-type").to_owned(),
            content_encoding: request.header("content-encoding").to_owned(),
            body: request.body,
        };
        Self::S3 {
            key: key.replace("%3D", "="),
            object,
        }
    }

    /// What the call is about, so that the same thing can fail throughout an invocation.
    fn name(&self) -> String {
        match self {
            Self::DynamoDb { body, .. } => {
                let body: Value = serde_json::from_slice(body).unwrap();
                body["Key"].to_string()
            }
            Self::Sqs { message } => message.clone(),
            Self::Events { entries } => entries[0]["Detail"].to_string(),
            Self::S3 { key, .. } => key.clone(),
        }
    }

    fn refusal(&self) -> Reply {
        let json = |kind: &str| format!(r#"{{"__type":"{kind}","message":"not now"}}"#);
        match self {
            Self::DynamoDb { .. } if fastrand::bool() => Reply::new(500, json("InternalServerError")),
            Self::DynamoDb { .. } => Reply::new(400, json("ProvisionedThroughputExceededException")),
            Self::Sqs { .. } => Reply::new(400, json("RequestThrottled")),
            Self::Events { .. } => Reply::new(500, json("InternalException")),
            Self::S3 { .. } => Reply::new(
                503,
                "<Error><Code>SlowDown</Code><Message>not now</Message></Error>",
            ),
        }
    }
}
