//! A plan as text.

use std::fmt;

use serde_json::Value;

use super::{Action, Kind, Plan, ResourceChange};

/// Longer values are cut.
const LONGEST: usize = 60;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |kinds: &[Kind]| {
            self.changes
                .iter()
                .filter(|change| kinds.contains(&change.kind))
                .count()
        };
        match self.action {
            Action::Nothing => writeln!(f, "{}: no changes", self.stack)?,
            action => writeln!(
                f,
                "{}: {}; {} to add, {} to import, {} to change, {} to replace, {} to remove",
                self.stack,
                verb(action),
                count(&[Kind::Add]),
                count(&[Kind::Import]),
                count(&[Kind::Change]),
                count(&[Kind::Replace, Kind::MayReplace]),
                count(&[Kind::Remove]),
            )?,
        }
        let (retagged, changed): (Vec<_>, Vec<_>) = self.changes.iter().partition(|change| change.tags_only);
        let (iam, other): (Vec<_>, Vec<_>) = changed.into_iter().partition(|change| change.is_iam());
        other.into_iter().try_for_each(|change| show(f, change))?;
        if !retagged.is_empty() {
            writeln!(f, "  ~ tags of {} resources", retagged.len())?;
        }
        if !iam.is_empty() {
            writeln!(f, "permissions:")?;
            iam.into_iter().try_for_each(|change| show(f, change))?;
        }
        if !self.outputs.is_empty() {
            writeln!(f, "outputs:")?;
        }
        self.outputs
            .iter()
            .try_for_each(|output| writeln!(f, "  {} {}", output.kind.sign(), output.name))?;
        self.warnings
            .iter()
            .try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        self.findings
            .iter()
            .try_for_each(|finding| writeln!(f, "problem: {finding}"))?;
        self.refusals
            .iter()
            .try_for_each(|refusal| writeln!(f, "refused: {refusal}"))
    }
}

const fn verb(action: Action) -> &'static str {
    match action {
        Action::Nothing => "keep the stack as it is",
        Action::Create => "create the stack",
        Action::Import => "create the stack and import the existing table",
        Action::Recreate => "delete the stack whose creation failed and create it again",
        Action::Update => "update the stack",
    }
}

fn show(f: &mut fmt::Formatter<'_>, change: &ResourceChange) -> fmt::Result {
    write!(
        f,
        "  {} {} ({})",
        change.kind.sign(),
        change.logical_id,
        change.resource_type
    )?;
    match change.kind {
        Kind::Replace => write!(f, " is replaced")?,
        Kind::MayReplace => write!(f, " may be replaced")?,
        Kind::Remove if change.kept => write!(f, " leaves the stack but is not deleted")?,
        _ => {}
    }
    writeln!(f)?;
    for property in &change.properties {
        let why = if property.replaces { " (replaces)" } else { "" };
        // A reference to a changing resource: the value is known during the update.
        if property.before.is_none() && property.after.is_none() {
            writeln!(
                f,
                "      {}: changes with the resource it refers to{why}",
                property.path
            )?;
            continue;
        }
        let (before, after) = (short(property.before.as_ref()), short(property.after.as_ref()));
        writeln!(f, "      {}: {before} -> {after}{why}", property.path)?;
    }
    Ok(())
}

fn short(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "(none)".to_owned();
    };
    let mut text = value.to_string();
    if let Some((cut, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(cut);
        text.push('…');
    }
    text
}
