//! A small evaluator of the module: variables, locals, counts, dynamic blocks, policy documents.
//!
//! What only AWS knows, such as an ARN, is a token: `<AggregatorDLQ.Arn>` stands for `Fn::GetAtt` of that resource, `<AggregatorDLQ>`
//! for its `Ref`. So the result can be compared with a template.

mod body;
mod policy_document;
mod scope;
mod syntax;

use std::collections::BTreeMap;
use std::path::Path;

use hcl::{Block, Body};
use serde_json::{Map, Value};

use crate::terraform::functions;
use body::{broken_rule, evaluate_body, preconditions};
use scope::Scope;
use syntax::evaluated;
pub(crate) use syntax::{attribute, labels, to_hcl, to_json};

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

    /// The value of each variable, or the message of each validation that does not hold.
    pub(crate) fn variables(&self, given: &Map<String, Value>) -> Result<Value, Vec<String>> {
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
        context.declare_var("var", syntax::to_hcl(&values));
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
