//! A small evaluator of the module: variables, locals, counts, dynamic blocks, policy documents.
//!
//! What only AWS knows, such as an ARN, is a token: `<AggregatorDLQ.Arn>` stands for `Fn::GetAtt` of that resource, `<AggregatorDLQ>`
//! for its `Ref`. So the result can be compared with a template.

use std::collections::BTreeMap;
use std::path::Path;

use hcl::eval::{Context, Evaluate};
use hcl::{Block, Body, Expression};
use serde_json::{Map, Value, json};

use crate::functions;

/// A resource or data source that exists: its attributes, and its nested blocks as lists.
pub(crate) type Instances = BTreeMap<(String, String), Value>;

pub(crate) struct Evaluated {
    pub(crate) resources: Instances,
    pub(crate) data: Instances,
    /// Null for what does not exist.
    pub(crate) outputs: BTreeMap<String, Value>,
}

pub(crate) struct Module {
    body: Body,
    folder: String,
    /// The logical ids of the stack by the names of the module's resources.
    ids: BTreeMap<String, String>,
}

impl Module {
    pub(crate) fn new(files: &BTreeMap<String, String>, folder: &str, ids: BTreeMap<String, String>) -> Self {
        let text: Vec<_> = files
            .iter()
            .filter(|(path, _)| Path::new(path).extension() == Some("tf".as_ref()) && !path.contains('/'))
            .map(|(_, contents)| contents.as_str())
            .collect();
        Self {
            body: hcl::parse(&text.concat()).unwrap(),
            folder: folder.to_owned(),
            ids,
        }
    }

    pub(crate) fn blocks<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Block> {
        self.body.blocks().filter(move |block| block.identifier() == kind)
    }

    /// The module with these variables, or the message of each validation and precondition that does not hold.
    pub(crate) fn evaluate(&self, given: &Map<String, Value>) -> Result<Evaluated, Vec<String>> {
        let variables = self.variables(given)?;
        let scope = Scope::resolve(self, variables);
        let mut broken = Vec::new();
        let data = scope.data.clone();
        let mut resources = Instances::new();
        let context = scope.context();
        for block in self.blocks("resource") {
            let (kind, name) = labels(block);
            if !scope.exists(&kind, &name) {
                continue;
            }
            broken.extend(preconditions(block.body(), &context));
            resources.insert((kind, name), evaluate_body(block.body(), &context));
        }
        if !broken.is_empty() {
            return Err(broken);
        }
        let outputs = self.blocks("output").map(|block| {
            let value = attribute(block.body(), "value").unwrap();
            (block.labels()[0].as_str().to_owned(), evaluated(value, &context))
        });
        Ok(Evaluated {
            resources,
            data,
            outputs: outputs.collect(),
        })
    }

    fn variables(&self, given: &Map<String, Value>) -> Result<Value, Vec<String>> {
        let mut values = Map::new();
        for block in self.blocks("variable") {
            let name = block.labels()[0].as_str();
            let default =
                attribute(block.body(), "default").map(|value| evaluated(value, &functions::context()));
            let value = given.get(name).cloned().or(default);
            values.insert(
                name.to_owned(),
                value.unwrap_or_else(|| panic!("{name} is required")),
            );
        }
        for name in given.keys() {
            assert!(values.contains_key(name), "the module has no variable {name}");
        }
        let values = Value::Object(values);
        let mut context = functions::context();
        context.declare_var("var", to_hcl(&values));
        let validations = self.blocks("variable").flat_map(|block| block.body().blocks());
        let broken: Vec<_> = validations
            .filter_map(|block| broken_rule(block, &context))
            .collect();
        if broken.is_empty() {
            Ok(values)
        } else {
            Err(broken)
        }
    }
}

/// The message of a rule whose condition does not hold.
fn broken_rule(block: &Block, context: &Context<'_>) -> Option<String> {
    let holds = evaluated(attribute(block.body(), "condition").unwrap(), context);
    let message = attribute(block.body(), "error_message").unwrap();
    (holds != json!(true)).then(|| evaluated(message, context).as_str().unwrap().to_owned())
}

fn preconditions(body: &Body, context: &Context<'_>) -> Vec<String> {
    let lifecycle = body.blocks().filter(|block| block.identifier() == "lifecycle");
    let rules = lifecycle.flat_map(|block| block.body().blocks());
    rules.filter_map(|rule| broken_rule(rule, context)).collect()
}

/// Everything that expressions can refer to.
struct Scope<'a> {
    module: &'a Module,
    variables: Value,
    locals: Map<String, Value>,
    /// Resources by type and name: a list for those with a count.
    resources: Map<String, Value>,
    documents: Map<String, Value>,
    data: Instances,
}

impl<'a> Scope<'a> {
    /// Locals and resources refer to each other, so what can be evaluated is, until nothing is left.
    fn resolve(module: &'a Module, variables: Value) -> Self {
        let mut scope = Self {
            module,
            variables,
            locals: Map::new(),
            resources: Map::new(),
            documents: Map::new(),
            data: Instances::new(),
        };
        let locals: Vec<_> = module
            .blocks("locals")
            .flat_map(|block| block.body().attributes())
            .collect();
        loop {
            let mut left = Vec::new();
            let before = scope.size();
            let context = scope.context();
            for local in &locals {
                if scope.locals.contains_key(local.key()) {
                    continue;
                }
                match local.expr().evaluate(&context) {
                    Ok(value) => {
                        scope.locals.insert(local.key().to_owned(), to_json(&value));
                    }
                    Err(error) => left.push(format!("local.{}: {error}", local.key())),
                }
            }
            for block in module.blocks("resource").chain(module.blocks("data")) {
                if let Err(error) = scope.declare(block, &context) {
                    left.push(format!("{:?}: {error}", labels(block)));
                }
            }
            if left.is_empty() {
                return scope;
            }
            assert!(scope.size() > before, "cannot be evaluated: {left:#?}");
        }
    }

    fn size(&self) -> usize {
        let named = |all: &Map<String, Value>| -> usize {
            all.values()
                .map(|names| names.as_object().map_or(1, Map::len))
                .sum()
        };
        self.locals.len() + named(&self.resources) + self.documents.len()
    }

    fn declare(&mut self, block: &Block, context: &Context<'_>) -> Result<(), String> {
        let (kind, name) = labels(block);
        let is_data = block.identifier() == "data";
        let known = if is_data {
            kind != "aws_iam_policy_document" || self.documents.contains_key(&name)
        } else {
            self.resources
                .get(&kind)
                .is_some_and(|names| names.get(&name).is_some())
        };
        if known {
            return Ok(());
        }
        let count = match attribute(block.body(), "count") {
            None => None,
            Some(count) => Some(to_json(
                &count.evaluate(context).map_err(|error| error.to_string())?,
            )),
        };
        let exists = count.as_ref().is_none_or(|count| *count == json!(1));
        assert!(
            exists || count == Some(json!(0)),
            "{kind}.{name} has count {count:?}"
        );
        let one = if is_data {
            if exists {
                let body = try_evaluate_body(block.body(), context)?;
                let document = policy_document(&body);
                self.data.insert((kind.clone(), name.clone()), body);
                json!({ "json": document.to_string() })
            } else {
                Value::Null
            }
        } else {
            self.tokens(&kind, &name)
        };
        let value = match (count.is_some(), exists) {
            (false, _) => one,
            (true, true) => json!([one]),
            (true, false) => json!([]),
        };
        if is_data {
            self.documents.insert(name, value);
        } else {
            let names = self.resources.entry(kind).or_insert_with(|| json!({}));
            names[name] = value;
        }
        Ok(())
    }

    fn exists(&self, kind: &str, name: &str) -> bool {
        self.resources[kind][name] != json!([])
    }

    /// The attributes of a resource that others refer to.
    fn tokens(&self, kind: &str, name: &str) -> Value {
        let id = self.module.ids.get(name).map_or(name, String::as_str);
        let attributes: &[(&str, &str)] = match kind {
            "aws_cloudwatch_dashboard" => &[("dashboard_name", "")],
            "aws_cloudwatch_log_group" | "aws_iam_role" => &[("name", ""), ("arn", ".Arn")],
            "aws_cloudwatch_metric_alarm" => &[("alarm_name", "")],
            "aws_dynamodb_table" => &[
                ("name", ""),
                ("arn", ".Arn"),
                ("stream_arn", ".StreamArn"),
                ("hash_key", ".hash"),
                ("range_key", ".range"),
            ],
            "aws_iam_policy" => &[("arn", "")],
            "aws_lambda_event_source_mapping" => &[("uuid", "")],
            "aws_lambda_function" => &[("function_name", ""), ("arn", ".Arn")],
            "aws_s3_bucket" => &[("bucket", ""), ("arn", ".Arn")],
            "aws_s3_object" => &[("key", ".Key")],
            "aws_sqs_queue" => &[("url", ""), ("arn", ".Arn"), ("name", ".QueueName")],
            _ => &[],
        };
        let attributes = attributes.iter();
        let token =
            |(attribute, suffix): &(&str, &str)| ((*attribute).to_owned(), json!(format!("<{id}{suffix}>")));
        Value::Object(attributes.map(token).collect())
    }

    fn context(&self) -> Context<'static> {
        let mut context = functions::context();
        context.declare_var("var", to_hcl(&self.variables));
        context.declare_var("local", to_hcl(&Value::Object(self.locals.clone())));
        context.declare_var(
            "path",
            to_hcl(&json!({ "module": self.module.folder, "root": "." })),
        );
        context.declare_var(
            "data",
            to_hcl(&json!({
                "aws_region": { "current": { "id": "<AWS::Region>" } },
                "aws_caller_identity": { "current": { "account_id": "<AWS::AccountId>" } },
                "aws_partition": { "current": { "partition": "<AWS::Partition>", "dns_suffix": "<AWS::URLSuffix>" } },
                "aws_iam_policy_document": self.documents,
            })),
        );
        for (kind, names) in &self.resources {
            context.declare_var(kind.as_str(), to_hcl(names));
        }
        context
    }
}

/// What the data source `aws_iam_policy_document` makes of its blocks, in the form that a template has.
fn policy_document(body: &Value) -> Value {
    let one_or_list = |list: &Value| match list.as_array().map(Vec::as_slice) {
        Some([one]) => one.clone(),
        _ => list.clone(),
    };
    let blocks = |body: &Value, name: &str| {
        body.get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let statement = |block: Value| {
        let mut statement = Map::new();
        for (from, to) in [
            ("sid", "Sid"),
            ("effect", "Effect"),
            ("actions", "Action"),
            ("resources", "Resource"),
        ] {
            statement.extend(block.get(from).map(|value| (to.to_owned(), value.clone())));
        }
        for principals in blocks(&block, "principals") {
            let kind = principals["type"].as_str().unwrap();
            let principal = statement.entry("Principal").or_insert_with(|| json!({}));
            principal[kind] = one_or_list(&principals["identifiers"]);
        }
        for condition in blocks(&block, "condition") {
            let (test, key) = (
                condition["test"].as_str().unwrap(),
                condition["variable"].as_str().unwrap(),
            );
            let tests = statement.entry("Condition").or_insert_with(|| json!({}));
            if tests.get(test).is_none() {
                tests[test] = json!({});
            }
            tests[test][key] = one_or_list(&condition["values"]);
        }
        Value::Object(statement)
    };
    let statements: Vec<_> = blocks(body, "statement").into_iter().map(statement).collect();
    json!({ "Version": "2012-10-17", "Statement": statements })
}

/// Arguments of Terraform itself.
const META: [&str; 3] = ["count", "depends_on", "provider"];

fn evaluate_body(body: &Body, context: &Context<'_>) -> Value {
    try_evaluate_body(body, context).unwrap_or_else(|error| panic!("{error}"))
}

/// Attributes that are not null, and blocks as lists under their name. `lifecycle` and provisioners stay as they are.
fn try_evaluate_body(body: &Body, context: &Context<'_>) -> Result<Value, String> {
    let mut result = Map::new();
    for attribute in body
        .attributes()
        .filter(|attribute| !META.contains(&attribute.key()))
    {
        let value = attribute
            .expr()
            .evaluate(context)
            .map_err(|error| error.to_string())?;
        if !value.is_null() {
            result.insert(attribute.key().to_owned(), to_json(&value));
        }
    }
    let mut add = |name: &str, value: Value| {
        let list = result.entry(name.to_owned()).or_insert_with(|| json!([]));
        list.as_array_mut().unwrap().push(value);
    };
    for block in body.blocks() {
        match block.identifier() {
            "lifecycle" => {
                let fixed = |name: &str| attribute(block.body(), name).map(ToString::to_string);
                add(
                    "lifecycle",
                    json!({ "prevent_destroy": fixed("prevent_destroy"), "ignore_changes": fixed("ignore_changes") }),
                );
            }
            "dynamic" => {
                let name = block.labels()[0].as_str();
                let each = attribute(block.body(), "for_each").unwrap();
                let each = to_json(&each.evaluate(context).map_err(|error| error.to_string())?);
                let content = block.body().blocks().next().unwrap();
                for item in each.as_array().unwrap() {
                    let mut inner = context.clone();
                    inner.declare_var(name, to_hcl(&json!({ "value": item })));
                    add(name, try_evaluate_body(content.body(), &inner)?);
                }
            }
            name => add(name, try_evaluate_body(block.body(), context)?),
        }
    }
    Ok(Value::Object(result))
}

pub(crate) fn labels(block: &Block) -> (String, String) {
    let label = |place: usize| block.labels()[place].as_str().to_owned();
    (label(0), label(1))
}

pub(crate) fn attribute<'a>(body: &'a Body, name: &str) -> Option<&'a Expression> {
    let mut attributes = body.attributes();
    attributes
        .find(|attribute| attribute.key() == name)
        .map(hcl::Attribute::expr)
}

fn evaluated(expression: &Expression, context: &Context<'_>) -> Value {
    let value = expression.evaluate(context);
    to_json(&value.unwrap_or_else(|error| panic!("{expression}: {error}")))
}

pub(crate) fn to_json(value: &hcl::Value) -> Value {
    serde_json::to_value(value).unwrap()
}

pub(crate) fn to_hcl(value: &Value) -> hcl::Value {
    match value {
        Value::Null => hcl::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => hcl::Value::Array(items.iter().map(to_hcl).collect()),
        Value::Object(fields) => hcl::Value::Object(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), to_hcl(value)))
                .collect(),
        ),
    }
}
