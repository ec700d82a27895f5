//! `weir token new`: makes a token and its line for `server.identity.tokens_file`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use weir_config::is_token_name;
use weir_node::access::new_token;

use super::{fail, print, printed};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir token new shop                                the token on stdout, its line on stderr
  weir token new shop > shop.token 2>> tokens        a file for the client, and a line for the server";

#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TokenCommand {
    /// Create a token of 32 random bytes; it is printed once, and stored nowhere
    New {
        /// Name of the holder: 1 to 64 of a-z, 0-9, `.`, `_` and `-`; callers are `token:NAME` in `authorize`
        name: String,
    },
}

pub(crate) fn run(args: &TokenArgs) -> ExitCode {
    let TokenCommand::New { name } = &args.command;
    if !is_token_name(name) {
        return fail("the name must be 1 to 64 of a-z, 0-9, `.`, `_` and `-`", 2);
    }
    let Some((token, line)) = new_token(name) else {
        return fail("the system has no random bytes", 1);
    };
    printed(print(&format!("{token}\n")).and_then(|()| writeln!(io::stderr(), "{line}")))
}
