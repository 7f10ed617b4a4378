//! The CloudWatch Logs Insights queries of the monitoring page, translated to SQL and run with SQLite on the lines that the
//! functions print. A field that no line has, or a command that does not parse, fails.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use serde_json::{Map, Value, json};
use zae_limiter::Timestamp;
use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_archiver::{Archiver, S3};
use zae_limiter_function::{Function, Level, Queue, Report};

use crate::book::{markdown, pages};

/// Lines of both functions, with a warning and counts in all metrics, and one of Lambda's own.
fn lines() -> Vec<Map<String, Value>> {
    let of = |metrics: &'static [&'static str]| {
        let mut report = Report::new(Level::Info, metrics);
        for metric in metrics {
            report.count(metric, 3);
        }
        report.acquired("gpt-4", 1);
        report.note(Level::Warn, "a record was sent to the dead-letter queue");
        report.made_at(Timestamp::from_millis(0));
        report.lines("f", "r", SystemTime::UNIX_EPOCH, Duration::from_millis(7))
    };
    let printed = [
        of(<Aggregator<DynamoDb, Queue> as Function>::METRICS),
        of(<Archiver<S3, Queue> as Function>::METRICS),
    ];
    let mut lines: Vec<Map<String, Value>> = printed
        .iter()
        .flatten()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let report =
        json!({"@type": "REPORT", "@initDuration": 9.5, "@maxMemoryUsed": 21_000_000, "@requestId": "r"});
    lines.push(report.as_object().unwrap().clone());
    for (line, at) in lines.iter_mut().zip(0_i64..) {
        // CloudWatch adds these to every line.
        line.insert("@timestamp".to_owned(), json!(at * 1000));
        line.insert("@message".to_owned(), json!("the line"));
    }
    lines
}

fn database() -> Connection {
    let lines = lines();
    let fields: BTreeSet<_> = lines.iter().flat_map(|line| line.keys()).collect();
    let database = Connection::open_in_memory().unwrap();
    let quoted: Vec<_> = fields.iter().map(|field| format!("\"{field}\"")).collect();
    let quoted = quoted.join(", ");
    database
        .execute(&format!("CREATE TABLE log ({quoted})"), [])
        .unwrap();
    for line in &lines {
        let values = fields.iter().map(|field| match line.get(*field) {
            None | Some(Value::Null) => "NULL".to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::String(text)) => format!("'{}'", text.replace('\'', "''")),
            Some(nested) => format!("'{}'", nested.to_string().replace('\'', "''")),
        });
        let values: Vec<_> = values.collect();
        let insert = format!("INSERT INTO log ({quoted}) VALUES ({})", values.join(", "));
        database.execute(&insert, []).unwrap();
    }
    database
}

/// Numbers with units, lists, functions and names that SQL spells in another way.
fn expression(text: &str) -> String {
    let mut sql = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '@';
        let length = if is_name(first) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if first == '"' {
            rest[1..].find('"').expect("a closing quote") + 2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        match token {
            // Text is in double quotes there, and names are in SQL.
            quoted if quoted.starts_with('"') => write!(sql, "'{}'", quoted.trim_matches('"')).unwrap(),
            "[" => sql.push('('),
            "]" => sql.push(')'),
            name if name.starts_with('@') || name.starts_with(char::is_uppercase) => {
                write!(sql, "\"{name}\"").unwrap();
            }
            other => sql.push_str(other),
        }
        rest = after;
    }
    sql
}

/// `pct(x, 99)` as an aggregate of SQLite, `bin(5m)` as a column, `ispresent(x)` as a condition.
fn functions(sql: &str) -> String {
    let mut sql = sql.replace("ispresent(", "0 <> length(");
    while let Some(start) = sql.find("pct(") {
        let end = start + sql[start..].find(')').unwrap();
        let inside = &sql[start + 4..end];
        let (value, percent) = inside.split_once(", ").unwrap();
        let percent: u8 = percent.parse().unwrap();
        assert!(percent <= 100, "{percent}");
        sql = format!("{}max({value}{}", &sql[..start], &sql[end..]);
    }
    if let Some(start) = sql.find("bin(") {
        let end = start + sql[start..].find(')').unwrap();
        let period = &sql[start + 4..end];
        let (number, unit) = period.split_at(period.len() - 1);
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            other => panic!("bin({period}): unknown unit {other}"),
        };
        let millis = number.parse::<u64>().unwrap() * seconds * 1000;
        sql = format!("{}\"@timestamp\" / {millis}{}", &sql[..start], &sql[end + 1..]);
    }
    sql
}

/// The query as SQL.
fn translated(query: &str) -> String {
    let (mut fields, mut filters, mut group, mut order, mut limit) = (
        "*".to_owned(),
        vec![],
        String::new(),
        String::new(),
        String::new(),
    );
    let query = query.replace('\n', " ");
    for command in query.split(" | ") {
        let (word, arguments) = command.trim().split_once(' ').unwrap();
        let arguments = functions(&expression(arguments));
        match word {
            "fields" => fields = arguments,
            "filter" => filters.push(arguments),
            "stats" => {
                let (values, by) = arguments.split_once(" by ").unwrap_or((&arguments, "1"));
                values.clone_into(&mut fields);
                group = format!(" GROUP BY {by}");
            }
            "sort" => order = format!(" ORDER BY {arguments}"),
            "limit" => limit = format!(" LIMIT {arguments}"),
            other => panic!("unknown command {other} in {query}"),
        }
    }
    let filters = if filters.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", filters.join(" AND "))
    };
    format!("SELECT {fields} FROM log{filters}{group}{order}{limit}")
}

#[test]
fn every_query_finds_lines_of_the_functions() {
    let database = database();
    // SQLite takes an unknown name in double quotes for text.
    let known: BTreeSet<String> = lines().iter().flat_map(|line| line.keys().cloned()).collect();
    let page = pages::read("docs/operate/monitoring.md");
    let queries: Vec<_> = markdown::blocks(&page)
        .into_iter()
        .filter(|block| block.language() == "text")
        .collect();
    assert!(queries.len() >= 6);
    for query in queries {
        let sql = translated(&query.text);
        for name in sql.split('"').skip(1).step_by(2) {
            assert!(known.contains(name), "line {}: no line has {name}", query.line);
        }
        let mut statement = database
            .prepare(&sql)
            .unwrap_or_else(|error| panic!("line {}: {error}: {sql}", query.line));
        let found = statement.query_map([], |_| Ok(())).unwrap().count();
        assert!(found > 0, "line {}: {sql} finds nothing", query.line);
    }
}
