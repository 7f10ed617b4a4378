//! Several servers on one table behind a load balancer, as processes.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use zae_limiter::{Limit, RateLimiter};
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

impl Replica {
    fn start(table: &str) -> Self {
        Self::with(table, None)
    }

    fn with(table: &str, tokens: Option<&str>) -> Self {
        // Others have to know the port before the server listens.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        Self::at(&format!("127.0.0.1:{port}"), table, tokens)
    }

    fn at(address: &str, table: &str, tokens: Option<&str>) -> Self {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"))
            .env_clear()
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("ZAE_LIMITER_REPLICA_SECRET", "a secret that replicas share")
            .envs(tokens.map(|tokens| ("ZAE_LIMITER_TOKENS", tokens)))
            .args(["-n", table, "--region", "us-east-1"])
            .args(["--endpoint-url", dynamodb_endpoint()])
            .args(["serve", "--listen", address, "--advertise", address])
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
    let restarted = Replica::at(&address, TABLE, Some(TOKENS));
    for replica in [&restarted, &other] {
        let gone = acquire(replica, &[ONE, KEY, named]);
        assert_eq!((gone.status, gone.problem()), (410, "replica-gone"));
    }
    assert_eq!(acquire(&restarted, &[ONE, KEY]).status, 200);
}
