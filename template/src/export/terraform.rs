//! The Terraform modules: the files of the folder `terraform`.

use serde_json::Value;

use super::File;
use crate::options::StackOptions;
use crate::{Error, Template};

macro_rules! files {
    ($($path:literal,)+) => {
        &[$(($path, include_str!(concat!("../../terraform/", $path)))),+]
    };
}

/// Every file but the wrapper's template, which depends on the options.
const FILES: &[(&str, &str)] = files![
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "aggregator.tf",
    "alarms.tf",
    "archive.tf",
    "archiver.tf",
    "dashboard.tf",
    "examples/basic/README.md",
    "examples/basic/main.tf",
    "examples/basic/outputs.tf",
    "examples/basic/variables.tf",
    "examples/basic/versions.tf",
    "examples/cloudformation/README.md",
    "examples/cloudformation/main.tf",
    "examples/cloudformation/outputs.tf",
    "examples/cloudformation/variables.tf",
    "examples/cloudformation/versions.tf",
    "examples/complete/README.md",
    "examples/complete/main.tf",
    "examples/complete/outputs.tf",
    "examples/complete/variables.tf",
    "examples/complete/versions.tf",
    "examples/existing-table/README.md",
    "examples/existing-table/main.tf",
    "examples/existing-table/outputs.tf",
    "examples/existing-table/variables.tf",
    "examples/existing-table/versions.tf",
    "examples/limits/README.md",
    "examples/limits/limits.yaml",
    "examples/limits/main.tf",
    "examples/limits/outputs.tf",
    "examples/limits/variables.tf",
    "examples/limits/versions.tf",
    "iam.tf",
    "main.tf",
    "modules/cloudformation/README.md",
    "modules/cloudformation/main.tf",
    "modules/cloudformation/outputs.tf",
    "modules/cloudformation/variables.tf",
    "modules/cloudformation/versions.tf",
    "modules/limits/README.md",
    "modules/limits/alarms.tf",
    "modules/limits/main.tf",
    "modules/limits/outputs.tf",
    "modules/limits/tests/limits.tftest.hcl",
    "modules/limits/variables.tf",
    "modules/limits/versions.tf",
    "outputs.tf",
    "table.tf",
    "tests/module.tftest.hcl",
    "variables.tf",
    "versions.tf",
];

const WRAPPER: &str = "modules/cloudformation/";
const TEMPLATE: &str = "template.json";

/// The module of native resources, with the modules in it. Options that are not the default are values of its variables.
pub(super) fn module(options: &StackOptions, template: &Template) -> Result<Vec<File>, Error> {
    let mut files: Vec<_> = FILES
        .iter()
        .map(|(path, contents)| File::new(path, *contents))
        .collect();
    files.push(File::new(&format!("{WRAPPER}{TEMPLATE}"), template.to_json()));
    let values = values(options)?;
    if values.as_object().is_some_and(|values| !values.is_empty()) {
        files.push(File::new("zae-limiter.auto.tfvars.json", format!("{values:#}\n")));
    }
    Ok(files)
}

/// The module around the CloudFormation template.
pub(super) fn wrapper(template: &Template) -> Vec<File> {
    let own = FILES.iter().filter_map(|(path, contents)| {
        let path = path.strip_prefix(WRAPPER)?;
        Some(File::new(path, *contents))
    });
    own.chain([File::new(TEMPLATE, template.to_json())]).collect()
}

/// The options that are not the default, as the module's variables take them.
fn values(options: &StackOptions) -> Result<Value, Error> {
    let invalid = |source| Error::OptionsValue { source };
    let mut values = serde_json::to_value(options.to_builder()).map_err(invalid)?;
    let defaults = serde_json::to_value(StackOptions::default().to_builder()).map_err(invalid)?;
    if let Some(values) = values.as_object_mut() {
        values.retain(|name, value| defaults.get(name) != Some(value));
        if values.contains_key("snapshot_windows") {
            let windows = options.snapshot_windows().iter().map(ToString::to_string);
            values.insert("snapshot_windows".to_owned(), windows.collect());
        }
    }
    Ok(values)
}
