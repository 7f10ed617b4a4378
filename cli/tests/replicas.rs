//! Several servers on one table behind a load balancer, as processes.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use zae_limiter::{Limit, RateLimiter};
use zae_limiter_testing::dynamodb_endpoint;

use crate::serving::exchange;

const TABLE: &str = "replicas";
const LEASES: usize = 30;

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
    fn start() -> Self {
        // Others have to know the port before the server listens.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = format!("127.0.0.1:{port}");
        let mut process = Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"))
            .env_clear()
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("ZAE_LIMITER_REPLICA_SECRET", "a secret that replicas share")
            .args([
                "-n",
                TABLE,
                "--region",
                "us-east-1",
                "--endpoint-url",
                dynamodb_endpoint(),
            ])
            .args(["serve", "--listen", &address, "--advertise", &address])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains(&address), "{line}");
        Self { process, address }
    }
}

/// Sends each request to the next server, and to the one after it if that cannot be reached.
struct Balancer {
    servers: Vec<String>,
    next: Cell<usize>,
}

impl Balancer {
    fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        for _ in &self.servers {
            let server = &self.servers[self.next.get() % self.servers.len()];
            self.next.set(self.next.get() + 1);
            if let Some(response) = exchange(server, method, path, None, body) {
                return response;
            }
        }
        panic!("no server can be reached")
    }
}

fn create_table() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let repository = RateLimiter::builder(TABLE)
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

#[test]
fn behind_a_round_robin_balancer_every_commit_counts_once_or_says_what_to_do() {
    create_table();
    let mut replicas: Vec<_> = (0..3).map(|_| Replica::start()).collect();
    let balancer = Balancer {
        servers: replicas.iter().map(|replica| replica.address.clone()).collect(),
        next: Cell::new(0),
    };
    let call = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpd": 100 } });
    let mut leases = vec![];
    for _ in 0..LEASES {
        let (status, granted) = balancer.send("POST", "/v1/acquire", &call);
        assert_eq!(status, 200, "{granted}");
        leases.push(granted["lease_id"].as_str().unwrap().to_owned());
    }
    // The next request goes to another server than the one that granted the lease.
    balancer.next.set(1);
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
        let settle = json!({ "entity": "user-1", "resource": "gpt-4", "adjust": { "tpd": 10 } });
        let (status, body) = balancer.send("POST", "/v1/adjust", &settle);
        assert_eq!(status, 200, "{body}");
    }
    assert!((6..=7).contains(&lost), "a third of the leases was there: {lost}");
    for lease in leases.iter().filter(|lease| !lease.is_empty()).take(3) {
        let (status, body) = commit(lease);
        assert_eq!(status, 410, "it has ended or its owner is gone: {body}");
    }
    let (status, body) = balancer.send(
        "GET",
        "/v1/entities/user-1/resources/gpt-4/available",
        &Value::Null,
    );
    assert_eq!(status, 200, "{body}");
    assert_eq!(
        body["tokens"]["tpd"],
        1_000_000 - i64::try_from(LEASES).unwrap() * 110
    );
}
