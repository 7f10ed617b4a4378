//! AWS profiles. The SDK treats a profile that does not exist like missing credentials, which hides a typo.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// An error if the profile that is to be used does not exist. A profile from the environment is ignored if there are
/// credentials beside it, as the SDK does.
pub(super) fn check(given: Option<&str>) -> Result<()> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let from_environment = || set("AWS_PROFILE").filter(|_| set("AWS_ACCESS_KEY_ID").is_none());
    let Some(name) = given.map(str::to_owned).or_else(from_environment) else {
        return Ok(());
    };
    let files = [
        file("AWS_CONFIG_FILE", "config"),
        file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ];
    let mut texts = files.iter().flatten().map(std::fs::read_to_string);
    if texts.any(|text| text.is_ok_and(|text| has_profile(&text, &name))) {
        return Ok(());
    }
    let files: Vec<_> = files
        .iter()
        .flatten()
        .map(|file| file.display().to_string())
        .collect();
    Err(Error::usage(format!(
        "AWS profile {name:?} does not exist in {}; check --profile and AWS_PROFILE",
        files.join(" or ")
    )))
}

fn file(variable: &str, name: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = set(variable).map(PathBuf::from);
    own.or_else(|| Some(PathBuf::from(set("HOME")?).join(".aws").join(name)))
}

/// Whether a configuration or credentials file has a section of this profile.
fn has_profile(text: &str, name: &str) -> bool {
    let sections = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('[')?.split_once(']'));
    sections.into_iter().any(|(section, _)| {
        let section = section.trim();
        let section = section.strip_prefix("profile ").unwrap_or(section);
        section.trim().trim_matches('"') == name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_a_section_of_either_file() {
        let config = "[default]\nregion = x\n\n[profile work] # of the team\n[ profile \"my own\" ]\n[sso-session home]\n";
        for name in ["default", "work", "my own"] {
            assert!(has_profile(config, name), "{name}");
        }
        assert!(!has_profile(config, "home") && !has_profile(config, "region"));
        assert!(has_profile("[work]\naws_access_key_id = x\n", "work"));
    }
}
