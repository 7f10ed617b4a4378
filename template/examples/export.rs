//! Writes the exported files for the default options: the templates into the folder given or into this crate's `rendered`,
//! and without a folder also those that the Terraform module and the book have.
//!
//! `cargo run -p zae-limiter-template --example export [DIR]`

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use zae_limiter_template::{StackOptions, export};

fn main() -> Result<(), Box<dyn Error>> {
    let given = env::args_os().nth(1).map(PathBuf::from);
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let options = StackOptions::default();
    if given.is_none() {
        let template = export::cloudformation(&options)?.to_json();
        fs::write(
            root.join("terraform/modules/cloudformation/template.json"),
            template,
        )?;
        fs::write(root.join("docs/operate/grafana.json"), export::grafana())?;
    }
    let folder = given.unwrap_or_else(|| root.join("template/rendered"));
    for file in export::files(&options)? {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, file.contents)?;
        println!("{}", path.display());
    }
    Ok(())
}
