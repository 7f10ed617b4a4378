//! Several servers on one table behind a load balancer, as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use zae_limiter::{Error, Limit, ManualClock, RateLimiter};
use zae_limiter_testing::dynamodb_endpoint;

use crate::serving::{NoResponse, Response, exchange_with};

const CAPACITY: i64 = 1_000_000;
const LEASES: usize = 30;
/// Tokens of the third test, with the scope that they have.
const TOKENS: &str =
    "one acquire 0123456789abcdef\ntwo acquire,read fedcba9876543210\nthree read aaaabbbbccccdddd";

/// A server that ends with the test.
struct Replica {
    process: Child,
    address: String,
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Others have to know the address before the server listens.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// The arguments that name a table of the test process.
fn served(table: &str) -> [&str; 6] {
    let endpoint = dynamodb_endpoint();
    ["-n", table, "--region", "us-east-1", "--endpoint-url", endpoint]
}

impl Replica {
    fn start(table: &str) -> Self {
        Self::with(table, None)
    }

    fn with(table: &str, tokens: Option<&str>) -> Self {
        let address = free_address();
        Self::at(&address, &address, &served(table), tokens)
    }

    fn at(address: &str, advertise: &str, table: &[&str], tokens: Option<&str>) -> Self {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"))
            .env_clear()
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("ZAE_LIMITER_REPLICA_SECRET", "a secret that replicas share")
            .envs(tokens.map(|tokens| ("ZAE_LIMITER_TOKENS", tokens)))
            .args(table)
            .args(["serve", "--listen", address, "--advertise", advertise])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains(address), "{line}");
        let address = address.to_owned();
        Self { process, address }
    }
}

/// Sends each request to the next server, and to the one after it if that cannot be reached.
struct Balancer {
    servers: Vec<String>,
    next: AtomicUsize,
}

impl Balancer {
    fn of(replicas: &[Replica]) -> Self {
        Self {
            servers: replicas.iter().map(|replica| replica.address.clone()).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The response, unless it is lost with its server.
    fn pass(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Option<Response> {
        for _ in &self.servers {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let server = &self.servers[next % self.servers.len()];
            match exchange_with(server, method, path, headers, body) {
                Ok(response) => return Some(response),
                Err(NoResponse::NotSent) => {}
                Err(NoResponse::Lost) => return None,
            }
        }
        panic!("no server can be reached")
    }

    /// The response of a request while no server is killed.
    fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let response = self.pass(method, path, &[], body).unwrap();
        (response.status, response.body)
    }

    fn available(&self, entity: &str) -> i64 {
        let path = format!("/v1/entities/{entity}/resources/gpt-4/available");
        let (status, body) = self.send("GET", &path, &Value::Null);
        assert_eq!(status, 200, "{body}");
        body["tokens"]["tpd"].as_i64().unwrap()
    }
}

fn create_table(name: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let repository = RateLimiter::builder(name)
            .endpoint_url(dynamodb_endpoint())
            .region("us-east-1")
            .credentials(aws_credential_types::Credentials::from_keys("test", "test", None))
            .create_table(true)
            .build_repository()
            .await
            .unwrap();
        // One token a day comes back: what is left says exactly what was written.
        let limit = Limit::custom("tpd", 1_000_000, 1_000_000, 1, 86_400).unwrap();
        repository.set_system_defaults([limit]).await.unwrap();
    });
}

fn call(entity: &str) -> Value {
    json!({ "entity": entity, "resource": "gpt-4", "consume": { "tpd": 100 } })
}

fn adjustment(entity: &str) -> Value {
    json!({ "entity": entity, "resource": "gpt-4", "adjust": { "tpd": 10 } })
}

#[test]
fn behind_a_round_robin_balancer_every_commit_counts_once_or_says_what_to_do() {
    const TABLE: &str = "replicas";
    create_table(TABLE);
    let mut replicas: Vec<_> = (0..3).map(|_| Replica::start(TABLE)).collect();
    let balancer = Balancer::of(&replicas);
    let mut leases = vec![];
    for _ in 0..LEASES {
        let (status, granted) = balancer.send("POST", "/v1/acquire", &call("user-1"));
        assert_eq!(status, 200, "{granted}");
        leases.push(granted["lease_id"].as_str().unwrap().to_owned());
    }
    // The next request goes to another server than the one that granted the lease.
    balancer.next.store(1, Ordering::Relaxed);
    let adjust = json!({ "adjust": { "tpd": 10 } });
    let commit = |lease: &String| balancer.send("POST", &format!("/v1/leases/{lease}/commit"), &adjust);
    let (renewed, committed) = (&leases[0], &leases[..10]);
    let (status, body) = balancer.send("POST", &format!("/v1/leases/{renewed}/renew"), &json!({}));
    assert_eq!(status, 200, "{body}");
    for lease in committed {
        let (status, body) = commit(lease);
        assert_eq!((status, &body["consumed"]["tpd"]), (200, &110.into()), "{body}");
    }
    drop(replicas.remove(1));
    let mut lost = 0;
    for lease in &leases[10..] {
        let (status, body) = commit(lease);
        if status == 200 {
            continue;
        }
        assert_eq!(
            (status, &body["type"]),
            (410, &"urn:zae-limiter:problem:lease-owner-gone".into()),
            "{body}"
        );
        lost += 1;
        let (status, body) = balancer.send("POST", "/v1/adjust", &adjustment("user-1"));
        assert_eq!(status, 200, "{body}");
    }
    assert!((6..=7).contains(&lost), "a third of the leases was there: {lost}");
    for lease in leases.iter().take(3) {
        let (status, body) = commit(lease);
        assert_eq!(status, 410, "it has ended or its owner is gone: {body}");
    }
    let taken = i64::try_from(LEASES).unwrap() * 110;
    assert_eq!(balancer.available("user-1"), CAPACITY - taken);
}

/// What came of the leases of one replica.
#[derive(Debug, Default)]
struct CallCounts {
    granted: i64,
    /// Acquires whose response was lost with the server.
    lost_grants: i64,
    committed: i64,
    /// Commits that were told that the owner is gone, and were settled without the lease.
    adjusted: i64,
    /// Of those, commits that may have been processed before: an earlier response was lost.
    maybe_twice: i64,
    /// Responses that were lost with the server that was to forward the request.
    sent_again: i64,
}

/// Ends a lease as a client does that does not know the servers behind the balancer.
fn commit(balancer: &Balancer, entity: &str, lease: &str, tally: &mut CallCounts) {
    let (path, adjust) = (
        format!("/v1/leases/{lease}/commit"),
        json!({ "adjust": { "tpd": 10 } }),
    );
    let mut lost = false;
    loop {
        let response = balancer.pass("POST", &path, &[], &adjust);
        let Some(response) = response.filter(|response| response.status != 503) else {
            lost = true;
            tally.sent_again += 1;
            continue;
        };
        match (response.status, response.problem()) {
            (200 | 202, _) => tally.committed += 1,
            (410, "lease-ended") => {
                assert_eq!(response.body["ended"], "committed");
                assert!(lost, "it was committed by a request whose response was lost");
                tally.committed += 1;
            }
            (410, "lease-owner-gone") => {
                tally.adjusted += 1;
                tally.maybe_twice += i64::from(lost);
                // No server dies any more: the replica that gets it processes it.
                let adjusted = balancer.pass(
                    "POST",
                    "/v1/adjust",
                    &[("idempotency-key", lease)],
                    &adjustment(entity),
                );
                assert_eq!(adjusted.unwrap().status, 200);
            }
            _ => panic!("{response:?}"),
        }
        return;
    }
}

#[test]
fn a_replica_that_is_killed_between_and_during_commits_loses_no_call() {
    const TABLE: &str = "replicas-killed";
    const WORKERS: usize = 3;
    create_table(TABLE);
    let replicas: Vec<_> = (0..3).map(|_| Replica::start(TABLE)).collect();
    let balancer = Balancer::of(&replicas);
    let replicas = Mutex::new(replicas);
    let finished = AtomicUsize::new(0);
    let tallies: [Mutex<CallCounts>; 3] = Default::default();
    std::thread::scope(|scope| {
        for worker in 0..3 * WORKERS {
            let (balancer, replicas, finished, tallies) = (&balancer, &replicas, &finished, &tallies);
            scope.spawn(move || {
                let owner = worker % 3;
                let entity = format!("user-{owner}");
                let mut tally = CallCounts::default();
                // A few leases are open at any time, so that some are between acquire and commit when the server dies.
                let mut open = vec![];
                for _ in 0..LEASES {
                    match exchange_with(
                        &balancer.servers[owner],
                        "POST",
                        "/v1/acquire",
                        &[],
                        &call(&entity),
                    ) {
                        Ok(granted) => {
                            assert_eq!(granted.status, 200, "{granted:?}");
                            tally.granted += 1;
                            open.push(granted.body["lease_id"].as_str().unwrap().to_owned());
                        }
                        Err(NoResponse::Lost) => tally.lost_grants += 1,
                        Err(NoResponse::NotSent) => {}
                    }
                    if open.len() > 3 {
                        commit(balancer, &entity, &open.remove(0), &mut tally);
                    }
                    if finished.fetch_add(1, Ordering::Relaxed) == LEASES * WORKERS {
                        drop(replicas.lock().unwrap().remove(1));
                    }
                }
                for lease in &open {
                    commit(balancer, &entity, lease, &mut tally);
                }
                let mut all = tallies[owner].lock().unwrap();
                all.granted += tally.granted;
                all.lost_grants += tally.lost_grants;
                all.committed += tally.committed;
                all.adjusted += tally.adjusted;
                all.maybe_twice += tally.maybe_twice;
                all.sent_again += tally.sent_again;
            });
        }
    });
    for (owner, tally) in tallies.into_iter().enumerate() {
        let tally = tally.into_inner().unwrap();
        let used = CAPACITY - balancer.available(&format!("user-{owner}"));
        eprintln!("replica {owner}: {used} tokens for {tally:?}");
        assert_eq!(tally.committed + tally.adjusted, tally.granted, "calls lost");
        let counted = tally.granted * 110;
        if owner == 1 {
            assert!(tally.adjusted > 0, "leases were open when it was killed");
            let most = counted + tally.maybe_twice * 10 + tally.lost_grants * 100;
            assert!((counted..=most).contains(&used), "{counted} to {most}");
        } else {
            assert_eq!((tally.adjusted, tally.lost_grants), (0, 0), "its owner lives");
            assert_eq!(used, counted, "each commit counts once");
        }
    }
}

#[test]
fn an_idempotency_key_holds_on_all_replicas_if_the_request_names_its_owner() {
    const TABLE: &str = "replicas-keys";
    const ONE: (&str, &str) = ("authorization", "Bearer 0123456789abcdef");
    const TWO: (&str, &str) = ("authorization", "Bearer fedcba9876543210");
    const KEY: (&str, &str) = ("idempotency-key", "8e03978e");
    create_table(TABLE);
    let (owner, other) = (
        Replica::with(TABLE, Some(TOKENS)),
        Replica::with(TABLE, Some(TOKENS)),
    );
    let send = |to: &Replica, path: &str, headers: &[(&str, &str)], body: &Value| {
        exchange_with(&to.address, "POST", path, headers, body).unwrap()
    };
    let acquire = |to: &Replica, headers: &[(&str, &str)]| send(to, "/v1/acquire", headers, &call("user-1"));

    let first = acquire(&owner, &[ONE, KEY]);
    assert_eq!(first.status, 200, "{first:?}");
    let name = first.header("zae-limiter-replica").unwrap().to_owned();
    let named = ("zae-limiter-replica", &*name);
    let again = acquire(&other, &[ONE, KEY, named]);
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.header("ratelimit"), first.header("ratelimit"));
    assert_eq!(again.header("zae-limiter-replica"), Some(&*name));

    // The key is that of its token, wherever the request arrives, and stands for one request.
    let theirs = acquire(&other, &[TWO, KEY, named]);
    assert_eq!(theirs.status, 200, "{theirs:?}");
    assert_ne!(theirs.body["lease_id"], first.body["lease_id"]);
    let reused = send(&other, "/v1/acquire", &[ONE, KEY, named], &call("user-2"));
    assert_eq!((reused.status, reused.problem()), (422, "idempotency-key-reused"));
    let forged = [
        KEY,
        named,
        ("zae-limiter-forwarded", &*name),
        ("zae-limiter-caller", "one"),
    ];
    for headers in [&[KEY, named][..], &forged] {
        assert_eq!(acquire(&other, headers).status, 401);
    }
    let reader = ("authorization", "Bearer aaaabbbbccccdddd");
    assert_eq!(acquire(&other, &[reader, KEY, named]).status, 403);

    let adjust = |to: &Replica| {
        let response = send(
            to,
            "/v1/adjust",
            &[ONE, ("idempotency-key", "lease-1"), named],
            &adjustment("user-1"),
        );
        assert_eq!(response.status, 200, "{response:?}");
        response.header("idempotency-replayed").is_some()
    };
    assert_eq!(
        (adjust(&other), adjust(&owner), adjust(&other)),
        (false, true, true)
    );
    let path = "/v1/entities/user-1/resources/gpt-4/available";
    let left = exchange_with(&other.address, "GET", path, &[TWO], &Value::Null).unwrap();
    assert_eq!(left.body["tokens"]["tpd"], CAPACITY - 210);

    // Without the name each replica has keys of its own.
    let unnamed = acquire(&other, &[ONE, KEY]);
    assert_ne!(unnamed.body["lease_id"], first.body["lease_id"]);

    let address = owner.address.clone();
    drop(owner);
    let gone = acquire(&other, &[ONE, KEY, named]);
    assert_eq!((gone.status, gone.problem()), (410, "replica-gone"));
    let restarted = Replica::at(&address, &address, &served(TABLE), Some(TOKENS));
    for replica in [&restarted, &other] {
        let gone = acquire(replica, &[ONE, KEY, named]);
        assert_eq!((gone.status, gone.problem()), (410, "replica-gone"));
    }
    assert_eq!(acquire(&restarted, &[ONE, KEY]).status, 200);
}

/// What becomes of a request between two replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passes,
    /// The connection breaks before the owner has the request.
    RequestLost,
    /// The connection breaks before the response is back.
    ResponseLost,
    /// Nothing listens any more.
    Gone,
}

/// The address that a replica advertises, from which requests are passed to it.
struct Relay {
    address: String,
    fate: Arc<Mutex<Fate>>,
    accepting: Option<std::thread::JoinHandle<()>>,
}

impl Relay {
    fn to(owner: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let fate = Arc::new(Mutex::new(Fate::Passes));
        let now = fate.clone();
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if *now.lock().unwrap() == Fate::Gone {
                    return;
                }
                let (now, owner) = (now.clone(), owner.clone());
                std::thread::spawn(move || relay(stream, &owner, &now));
            }
        });
        let accepting = Some(accepting);
        Self {
            address,
            fate,
            accepting,
        }
    }

    fn set(&self, fate: Fate) {
        *self.fate.lock().unwrap() = fate;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.set(Fate::Gone);
        // Wakes the thread up.
        let _ = TcpStream::connect(&self.address);
        let _ = self.accepting.take().unwrap().join();
    }
}

/// Passes the requests of one connection on until it breaks.
fn relay(mut client: TcpStream, owner: &str, fate: &Mutex<Fate>) -> Option<()> {
    loop {
        let request = message(&mut client)?;
        let fate = *fate.lock().unwrap();
        if matches!(fate, Fate::RequestLost | Fate::Gone) {
            return None;
        }
        let mut server = TcpStream::connect(owner).ok()?;
        server.write_all(&request).ok()?;
        let response = message(&mut server)?;
        if fate == Fate::ResponseLost {
            return None;
        }
        client.write_all(&response).ok()?;
    }
}

/// A request or a response, whole.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        bytes.extend(byte);
    }
    let head = String::from_utf8(bytes.clone()).unwrap().to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    bytes.extend(body);
    Some(bytes)
}

/// The four points at which the connection between two replicas can break, with and without the owner.
#[test]
fn a_commit_that_is_cut_off_while_it_is_forwarded_counts_once_or_says_that_the_owner_is_gone() {
    const TABLE: &str = "replicas-forwarding";
    create_table(TABLE);
    let listen = free_address();
    let relay = Relay::to(listen.clone());
    let owner = Replica::at(&listen, &relay.address, &served(TABLE), None);
    let other = Replica::start(TABLE);
    let acquire = || {
        let granted = exchange_with(&owner.address, "POST", "/v1/acquire", &[], &call("user-1")).unwrap();
        assert_eq!(granted.status, 200, "{granted:?}");
        granted.body["lease_id"].as_str().unwrap().to_owned()
    };
    let leases: Vec<_> = (0..4).map(|_| acquire()).collect();
    let commit = |lease: &String| {
        let path = format!("/v1/leases/{lease}/commit");
        let adjust = json!({ "adjust": { "tpd": 10 } });
        exchange_with(&other.address, "POST", &path, &[], &adjust).unwrap()
    };
    let cut_off = |lease: &String, fate| {
        relay.set(fate);
        let silent = commit(lease);
        assert_eq!(
            (silent.status, silent.problem()),
            (503, "unavailable"),
            "{silent:?}"
        );
        assert!(silent.header("retry-after").is_some(), "{silent:?}");
        relay.set(Fate::Passes);
    };

    // The owner lives: the same request again finds out.
    cut_off(&leases[0], Fate::RequestLost);
    let first = commit(&leases[0]);
    assert_eq!((first.status, &first.body["consumed"]["tpd"]), (200, &110.into()));
    cut_off(&leases[1], Fate::ResponseLost);
    let before = commit(&leases[1]);
    assert_eq!((before.status, before.problem()), (410, "lease-ended"));
    assert_eq!(before.body["ended"], "committed");

    // The owner is killed: the client corrects without the lease.
    cut_off(&leases[2], Fate::RequestLost);
    cut_off(&leases[3], Fate::ResponseLost);
    drop(owner);
    drop(relay);
    for lease in &leases[2..] {
        let gone = commit(lease);
        assert_eq!(
            (gone.status, gone.problem()),
            (410, "lease-owner-gone"),
            "{gone:?}"
        );
        for replayed in [None, Some("true")] {
            let key = ("idempotency-key", &**lease);
            let adjusted = exchange_with(
                &other.address,
                "POST",
                "/v1/adjust",
                &[key],
                &adjustment("user-1"),
            );
            let adjusted = adjusted.unwrap();
            assert_eq!(adjusted.status, 200, "{adjusted:?}");
            assert_eq!(adjusted.header("idempotency-replayed"), replayed);
        }
    }
    // Only the correction whose first response was lost with its server counts twice.
    let balancer = Balancer::of(std::slice::from_ref(&other));
    assert_eq!(balancer.available("user-1"), CAPACITY - 4 * 110 - 10);
}

#[test]
fn permits_of_a_replica_that_is_killed_come_back_when_they_expire() {
    const EXPIRY: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.db");
    let file = file.to_str().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let limits = || [Limit::concurrency("parallel", 2, Duration::from_secs(EXPIRY)).unwrap()];
    runtime.block_on(async {
        let repository = RateLimiter::embedded_at(file).build_repository().await.unwrap();
        repository.set_system_defaults(limits()).await.unwrap();
    });
    let start = || {
        let address = free_address();
        Replica::at(&address, &address, &["--embedded", file], None)
    };
    let (owner, other) = (start(), start());
    let held = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "parallel": 2 } });
    let acquire = |from: &Replica| {
        let response = exchange_with(&from.address, "POST", "/v1/acquire", &[], &held).unwrap();
        (response.status, response.body)
    };
    let (status, granted) = acquire(&owner);
    assert_eq!(status, 200, "{granted}");
    assert_eq!(acquire(&other).0, 429);
    drop(owner);
    let path = format!("/v1/leases/{}/commit", granted["lease_id"].as_str().unwrap());
    let gone = exchange_with(&other.address, "POST", &path, &[], &json!({})).unwrap();
    assert_eq!((gone.status, gone.problem()), (410, "lease-owner-gone"));
    assert_eq!(acquire(&other).0, 429, "nobody can release them");
    drop(other);

    // Permits expire at the end of a quarter of the time, and two seconds are left for clocks that differ.
    let clock = Arc::new(ManualClock::at(SystemTime::now().into()));
    runtime.block_on(async {
        let limiter = RateLimiter::embedded_at(file).clock(clock.clone()).await.unwrap();
        let call = || limiter.acquire("user-1", "gpt-4").consume("parallel", 2);
        let refused = call().await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        clock.advance(Duration::from_secs(EXPIRY + EXPIRY / 4 + 3));
        call().await.unwrap().commit().await.unwrap();
        limiter.shutdown().await;
    });
}
