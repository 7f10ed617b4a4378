//! Writes the exported files for the default options, into the folder given or into this crate's `rendered`.
//!
//! `cargo run -p zae-limiter-template --example export [DIR]`

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use zae_limiter_template::{StackOptions, export};

fn main() -> Result<(), Box<dyn Error>> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("rendered");
    let folder = env::args_os().nth(1).map_or_else(default, PathBuf::from);
    for file in export::files(&StackOptions::default())? {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, file.contents)?;
        println!("{}", path.display());
    }
    Ok(())
}
