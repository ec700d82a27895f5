//! Writes scripts with every part of `lua/` into a folder: `make lint` checks them with luacheck.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

use std::path::PathBuf;
use std::process::ExitCode;

use weir_store::approximate::APPROXIMATE;
use weir_store::control::CONTROL;
use weir_store::redis::{LEASES, QUEUES};
use weir_store::scripts::ScriptSpec;

/// The scripts of features.
static FEATURES: [&ScriptSpec; 4] = [&LEASES, &QUEUES, &CONTROL, &APPROXIMATE];

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
    for (name, text) in weir_store::redis::scripts_to_check(&FEATURES) {
        std::fs::write(folder.join(format!("{name}.lua")), text)?;
        count += 1;
    }
    Ok(count)
}
