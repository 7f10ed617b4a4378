//! Values to try for each option.

use serde_json::{Map, Value, json};
use zae_limiter_template::{Accepts, Field, FieldKind};

use crate::variants;

/// Values on both sides of the rule of an option.
pub(crate) fn around(field: &Field) -> Vec<Value> {
    let text = |words: &[&str]| words.iter().map(|word| json!(word)).collect::<Vec<_>>();
    match field.accepts {
        Accepts::Anything => match field.kind {
            FieldKind::Flag => vec![json!(true), json!(false)],
            _ => text(&["a", "build/functions"]),
        },
        Accepts::Range { least, most } => {
            let (least, most) = (i64::from(least), i64::from(most));
            [least - 1, least, most, most + 1, -1]
                .map(|number| json!(number))
                .into()
        }
        Accepts::Numbers(numbers) => {
            let near = numbers
                .iter()
                .flat_map(|number| [number - 1, *number, number + 1]);
            near.map(|number| json!(number)).collect()
        }
        Accepts::OneOf(words) => {
            let mut all = text(words);
            all.extend(words.iter().map(|word| json!(word.to_uppercase())));
            all.extend(text(&["", "other"]));
            all
        }
        Accepts::Text { longest, .. } => texts(longest),
        Accepts::Windows => vec![
            json!(["hourly"]),
            json!(["monthly", "daily"]),
            json!(["daily", "daily"]),
            json!([]),
            json!(["weekly"]),
            json!(["Hourly"]),
            json!([""]),
        ],
        Accepts::List { .. } => {
            let words = [
                "",
                "a",
                "subnet-0a1b2c3d",
                "subnet-0a1b2c3d4e5f60718",
                "subnet-0A1B2C3D",
                "sg-0a1b2c3d",
                "sg-0a1b2c3",
                "123456789012",
                "12345678901",
            ];
            let mut all: Vec<_> = words.iter().map(|word| json!([word])).collect();
            all.extend(words.iter().map(|word| json!(vec![word; 16])));
            all.extend(words.iter().map(|word| json!(vec![word; 17])));
            all.push(json!([]));
            all
        }
        Accepts::Tags => tags(),
    }
}

/// Texts of every form that an option may have, and lengths around the limits.
fn texts(longest: Option<usize>) -> Vec<Value> {
    let words = [
        "",
        "a",
        "A",
        "abc",
        "a-b.c",
        "a..b",
        "-abc",
        "abc-",
        "a b",
        "a/b",
        "x-{}",
        "{}-y",
        "{}{}",
        "{}",
        "a\nb",
        "é",
        "company-boundary",
        "192.168.0.1",
        "alias/mine",
        "archives/a.zip",
        "/",
        "/limiter/",
        "/team/limiter/",
        "//",
        "/limiter",
        "/a b/",
        "arn:aws:sns:eu-central-1:123456789012:ops",
        "arn:aws:sns:eu-central-1:1:ops",
        "arn:aws:s3:::bucket",
        "arn:aws:iam::123456789012:role/limiter",
        "arn:aws:iam::123456789012:role/path/limiter",
        "arn:aws:iam::123456789012:policy/boundary",
        "arn:aws-cn:iam::123456789012:policy/boundary",
        "arn:aws:iam::123456789012:user/limiter",
        variants::KEY,
        variants::TOPIC,
    ];
    let mut all: Vec<_> = words.iter().map(|word| json!(word)).collect();
    for length in longest.into_iter().chain([63, 64, 128, 1_024]) {
        for length in length - 1..=length + 1 {
            all.push(json!("a".repeat(length)));
            all.push(json!(format!("{}{{}}", "a".repeat(length - 2))));
        }
    }
    all
}

fn tags() -> Vec<Value> {
    let tag = |key: &str, value: &str| json!({ key: value });
    let many = |count: usize| -> Value {
        (0..count)
            .map(|number| (format!("tag-{number}"), json!("x")))
            .collect::<Map<_, _>>()
            .into()
    };
    vec![
        many(0),
        many(43),
        many(44),
        tag("team", ""),
        tag("", "x"),
        tag("aws:x", "y"),
        tag("AWS:x", "y"),
        tag("awsx", "y"),
        tag("ManagedBy", "x"),
        tag("Application", "x"),
        tag("zae-limiter:x", "y"),
        tag("zae-limiter", "y"),
        tag("a", "b#"),
        tag("a#", "b"),
        tag("été", "日本"),
        tag("_.:/=+-@ 1", "_.:/=+-@ 1"),
        tag(&"a".repeat(128), &"b".repeat(256)),
        tag(&"a".repeat(129), "b"),
        tag("a", &"b".repeat(257)),
    ]
}
