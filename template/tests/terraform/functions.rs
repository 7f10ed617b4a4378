//! The functions of Terraform that the module calls.

use std::fs;

use hcl::Value;
use hcl::eval::{Context, FuncArgs, FuncDef, ParamType};

use crate::terraform::evaluate::{to_hcl, to_json};

type Function = fn(FuncArgs) -> Result<Value, String>;

/// A context with the functions and nothing else.
#[allow(clippy::too_many_lines, reason = "a list of small functions")]
pub(crate) fn context() -> Context<'static> {
    let all: [(&str, Function); 31] = [
        ("alltrue", |args| {
            Ok(list(&args, 0)
                .iter()
                .all(|item| *item == Value::Bool(true))
                .into())
        }),
        ("basename", |args| {
            Ok(text(&args, 0)?.rsplit('/').next().unwrap_or_default().into())
        }),
        // An expression that fails stops this evaluator, so a failed match is null, and null is what cannot be.
        ("can", |args| Ok((!args[0].is_null()).into())),
        ("concat", |args| {
            Ok(args
                .iter()
                .flat_map(|items| items.as_array().unwrap().clone())
                .collect::<Vec<_>>()
                .into())
        }),
        ("contains", |args| Ok(list(&args, 0).contains(&args[1]).into())),
        ("file", |args| {
            fs::read_to_string(text(&args, 0)?)
                .map(Into::into)
                .map_err(|error| error.to_string())
        }),
        ("filebase64sha256", |args| {
            Ok(format!("<base64sha256 of {}>", text(&args, 0)?).into())
        }),
        ("fileexists", |args| {
            Ok(std::path::Path::new(text(&args, 0)?).exists().into())
        }),
        ("filesha256", |args| {
            Ok(format!("<sha256 of {}>", text(&args, 0)?).into())
        }),
        ("flatten", |args| {
            let items = list(&args, 0).iter().flat_map(|item| match item {
                Value::Array(items) => items.clone(),
                item => vec![item.clone()],
            });
            Ok(items.collect::<Vec<_>>().into())
        }),
        ("floor", |args| {
            let number = args[0].as_f64().ok_or("floor needs a number")?;
            #[allow(clippy::cast_possible_truncation, reason = "options are small")]
            Ok((number.floor() as i64).into())
        }),
        ("join", |args| {
            let words: Vec<_> = list(&args, 1).iter().map(|word| word.as_str().unwrap()).collect();
            Ok(words.join(text(&args, 0)?).into())
        }),
        // What AWS returns is a token.
        ("jsondecode", |args| {
            let text = text(&args, 0)?;
            Ok(serde_json::from_str(text)
                .map_or_else(|_| format!("<decoded {text}>").into(), |value| to_hcl(&value)))
        }),
        ("jsonencode", |args| Ok(to_json(&args[0]).to_string().into())),
        ("keys", |args| {
            let fields = args[0].as_object().ok_or("keys needs an object")?;
            Ok(fields.keys().map(String::as_str).collect::<Vec<_>>().into())
        }),
        ("length", |args| match &args[0] {
            Value::String(text) => Ok(text.chars().count().into()),
            Value::Array(items) => Ok(items.len().into()),
            Value::Object(fields) => Ok(fields.len().into()),
            other => Err(format!("length of {other}")),
        }),
        ("lookup", |args| {
            let fields = args[0].as_object().ok_or("lookup needs an object")?;
            Ok(fields.get(text(&args, 1)?).unwrap_or(&args[2]).clone())
        }),
        ("lower", |args| Ok(text(&args, 0)?.to_lowercase().into())),
        ("merge", |args| {
            let maps = args.iter().flat_map(|map| map.as_object().unwrap().clone());
            Ok(Value::Object(maps.collect()))
        }),
        ("one", |args| match list(&args, 0) {
            [] => Ok(Value::Null),
            [item] => Ok(item.clone()),
            _ => Err("one of several".to_owned()),
        }),
        ("optional", |_| Ok(Value::Null)),
        ("plantimestamp", |_| Ok("<plan>".into())),
        ("regex", |args| {
            let Some(text) = args[1].as_str() else {
                return Ok(Value::Null);
            };
            let pattern = regex::Regex::new(args[0].as_str().unwrap()).map_err(|error| error.to_string())?;
            Ok(pattern
                .find(text)
                .map_or(Value::Null, |found| found.as_str().into()))
        }),
        ("replace", |args| {
            Ok(text(&args, 0)?.replace(text(&args, 1)?, text(&args, 2)?).into())
        }),
        ("startswith", |args| {
            Ok(text(&args, 0)?.starts_with(text(&args, 1)?).into())
        }),
        ("substr", |args| {
            let (from, count) = (number(&args, 1), number(&args, 2));
            Ok(text(&args, 0)?
                .chars()
                .skip(from)
                .take(count)
                .collect::<String>()
                .into())
        }),
        ("sha256", |args| {
            Ok(format!("<sha256 of {} bytes>", text(&args, 0)?.len()).into())
        }),
        ("timestamp", |_| Ok("<now>".into())),
        ("tostring", |args| match &args[0] {
            Value::Number(number) => Ok(number.to_string().into()),
            other => Ok(other.clone()),
        }),
        ("upper", |args| Ok(text(&args, 0)?.to_uppercase().into())),
        ("values", |args| {
            Ok(args[0]
                .as_object()
                .unwrap()
                .values()
                .cloned()
                .collect::<Vec<_>>()
                .into())
        }),
    ];
    let mut context = Context::new();
    for (name, function) in all {
        context.declare_func(
            name,
            FuncDef::builder().variadic_param(ParamType::Any).build(function),
        );
    }
    context
}

fn text(args: &FuncArgs, place: usize) -> Result<&str, String> {
    args[place]
        .as_str()
        .ok_or_else(|| format!("argument {place} is {} and not text", args[place]))
}

fn list(args: &FuncArgs, place: usize) -> &[Value] {
    args[place].as_array().map(Vec::as_slice).unwrap()
}

fn number(args: &FuncArgs, place: usize) -> usize {
    usize::try_from(args[place].as_u64().unwrap()).unwrap()
}
