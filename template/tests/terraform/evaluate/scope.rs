//! What expressions refer to.

use hcl::Block;
use hcl::eval::{Context, Evaluate};
use serde_json::{Map, Value, json};

use super::body::try_evaluate_body;
use super::policy_document::policy_document;
use super::syntax::{attribute, labels, to_hcl, to_json};
use super::{Instances, Module};
use crate::terraform::functions;

/// Everything that expressions can refer to.
pub(super) struct Scope<'a> {
    module: &'a Module,
    variables: Value,
    locals: Map<String, Value>,
    /// Resources by type and name: a list for those with a count.
    resources: Map<String, Value>,
    documents: Map<String, Value>,
    pub(super) data: Instances,
}

impl<'a> Scope<'a> {
    /// Locals and resources refer to each other, so what can be evaluated is, until nothing is left.
    pub(super) fn resolve(module: &'a Module, variables: Value) -> Self {
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

    pub(super) fn exists(&self, kind: &str, name: &str) -> bool {
        self.resources[kind][name] != json!([])
    }

    /// The attributes of a resource that others refer to.
    fn tokens(&self, kind: &str, name: &str) -> Value {
        let id = self.module.ids.get(name).map_or(name, String::as_str);
        if kind == "aws_cloudformation_stack" {
            let outputs = self
                .module
                .ids
                .iter()
                .map(|(name, id)| (name.clone(), json!(format!("<{id}>"))));
            return json!({ "outputs": outputs.collect::<Map<_, _>>() });
        }
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
            "aws_lambda_invocation" => &[("result", ".Result")],
            "aws_s3_bucket" => &[("bucket", ""), ("arn", ".Arn")],
            "aws_s3_object" => &[("key", ".Key")],
            "aws_sqs_queue" => &[("url", ""), ("arn", ".Arn"), ("name", ".QueueName")],
            "terraform_data" => &[("id", ".Id")],
            _ => &[],
        };
        let attributes = attributes.iter();
        let token =
            |(attribute, suffix): &(&str, &str)| ((*attribute).to_owned(), json!(format!("<{id}{suffix}>")));
        Value::Object(attributes.map(token).collect())
    }

    pub(super) fn context(&self) -> Context<'static> {
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
