//! docs/recipes.md: its files are those of `docs/examples/`, and its commands print what stands there.

use weir_config::Config;

use crate::support::command::{text, weir_command};
use crate::support::server::Server;

const TEXT: &str = include_str!("../../../docs/recipes.md");
const SERVE: &str = "./target/release/weir serve --config ";

#[test]
fn recipes_are_what_is_run() {
    let recipes: Vec<&str> = TEXT.split("\n## ").skip(1).collect();
    assert_eq!(recipes.len(), 12);
    for recipe in recipes {
        let file = block(recipe, "sh").trim().strip_prefix(SERVE).expect("how to start it");
        let root = env!("CARGO_MANIFEST_DIR");
        let config = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        assert_eq!(block(recipe, "yaml"), config, "{file}");
        let printed = printed(&config, block(recipe, "console"), "./target/release/weir ");
        assert_eq!(without_times(&printed), without_times(block(recipe, "console")), "{file}");
    }
}

/// Returns the output of the commands of `console`, answered by a service with this configuration. Each command
/// begins with `program`.
pub(super) fn printed(config: &str, console: &str, program: &str) -> String {
    let config = Config::parse(config, "weir.yaml", &weir::features::overrides()).unwrap();
    // Its clock stands still, because some answers change within half a second.
    let serve = Server::start(config);
    let address = format!("http://{}", serve.grpc);
    let mut printed = String::new();
    for command in console.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let words = command.strip_prefix(program).expect("a command of ours");
        let words: Vec<&str> = words.split(' ').collect();
        let mut weir = weir_command(&words);
        let out = weir.current_dir(env!("CARGO_MANIFEST_DIR")).env("WEIR_SERVER", &address).output().unwrap();
        assert_eq!(text(&out.stderr), "", "{command}");
        printed += &format!("$ {command}\n{}", text(&out.stdout));
    }
    printed
}

/// The content of the first block of its kind.
pub(super) fn block<'a>(recipe: &'a str, kind: &str) -> &'a str {
    let (_, rest) =
        recipe.split_once(&format!("```{kind}\n")).unwrap_or_else(|| panic!("no {kind}: {recipe}"));
    rest.split("```").next().unwrap()
}

/// Removes durations, which depend on the time of the call.
pub(super) fn without_times(text: &str) -> String {
    let is_time = |word: &str| {
        let word = word.trim_end_matches(',');
        word.starts_with(|first: char| first.is_ascii_digit()) && word.ends_with(['s', 'm', 'h', 'd'])
    };
    let lines = text.lines().map(|line| {
        let line = line.split_once("Try again in").map_or(line, |(before, _)| before);
        let mut words: Vec<&str> =
            line.split(' ').map(|word| if is_time(word) { "…" } else { word }).collect();
        // Some times have two units.
        words.dedup_by(|next, last| *next == "…" && *last == "…");
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}
