//! The run itself: start everything, break it in rounds, stop it, compare.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value as Json, json};
use zae_limiter::{ConfigChange, ConfigLevel, Limit, Mode, NewEntity};

use crate::client::{
    BUDGET, HOLDERS, NEVER_KILLED, PARENTS, PERMITS, RESOURCE, TABLE, default_limits, limiter, mode_of,
    parent_limits, permits_of, small_limits,
};
use crate::ledger::{self, Booked};
use crate::processes::{Process, Table};
use crate::{Size, usage, wire};

/// The limits whose consumption is counted.
const LIMITS: [&str; 4] = ["rpm", "tpm", "spend", "usd"];
/// How long the table is unavailable each time.
const DOWNTIME: Duration = Duration::from_secs(3);

/// What happens once a round, in any order.
#[derive(Debug, Clone, Copy)]
enum Fault {
    TableStops,
    TableIsKilled,
    /// A client is killed while the table responds.
    ClientIsKilled,
}

pub(crate) fn soak(size: Size) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("soak-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut table = Table::start(table_file(&folder));
    let stream = create_table(table.port);
    runtime.block_on(prepare(&table.endpoint(), size));
    let started = Instant::now();
    let mut clients: Vec<Client> = (0..size.clients)
        .map(|number| Client::start(&table, &folder, number, 0, size))
        .collect();
    println!(
        "{} clients, {} entities, {} s, ZAE_SOAK_SEED={}",
        size.clients,
        size.entities,
        size.time.as_secs(),
        size.seed
    );

    let mut random = fastrand::Rng::with_seed(size.seed);
    let mut killed = 0;
    let mut kill_one = |clients: &mut Vec<Client>, table: &Table, random: &mut fastrand::Rng| {
        // Only clients without chunks, see client.rs.
        let number = random.usize(..NEVER_KILLED);
        let client = &mut clients[number];
        client.process.kill();
        killed += 1;
        *client = Client::start(table, &folder, number, client.life + 1, size);
    };
    for round in 0..size.rounds {
        let mut faults = [Fault::TableStops, Fault::ClientIsKilled, Fault::TableIsKilled];
        random.shuffle(&mut faults);
        for fault in faults {
            std::thread::sleep((size.time / size.rounds / 4).mul_f64(0.5 + random.f64()));
            match fault {
                Fault::ClientIsKilled => kill_one(&mut clients, &table, &mut random),
                Fault::TableStops => {
                    table.process.signal("STOP");
                    std::thread::sleep(DOWNTIME);
                    // Its writes are under way: the table carries them out afterwards.
                    kill_one(&mut clients, &table, &mut random);
                    table.process.signal("CONT");
                }
                Fault::TableIsKilled => {
                    table.process.kill();
                    std::thread::sleep(DOWNTIME);
                    table.restart();
                }
            }
        }
        if round == size.rounds / 2 {
            std::fs::write(folder.join("half"), "").unwrap();
        }
    }
    std::thread::sleep(size.time / size.rounds / 4);
    let living = (0..size.clients).map(permits_of).sum();
    runtime.block_on(permits_are_of_the_living(&table.endpoint(), living));
    std::fs::write(folder.join("stop"), "").unwrap();
    for client in clients {
        check_client(&client.process.output());
    }
    println!(
        "{killed} clients killed, the table stopped and killed {} times each",
        size.rounds
    );
    let elapsed = started.elapsed();
    runtime.block_on(compare(&table, &folder, &stream, elapsed));
    table.remove();
    std::fs::remove_dir_all(folder).unwrap();
}

/// In memory, where there is such a folder: what is killed here are processes, not the machine, and a slow disk would only make
/// every call late.
fn table_file(folder: &Path) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory } else { folder };
    folder.join(format!("zae-limiter-soak-{}.db", std::process::id()))
}

struct Client {
    process: Process,
    life: usize,
}

impl Client {
    fn start(table: &Table, folder: &Path, number: usize, life: usize, size: Size) -> Self {
        let (endpoint, folder) = (table.endpoint(), folder.to_str().unwrap());
        let numbers = [number, life, size.entities].map(|number| number.to_string());
        let [number, at, entities] = &numbers;
        let process = Process::start(&["process-client", &endpoint, folder, number, at, entities]);
        Self { process, life }
    }
}

/// Everything ended, nothing was given up, and nothing grew without end.
fn check_client(output: &str) {
    let report: Json = serde_json::from_str(output.trim()).unwrap();
    println!("  {report}");
    assert!(report["granted"].as_u64() > Some(0), "{report}");
    assert_eq!(report["unwritten"], 0, "{report}");
    assert_eq!(report["tasks"], 0, "{report}");
    assert_eq!(report["files"], 0, "{report}");
    let (half, end) = (
        report["kib_half_way"].as_u64().unwrap(),
        report["kib_at_the_end"].as_u64().unwrap(),
    );
    assert!(half == 0 || end <= half * 2 + 32 * 1024, "memory grows: {report}");
}

/// With a stream, as a stack creates it. Returns the stream's ARN.
fn create_table(port: u16) -> String {
    let mut definition = zae_limiter_testing::stream::create_table(TABLE);
    definition["StreamSpecification"] =
        json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });
    let created = wire::call(port, "DynamoDB_20120810.CreateTable", &definition);
    let stream = &created["TableDescription"]["LatestStreamArn"];
    stream.as_str().expect("the table has a stream").to_owned()
}

async fn prepare(endpoint: &str, size: Size) {
    let limiter = limiter(endpoint, false).await;
    let repository = limiter.repository();
    repository
        .set_resource_defaults(RESOURCE, default_limits())
        .await
        .unwrap();
    let usd = "usd:1000000000 per year".parse().unwrap();
    repository.set_resource_defaults(BUDGET, [usd]).await.unwrap();
    for parent in 0..PARENTS {
        let parent = format!("org-{parent}");
        repository.create_entity(NewEntity::new(&parent)).await.unwrap();
        repository
            .set_limits(&parent, RESOURCE, parent_limits(true))
            .await
            .unwrap();
    }
    for number in 0..size.entities {
        let entity = NewEntity::new(format!("user-{number}"));
        let entity = entity.parent(format!("org-{}", number % PARENTS)).cascade(true);
        repository.create_entity(entity).await.unwrap();
        if let Some(mode) = mode_of(number) {
            let user = format!("user-{number}").parse().unwrap();
            let level = ConfigLevel::Entity(user, RESOURCE.parse().unwrap());
            let change = ConfigChange::new().limits(small_limits()).mode(mode);
            repository.set_config(&level, change).await.unwrap();
        }
    }
}

/// The mode of a user, by its name.
fn user_mode(entity: &str) -> Option<Mode> {
    mode_of(entity.strip_prefix("user-")?.parse().ok()?)
}

/// Waits until the permits of killed clients have expired: then those that are held are those of living clients, and no others.
async fn permits_are_of_the_living(endpoint: &str, living: u64) {
    let mut held = (0, 0);
    for _ in 0..240 {
        let (buckets, _) = found(endpoint).await;
        held = permits(&buckets, HOLDERS, i128::MIN);
        assert!(
            held.0 <= i128::from(PERMITS) * 1_000,
            "more permits than there are: {held:?}"
        );
        if held.0 == i128::from(living) * 1_000 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let expected = i128::from(living) * 1_000;
    assert_eq!(
        held,
        (expected, expected),
        "held permits are those of living clients"
    );
    println!("{living} permits are held, those of the living clients");
}

/// Thousandths of permits that an entity's bucket counts, and those in epochs that end after this time, in seconds.
fn permits(buckets: &Numbers, entity: &str, after: i128) -> (i128, i128) {
    let own = buckets.iter().filter(|((owner, _), _)| owner == entity);
    let (mut counted, mut in_epochs) = (0, 0);
    for ((_, name), number) in own {
        if name == "c_parallel_n" {
            counted = *number;
        } else if let Some(end) = name.strip_prefix("c_parallel_e") {
            in_epochs += if end.parse::<i128>().unwrap() > after {
                *number
            } else {
                0
            };
        }
    }
    (counted, in_epochs)
}

/// Numbers of an item that begin like this.
type Numbers = BTreeMap<(String, String), i128>;

/// Attributes of all buckets by entity, and usage in all by entity and limit.
async fn found(endpoint: &str) -> (Numbers, Numbers) {
    let (mut buckets, mut used) = (Numbers::new(), Numbers::new());
    let mut pages = usage::client(endpoint)
        .scan()
        .table_name(TABLE)
        .consistent_read(true)
        .into_paginator()
        .send();
    while let Some(page) = pages.next().await {
        for item in page.unwrap().items.unwrap_or_default() {
            let key = item["SK"].as_s().unwrap();
            let entity = || item["entity_id"].as_s().unwrap().clone();
            let numbers = item
                .iter()
                .filter_map(|(name, value): (&String, &AttributeValue)| {
                    Some((name.clone(), value.as_n().ok()?.parse::<i128>().ok()?))
                });
            if key.starts_with("#BUCKET#") {
                buckets.extend(numbers.map(|(name, number)| ((entity(), name), number)));
            } else if key.starts_with("#USAGE#") {
                for (name, number) in numbers.filter(|(name, _)| LIMITS.contains(&name.as_str())) {
                    *used.entry((entity(), name)).or_default() += number;
                }
            }
        }
    }
    (buckets, used)
}

async fn compare(table: &Table, folder: &Path, stream: &str, elapsed: Duration) {
    let records = usage::records(table.port, stream);
    let (batches, killed) = usage::count(&table.endpoint(), &records);
    println!(
        "{} stream records in {batches} batches, {killed} processes of the function killed in the middle of one",
        records.len()
    );
    assert!(killed > 0, "no batch is large enough");
    let (buckets, used) = found(&table.endpoint()).await;
    let books = ledger::books(folder);
    let (mut admitted, mut open_tokens, mut open_limits, mut consumed_in_all) = (0, 0, 0, 0);
    for (
        (entity, limit),
        Booked {
            certain,
            unconfirmed: open,
        },
    ) in &books
    {
        let is_quota = ["spend", "usd"].contains(limit);
        let attribute = |field: &str| {
            let kind = if is_quota { "q" } else { "b" };
            let name = format!("{kind}_{limit}_{field}");
            buckets.get(&(entity.clone(), name)).copied().unwrap_or_default()
        };
        let consumed = attribute("tc");
        assert_eq!(consumed % 1_000, 0, "{entity} {limit}: whole tokens");
        let (tokens, certain, open) = (consumed / 1_000, i128::from(*certain), i128::from(*open));
        assert!(
            (certain..=certain + open).contains(&tokens),
            "{entity} {limit}: {tokens} consumed, {certain} admitted, at most {open} unconfirmed\n{}",
            ledger::lines_about(folder, entity)
        );
        let usage = used
            .get(&(entity.clone(), (*limit).to_owned()))
            .copied()
            .unwrap_or_default();
        assert_eq!(usage, tokens, "{entity} {limit}: usage and consumption");
        let limits = if entity.starts_with("org") {
            parent_limits(true)
        } else if user_mode(entity).is_some() {
            small_limits()
        } else {
            default_limits()
        };
        match limits
            .iter()
            .find(|one| one.name().as_str() == *limit)
            .and_then(Limit::rate)
        {
            Some(rate) => {
                let millis = i128::try_from(elapsed.as_millis()).unwrap();
                let period = i128::from(rate.refill_period_seconds()) * 1_000;
                let bound = rate.burst().millis() + rate.refill_amount().millis() * millis / period;
                let had = consumed + attribute("tk");
                assert!(had <= bound, "{entity} {limit}: more than burst and refill");
            }
            None => assert_eq!(attribute("us"), consumed, "{entity} {limit}: used in one period"),
        }
        admitted += certain;
        consumed_in_all += tokens;
        open_tokens += open;
        open_limits += usize::from(open > 0);
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let now = i128::from(now.as_secs());
    let owners: BTreeSet<&String> = buckets.keys().map(|(entity, _)| entity).collect();
    for entity in owners {
        let (counted, in_epochs) = permits(&buckets, entity, i128::MIN);
        assert_eq!(counted, in_epochs, "{entity}: permits, and those of its epochs");
        // All clients have ended, and those that were killed long ago.
        let unexpired = permits(&buckets, entity, now).1;
        assert_eq!(unexpired, 0, "{entity}: permits are held, and nobody holds one");
    }
    assert!(admitted > 0, "nothing happened");
    assert!(open_limits < books.len(), "nothing is exact");
    println!(
        "{} limits of buckets: {admitted} tokens admitted, {consumed_in_all} consumed and counted; killed clients leave at most \
         {open_tokens} tokens of {open_limits} limits unconfirmed, {} of them consumed",
        books.len(),
        consumed_in_all - admitted
    );
}
