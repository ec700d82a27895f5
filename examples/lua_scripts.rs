//! Writes scripts with every part of `lua/` into a folder: `make lint` checks them with luacheck.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

use std::path::PathBuf;
use std::process::ExitCode;

use weir::features::FEATURES;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: lua_scripts FOLDER");
        return ExitCode::from(2);
    };
    match write_all(&folder) {
        Ok(count) => {
            println!("{count} scripts in {}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write scripts to {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write_all(folder: &std::path::Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut count = 0;
    let specs: Vec<_> =
        FEATURES.iter().flat_map(|feature| feature.scripts()).map(|(spec, _)| *spec).collect();
    for (name, text) in weir_store::redis::scripts_to_check(&specs) {
        std::fs::write(folder.join(format!("{name}.lua")), text)?;
        count += 1;
    }
    Ok(count)
}
