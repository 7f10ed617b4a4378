//! A plan as text.

use std::fmt;

use serde_json::Value;

use super::{Action, Kind, Plan, ResourceChange, describe_place};

/// Longer values are cut.
const LONGEST: usize = 60;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heading(f)?;
        let (followers, changed): (Vec<_>, Vec<_>) =
            self.changes.iter().partition(|change| is_follower(change));
        let (retagged, changed): (Vec<_>, Vec<_>) = changed.into_iter().partition(|change| change.tags_only);
        let (iam, other): (Vec<_>, Vec<_>) = changed.into_iter().partition(|change| change.is_iam());
        other.into_iter().try_for_each(|change| show(f, change))?;
        if !retagged.is_empty() {
            writeln!(f, "  ~ tags of {} resources", retagged.len())?;
        }
        if !followers.is_empty() {
            let names: Vec<_> = followers
                .iter()
                .map(|change| change.logical_id.as_str())
                .collect();
            writeln!(
                f,
                "  ~ {} more that refer to a changed resource: {}",
                names.len(),
                names.join(", ")
            )?;
        }
        if !iam.is_empty() {
            writeln!(f, "permissions:")?;
            iam.into_iter().try_for_each(|change| show(f, change))?;
        }
        self.tags(f)?;
        self.outputs(f)?;
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

impl Plan {
    /// The first line: where the stack is, what happens to it, and how many resources change.
    fn heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.stack)?;
        if let Some(region) = &self.region {
            write!(f, " ({})", describe_place(self.account.as_deref(), region))?;
        }
        if self.action == Action::Nothing {
            return writeln!(f, ": no changes");
        }
        let counts = [
            (Kind::Add, "to add"),
            (Kind::Import, "to import"),
            (Kind::Change, "to change"),
            (Kind::Replace, "to replace"),
            (Kind::MayReplace, "may be replaced"),
            (Kind::Remove, "to remove"),
        ];
        let counted = counts.iter().filter_map(|(kind, words)| {
            let changes = self.changes.iter().filter(|change| !is_follower(change));
            let count = changes.filter(|change| change.kind == *kind).count();
            (count > 0).then(|| format!("{count} {words}"))
        });
        let counted: Vec<_> = counted.collect();
        let counted = match (counted.is_empty(), self.tag_changes.is_empty()) {
            (false, _) => counted.join(", "),
            (true, false) => "tags of its resources".to_owned(),
            (true, true) => "no resource changes".to_owned(),
        };
        writeln!(f, ": {}; {counted}", verb(self.action))
    }

    fn tags(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.tag_changes.is_empty() {
            writeln!(f, "tags:")?;
        }
        self.tag_changes
            .iter()
            .try_for_each(|tag| match (&tag.before, &tag.after) {
                (Some(before), Some(after)) => writeln!(f, "  ~ {}: {before:?} -> {after:?}", tag.key),
                (None, Some(after)) => writeln!(f, "  + {}: {after:?}", tag.key),
                (before, None) => writeln!(f, "  - {}: {:?}", tag.key, before.as_deref().unwrap_or_default()),
            })
    }

    /// A line for each kind of change. A new stack has all its outputs, so they are only counted.
    fn outputs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.outputs.is_empty() {
            return Ok(());
        }
        if matches!(self.action, Action::Create | Action::Import | Action::Recreate) {
            return writeln!(f, "outputs: {} to add", self.outputs.len());
        }
        writeln!(f, "outputs:")?;
        for kind in [Kind::Add, Kind::Change, Kind::Remove] {
            let changed = self.outputs.iter().filter(|output| output.kind == kind);
            let names: Vec<_> = changed.map(|output| output.name.as_str()).collect();
            if !names.is_empty() {
                writeln!(f, "  {} {}", kind.sign(), names.join(", "))?;
            }
        }
        Ok(())
    }
}

/// Whether a change is shown in one line with others: it stays in place and only refers to a resource that changes.
fn is_follower(change: &ResourceChange) -> bool {
    change.follows && change.kind == Kind::Change
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
        // A reference to a changing resource, whose value is known during the update, or tags of the stack.
        if property.before.is_none() && property.after.is_none() {
            let cause = match property.path.as_str() {
                "Tags" => "change with the tags of the stack",
                _ => "changes with the resource it refers to",
            };
            writeln!(f, "      {}: {cause}{why}", property.path)?;
            continue;
        }
        if change.kind == Kind::Add || change.kind == Kind::Import {
            if property.path != "Tags" {
                writeln!(f, "      {}: {}", property.path, short(property.after.as_ref()))?;
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use serde_json::json;
    use zae_limiter_template::Template;

    use super::super::{OutputChange, PropertyChange, TagChange, compare};
    use super::*;
    use crate::code::Loaded;
    use crate::desired::Desired;

    fn plan(action: Action, template: &Value) -> Plan {
        let template = Template::parse(&template.to_string()).unwrap();
        let desired = Desired::new(&template, &BTreeMap::new()).unwrap();
        Plan::new("demo", action, None, &desired, &Loaded::default())
    }

    fn change(id: &str, kind: Kind, follows: bool) -> ResourceChange {
        ResourceChange {
            logical_id: id.to_owned(),
            resource_type: "T".to_owned(),
            physical_id: None,
            kind,
            kept: false,
            tags_only: false,
            follows,
            properties: vec![PropertyChange {
                path: "P".to_owned(),
                before: (!follows).then(|| json!(1)),
                after: (!follows).then(|| json!(2)),
                replaces: false,
            }],
        }
    }

    #[test]
    fn sure_and_possible_replacements_are_counted_apart_and_followers_folded() {
        let mut plan = plan(Action::Update, &json!({ "Resources": {} }));
        plan.region = Some("eu-west-1".to_owned());
        plan.changes = vec![
            change("A", Kind::Change, false),
            change("B", Kind::MayReplace, true),
            change("C", Kind::Replace, false),
            change("D", Kind::Change, true),
            change("E", Kind::Change, true),
        ];
        assert_eq!(
            plan.to_string(),
            "demo (region eu-west-1): update the stack; 1 to change, 1 to replace, 1 may be replaced\n  \
             ~ A (T)\n      P: 1 -> 2\n  \
             ! B (T) may be replaced\n      P: changes with the resource it refers to\n  \
             ! C (T) is replaced\n      P: 1 -> 2\n  \
             ~ 2 more that refer to a changed resource: D, E\n"
        );
    }

    #[test]
    fn resources_that_get_other_tags_are_counted_and_refer_to_nothing() {
        let mut plan = plan(Action::Update, &json!({ "Resources": {} }));
        let tags = |id: &str, tags_only: bool| ResourceChange {
            tags_only,
            properties: vec![PropertyChange {
                path: "Tags".to_owned(),
                before: None,
                after: None,
                replaces: false,
            }],
            ..change(id, Kind::Change, false)
        };
        plan.changes = vec![tags("A", true), tags("B", true), tags("C", false)];
        assert_eq!(
            plan.to_string(),
            "demo: update the stack; 3 to change\n  ~ C (T)\n      Tags: change with the tags of the stack\n  \
             ~ tags of 2 resources\n"
        );
    }

    #[test]
    fn a_new_resource_shows_its_properties() {
        let template = json!({ "Resources": { "Q": { "Type": "AWS::SQS::Queue",
            "Properties": { "QueueName": "demo", "Tags": [] } } } });
        let mut plan = plan(Action::Create, &template);
        plan.changes = compare::resources(None, &Template::parse(&template.to_string()).unwrap());
        assert_eq!(
            plan.to_string(),
            "demo: create the stack; 1 to add\n  + Q (AWS::SQS::Queue)\n      QueueName: \"demo\"\n"
        );
    }

    #[test]
    fn tags_have_their_values_and_outputs_a_line_for_each_kind() {
        let mut plan = plan(Action::Update, &json!({ "Resources": {} }));
        let tag = |key: &str, before: Option<&str>, after: Option<&str>| TagChange {
            key: key.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        };
        plan.tag_changes = vec![
            tag("a", None, Some("1")),
            tag("b", Some("1"), Some("2")),
            tag("c", Some("1"), None),
        ];
        let output = |name: &str, kind: Kind| OutputChange {
            name: name.to_owned(),
            kind,
            export: None,
        };
        plan.outputs = vec![
            output("A", Kind::Remove),
            output("B", Kind::Add),
            output("C", Kind::Remove),
        ];
        assert_eq!(
            plan.to_string(),
            "demo: update the stack; tags of its resources\n\
             tags:\n  + a: \"1\"\n  ~ b: \"1\" -> \"2\"\n  - c: \"1\"\n\
             outputs:\n  + B\n  - A, C\n"
        );
    }
}
