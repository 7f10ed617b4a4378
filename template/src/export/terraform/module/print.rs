//! Terraform's language as `terraform fmt` lays it out.
//!
//! The parts of the module are written as text, parsed with hcl-rs, and printed from what was parsed. So a part that is not valid
//! Terraform cannot be rendered.

use std::fmt::Write as _;

use hcl::expr::FuncCall;
use hcl::format::{Format, Formatter};
use hcl::{Attribute, Block, Body, Expression, ObjectKey, Structure};

use crate::Error;

/// Longer lists, objects and calls get a line for each element.
const WIDTH: usize = 100;

/// A part of a file: blocks, with a comment above them.
pub(super) struct Part {
    comment: Option<&'static str>,
    text: String,
}

impl Part {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            comment: None,
            text: text.into(),
        }
    }

    pub(super) fn with_comment(comment: &'static str, text: impl Into<String>) -> Self {
        Self {
            comment: Some(comment),
            text: text.into(),
        }
    }
}

/// A file of these parts.
pub(super) fn file(parts: &[Part]) -> Result<String, Error> {
    let parts = parts.iter().map(|part| {
        let body = parse(&part.text)?;
        let text = print_body(&body, 0);
        // A quote inside a template would be printed without its backslash.
        parse(&text)?;
        let comment = part.comment.map(|line| format!("# {line}\n")).unwrap_or_default();
        Ok(comment + &text)
    });
    Ok(parts.collect::<Result<Vec<_>, Error>>()?.join("\n"))
}

fn parse(text: &str) -> Result<Body, Error> {
    hcl::parse(text).map_err(|source| Error::Terraform {
        text: text.to_owned(),
        source: Box::new(source),
    })
}

fn print_body(body: &Body, indent: usize) -> String {
    let mut groups: Vec<String> = Vec::new();
    let mut lines: Vec<(String, String)> = Vec::new();
    for structure in body {
        match structure {
            Structure::Attribute(attribute) => {
                lines.push(line(attribute, indent));
                // What decides how many there are stands apart.
                if ["count", "for_each"].contains(&attribute.key()) {
                    groups.push(aligned(&std::mem::take(&mut lines), indent));
                }
            }
            Structure::Block(block) => {
                groups.push(aligned(&std::mem::take(&mut lines), indent));
                groups.push(print_block(block, indent));
            }
        }
    }
    groups.push(aligned(&lines, indent));
    groups.retain(|group| !group.is_empty());
    groups.join("\n")
}

fn line(attribute: &Attribute, indent: usize) -> (String, String) {
    (
        attribute.key().to_owned(),
        layout(attribute.expr(), indent, attribute.key().len() + 3),
    )
}

fn print_block(block: &Block, indent: usize) -> String {
    let words: Vec<_> = std::iter::once(block.identifier().to_owned())
        .chain(
            block
                .labels()
                .iter()
                .map(|label| format!("\"{}\"", label.as_str())),
        )
        .collect();
    let space = " ".repeat(indent);
    let start = format!("{space}{} {{", words.join(" "));
    if block.body().iter().next().is_none() {
        return format!("{start}}}\n");
    }
    format!("{start}\n{}{space}}}\n", print_body(block.body(), indent + 2))
}

/// Lines with the equals signs of neighbors below each other. A value of several lines has no neighbors.
fn aligned(lines: &[(String, String)], indent: usize) -> String {
    let several = |(_, value): &(String, String)| value.contains('\n');
    let mut text = String::new();
    for chain in lines.chunk_by(|one, next| !several(one) && !several(next)) {
        let width = chain.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
        for (key, value) in chain {
            let _ = writeln!(text, "{:indent$}{key:<width$} = {value}", "");
        }
    }
    text
}

/// An expression that starts in a column beyond the indentation.
fn layout(expression: &Expression, indent: usize, column: usize) -> String {
    let inline = compact(expression);
    if indent + column + inline.len() <= WIDTH
        && !matches!(expression, Expression::Object(fields) if fields.len() > 2)
    {
        return inline;
    }
    let (space, deeper) = (" ".repeat(indent), indent + 2);
    match expression {
        Expression::Array(items) if !items.is_empty() => {
            let items = items.iter().map(|item| {
                let item = layout(item, deeper, 0);
                format!("{:deeper$}{item},\n", "")
            });
            format!("[\n{}{space}]", items.collect::<Vec<_>>().concat())
        }
        Expression::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(key, value)| {
                let key = key_text(key);
                let value = layout(value, deeper, key.len() + 3);
                (key, value)
            });
            let fields: Vec<_> = fields.collect();
            format!("{{\n{}{space}}}", aligned(&fields, deeper))
        }
        Expression::FuncCall(call) => call_layout(call, indent),
        _ => inline,
    }
}

/// A call whose last argument has several lines.
fn call_layout(call: &FuncCall, indent: usize) -> String {
    let arguments: Vec<_> = call
        .args
        .iter()
        .enumerate()
        .map(|(place, argument)| {
            if place + 1 == call.args.len() {
                layout(argument, indent, WIDTH)
            } else {
                compact(argument)
            }
        })
        .collect();
    format!("{}({})", call.name, arguments.join(", "))
}

/// A key as `terraform fmt` leaves it: with quotes only where it needs them.
fn key_text(key: &ObjectKey) -> String {
    let name = match key {
        ObjectKey::Identifier(name) => name.as_str(),
        ObjectKey::Expression(Expression::String(name)) => name,
        other => return other.to_string(),
    };
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain && !name.starts_with(|c: char| c.is_ascii_digit()) {
        name.to_owned()
    } else {
        compact(&Expression::String(name.to_owned()))
    }
}

fn compact(expression: &Expression) -> String {
    let mut formatter = Formatter::builder()
        .compact(true)
        .prefer_ident_keys(true)
        .build_vec();
    // Formatting into memory does not fail.
    expression.format_string(&mut formatter).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn neighbors_are_aligned_and_blocks_stand_apart() {
        let text = "resource \"a\" \"b\" {\n count = 1\n name = \"x\"\n longer = [1, 2]\n map = { a = 1, bcd = 2, e = 3 }\n z = 1\n inner {}\n}";
        let expected = "# Why.
resource \"a\" \"b\" {
  count = 1

  name   = \"x\"
  longer = [1, 2]
  map = {
    a   = 1
    bcd = 2
    e   = 3
  }
  z = 1

  inner {}
}
";
        assert_eq!(file(&[Part::with_comment("Why.", text)]).unwrap(), expected);
    }

    #[test]
    fn a_part_that_is_not_terraform_is_refused() {
        let error = file(&[Part::new("resource { = }")]).unwrap_err();
        assert!(error.to_string().contains("resource { = }"), "{error}");
    }
}
