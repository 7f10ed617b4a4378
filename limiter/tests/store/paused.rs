//! A process that is stopped for longer than its permits last, and goes on. It is this program once more.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::{Error, Lease, Limit, RateLimiter};
use zae_limiter_testing::dynamodb_endpoint;

const TEST: &str =
    "store::paused::a_process_that_is_stopped_beyond_the_expiry_finds_out_and_takes_nothing_from_others";
/// Set in the process that is stopped: where the table is.
const ENDPOINT: &str = "ZAE_PAUSED_ENDPOINT";
const TABLE: &str = "paused";

async fn limiter(endpoint: &str) -> RateLimiter {
    RateLimiter::builder(TABLE)
        .endpoint_url(endpoint)
        .region("us-east-1")
        .credentials(Credentials::new("test", "test", None, None, "tests"))
        .create_table(true)
        .await
        .unwrap()
}

async fn hold(limiter: &RateLimiter, patience: Duration) -> Result<Lease, Error> {
    let call = limiter.acquire("user-1", "gpt-4").consume("parallel", 1);
    call.wait_up_to(patience).await
}

/// Holds both permits, is stopped, and says what it finds when it goes on.
async fn holder(endpoint: &str) {
    let limiter = limiter(endpoint).await;
    let patience = Duration::from_secs(30);
    let one = hold(&limiter, patience).await.unwrap();
    let two = hold(&limiter, patience).await.unwrap();
    println!("\nholding");
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
    line.await.unwrap().unwrap().unwrap();
    let lost = (one.is_lost(), two.is_lost());
    one.lost().await;
    one.commit().await.unwrap();
    drop(two);
    let closed = limiter.shutdown().await;
    println!(
        "\nlost {} {}, unwritten {}",
        lost.0, lost.1, closed.unwritten_total
    );
}

/// The process, which is killed when it is dropped, also while it is stopped.
struct Holder {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Holder {
    fn start(endpoint: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([TEST, "--exact", "--nocapture"])
            .env(ENDPOINT, endpoint)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The rest of the next line that begins like this.
    fn says(&mut self, start: &str) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let said = lines.find_map(|line| Some(line.strip_prefix(start)?.to_owned()));
        said.expect("the process has ended")
    }

    fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &command]).status().unwrap();
        assert!(status.success());
    }

    /// True if it is stopped, in the words of `ps`.
    fn is_stopped(&self) -> bool {
        let listed = Command::new("ps")
            .args(["-o", "stat=", "-p", &self.child.id().to_string()])
            .output()
            .unwrap();
        listed.stdout.trim_ascii().starts_with(b"T")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Permits that the bucket counts, and those of its epochs, in thousandths.
async fn permits(client: &aws_sdk_dynamodb::Client) -> (i64, i64) {
    let items = client
        .scan()
        .table_name(TABLE)
        .consistent_read(true)
        .send()
        .await
        .unwrap();
    let number = |value: &AttributeValue| value.as_n().unwrap().parse::<i64>().unwrap();
    let bucket = items
        .items()
        .iter()
        .find(|item| item.contains_key("c_parallel_n"))
        .unwrap();
    let epochs = bucket.iter().filter(|(name, _)| name.starts_with("c_parallel_e"));
    (
        number(&bucket["c_parallel_n"]),
        epochs.map(|(_, value)| number(value)).sum(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_stopped_beyond_the_expiry_finds_out_and_takes_nothing_from_others() {
    if let Ok(endpoint) = std::env::var(ENDPOINT) {
        return holder(&endpoint).await;
    }
    let endpoint = dynamodb_endpoint();
    let limiter = limiter(endpoint).await;
    let parallel = Limit::concurrency("parallel", 2, Duration::from_secs(8)).unwrap();
    let repository = limiter.repository();
    repository
        .set_resource_defaults("gpt-4", [parallel])
        .await
        .unwrap();

    let mut stopped = Holder::start(endpoint);
    stopped.says("holding");
    assert!(matches!(
        hold(&limiter, Duration::ZERO).await,
        Err(Error::Refused(_))
    ));
    stopped.signal("STOP");
    while !stopped.is_stopped() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nobody renews them: they come back.
    let patience = Duration::from_secs(120);
    let one = hold(&limiter, patience).await.unwrap();
    let two = hold(&limiter, patience).await.unwrap();

    stopped.signal("CONT");
    stopped.child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(stopped.says("lost "), "true true, unwritten 0");
    assert!(stopped.child.wait().unwrap().success());
    assert!(!one.is_lost() && !two.is_lost());
    let client = client(endpoint);
    assert_eq!(
        permits(&client).await,
        (2_000, 2_000),
        "both are those of this process"
    );
    assert!(matches!(
        hold(&limiter, Duration::ZERO).await,
        Err(Error::Refused(_))
    ));
    one.commit().await.unwrap();
    two.commit().await.unwrap();
    assert_eq!(permits(&client).await, (0, 0));
}

fn client(endpoint: &str) -> aws_sdk_dynamodb::Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .region(aws_sdk_dynamodb::config::Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url(endpoint);
    aws_sdk_dynamodb::Client::from_conf(config.build())
}
