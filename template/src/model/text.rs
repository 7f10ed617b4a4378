//! Text with references.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::LogicalId;

/// A CloudFormation pseudo parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pseudo {
    /// The twelve digits of the account.
    AccountId,
    /// `aws`, `aws-cn`, `aws-us-gov`, …
    Partition,
    /// The region's name, such as `eu-central-1`.
    Region,
    /// The name of the stack.
    StackName,
    /// `amazonaws.com`, or its counterpart in another partition.
    UrlSuffix,
}

impl Pseudo {
    fn name(self) -> &'static str {
        match self {
            Self::AccountId => "AWS::AccountId",
            Self::Partition => "AWS::Partition",
            Self::Region => "AWS::Region",
            Self::StackName => "AWS::StackName",
            Self::UrlSuffix => "AWS::URLSuffix",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    Plain(String),
    Pseudo(Pseudo),
    Reference(LogicalId),
    Attribute(LogicalId, Cow<'static, str>),
}

/// A string property: plain text, a reference to a resource or one of its attributes, or several of these joined.
///
/// It renders to the shortest form: a string, `Ref`, `Fn::GetAtt` or `Fn::Sub`.
///
/// ```
/// use zae_limiter_template::model::{Pseudo, Text};
///
/// let name = Text::from("artifacts-").then(Pseudo::Region);
/// assert_eq!(name.to_value(), serde_json::json!({ "Fn::Sub": "artifacts-${AWS::Region}" }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Text {
    parts: Vec<Part>,
}

impl Text {
    /// `Ref` of a resource or a parameter.
    pub fn reference(id: LogicalId) -> Self {
        Self {
            parts: vec![Part::Reference(id)],
        }
    }

    /// `Fn::GetAtt` of a resource.
    pub fn attribute(id: LogicalId, attribute: impl Into<Cow<'static, str>>) -> Self {
        Self {
            parts: vec![Part::Attribute(id, attribute.into())],
        }
    }

    /// This text followed by another.
    #[must_use]
    pub fn then(mut self, next: impl Into<Self>) -> Self {
        for part in next.into().parts {
            match (self.parts.last_mut(), part) {
                (Some(Part::Plain(text)), Part::Plain(more)) => text.push_str(&more),
                (_, part) => self.parts.push(part),
            }
        }
        self
    }

    /// The text, if it has no references.
    pub fn as_plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// The text as a template has it.
    pub fn to_value(&self) -> Value {
        match self.parts.as_slice() {
            [] => json!(""),
            [Part::Plain(text)] => json!(text),
            [Part::Pseudo(pseudo)] => json!({ "Ref": pseudo.name() }),
            [Part::Reference(id)] => json!({ "Ref": id.as_str() }),
            [Part::Attribute(id, attribute)] => json!({ "Fn::GetAtt": [id.as_str(), attribute] }),
            parts => json!({ "Fn::Sub": parts.iter().map(substitution).collect::<String>() }),
        }
    }
}

fn substitution(part: &Part) -> String {
    match part {
        // `${!name}` is how Fn::Sub spells a literal `${name}`.
        Part::Plain(text) => text.replace("${", "${!"),
        Part::Pseudo(pseudo) => format!("${{{}}}", pseudo.name()),
        Part::Reference(id) => format!("${{{id}}}"),
        Part::Attribute(id, attribute) => format!("${{{id}.{attribute}}}"),
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self {
            parts: vec![Part::Plain(text)],
        }
    }
}

impl From<Pseudo> for Text {
    fn from(pseudo: Pseudo) -> Self {
        Self {
            parts: vec![Part::Pseudo(pseudo)],
        }
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: LogicalId = LogicalId::fixed("Table");

    #[test]
    fn plain_text_renders_as_itself() {
        assert_eq!(Text::from("a").then("b").to_value(), json!("ab"));
    }

    #[test]
    fn a_single_reference_renders_as_ref_or_getatt() {
        assert_eq!(Text::reference(TABLE).to_value(), json!({ "Ref": "Table" }));
        assert_eq!(
            Text::attribute(TABLE, "Arn").to_value(),
            json!({ "Fn::GetAtt": ["Table", "Arn"] })
        );
        assert_eq!(
            Text::from(Pseudo::Region).to_value(),
            json!({ "Ref": "AWS::Region" })
        );
    }

    #[test]
    fn joined_text_renders_as_sub_and_keeps_a_literal_dollar_brace() {
        let text = Text::attribute(TABLE, "Arn").then("/index/${x}");
        assert_eq!(text.to_value(), json!({ "Fn::Sub": "${Table.Arn}/index/${!x}" }));
    }
}
