//! Writes every stack that the tests look at, and the deployer's policy as a template, for linters.
//!
//! `cargo run -p zae-limiter-template --example variants -- DIR`

#![allow(clippy::unwrap_used)]

#[path = "../tests/variants/mod.rs"]
mod variants;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("name the folder to write to")?);
    fs::create_dir_all(&folder)?;
    for (name, template) in variants::all() {
        fs::write(folder.join(format!("{name}.json")), template.to_json())?;
        fs::write(folder.join(format!("{name}.yaml")), template.to_yaml())?;
    }
    fs::write(
        folder.join("deployer.json"),
        variants::deployer_template().to_string(),
    )?;
    Ok(())
}
