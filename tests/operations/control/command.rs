//! `weir control` and `weir reload` against a real process.

use std::fs;

use crate::support::command::{Serve, text, weir_command};
use crate::support::control::Node;
use crate::support::{SOON, scratch};

struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a command against a server.
fn weir_at(server: &str, args: &[&str]) -> Done {
    let output = weir_command(args).env("WEIR_SERVER", server).output().unwrap();
    Done { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[test]
fn the_recipes_of_the_documentation_work_as_written() {
    let folder = scratch::dir("control-");
    let yaml = "
server: { control: true, audit_file: audit.jsonl }
control: { cache_file: entries }
strategies: { api: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 10/s } }] } }
resources: [{ match: 'api/*', strategy: api }]
";
    let file = scratch::file(folder.path(), "weir.yaml", yaml);
    let server = Serve::start(&["--config", &file.display().to_string()]);
    let address = server.server.clone();
    let documentation = include_str!("../../../docs/control.md");
    let commands: Vec<&str> =
        documentation.lines().filter(|line| line.starts_with("weir control ")).collect();
    assert_eq!(commands.len(), 7, "{commands:?}");
    let changes = documentation.split("<<'END'\n").nth(1).and_then(|rest| rest.split("END\n").next());
    let many = scratch::file(folder.path(), "changes.jsonl", changes.unwrap());
    let many = many.display().to_string();
    for command in commands {
        let words = shell_words(command);
        let words = words[1..].iter().map(|word| if word == "changes.jsonl" { &many } else { word });
        let words: Vec<&str> = words.map(String::as_str).collect();
        let done = weir_at(&address, &words);
        assert_eq!(done.code, Some(0), "{command}: {}{}", done.stdout, done.stderr);
        let dry = command.contains("--dry-run");
        assert_eq!(done.stdout.contains("dry run"), dry, "{command}: {}", done.stdout);
    }
    let list = weir_at(&address, &["control", "list"]);
    assert!(list.stdout.contains("override of api for bob on api/orders: each 50/1s"), "{}", list.stdout);
    assert!(list.stdout.contains("because: launch day") && list.stdout.contains("until "), "{}", list.stdout);
    let history = weir_at(&address, &["control", "history"]);
    let verbs: Vec<&str> = history.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(verbs.len(), 7, "{}", history.stdout);
    assert!(
        verbs[2].starts_with("deleted strategy api") && verbs[6].starts_with("put override"),
        "{verbs:?}"
    );
    let reload = weir_at(&address, &["reload"]);
    assert_eq!(
        (reload.code, reload.stdout.contains("all files are read")),
        (Some(0), true),
        "{}",
        reload.stdout
    );
    fs::write(&file, "nobody: 1\n").unwrap();
    let reload = weir_at(&address, &["reload"]);
    assert_eq!(
        (reload.code, reload.stdout.contains("nobody: unknown key")),
        (Some(1), true),
        "{}",
        reload.stdout
    );
    server.stop("TERM");
}

#[test]
fn without_the_service_both_commands_say_what_to_set() {
    let server = Serve::start(&[]);
    let address = server.server.clone();
    let reload = weir_at(&address, &["reload"]);
    assert_eq!((reload.code, reload.stderr.contains("SIGHUP")), (Some(2), true), "{}", reload.stderr);
    let list = weir_at(&address, &["control", "list"]);
    assert_eq!((list.code, list.stderr.contains("server.control: true")), (Some(2), true), "{}", list.stderr);
    server.stop("TERM");
}

/// Words as a shell splits them, with single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut open) = (Vec::new(), String::new(), false, false);
    for letter in line.chars() {
        match letter {
            '\'' => (quoted, open) = (!quoted, true),
            ' ' if !quoted => {
                if open {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            letter => {
                word.push(letter);
                open = true;
            }
        }
    }
    if open {
        words.push(word);
    }
    words
}

#[test]
fn bans_are_listed_and_lifted_by_hand() {
    let folder = scratch::dir("control-");
    let yaml = "
server: { control: true, audit_file: audit.jsonl }
control: { cache_file: entries }
strategies:
  api:
    limits:
      - name: each
        per: [resource, consumer]
        token_bucket: { rate: 1/h }
        ban: { after: 1, within: 1m, for: 10m }
resources: [{ match: 'api/*', strategy: api }]
";
    let file = scratch::file(folder.path(), "weir.yaml", yaml);
    let server = Serve::start(&["--config", &file.display().to_string()]);
    let weir = |args: &[&str]| weir_at(&server.server, args);
    let none = weir(&["bans"]);
    assert_eq!((none.code, &*none.stdout), (Some(0), "nobody is banned\n"), "{}", none.stderr);
    for resource in ["api/a", "api/b"] {
        assert_eq!(weir(&["allow", resource, "bob"]).code, Some(0));
        assert_eq!(weir(&["allow", resource, "bob"]).code, Some(1));
    }
    crate::support::eventually(SOON, "both bans are in force", || {
        weir(&["bans"]).stdout.lines().count() == 2
    });
    let list = weir(&["bans", "--consumer", "bob", "--strategy", "api"]).stdout;
    assert!(list.starts_with("bob by api/each on api/a, until 20"), "{list}");
    assert!(weir(&["bans", "--consumer", "eve"]).stdout.contains("nobody"));
    let json = weir(&["bans", "--output", "json"]).stdout;
    assert!(json.contains(r#""total": 2"#) && json.contains(r#""resource": "api/b""#), "{json}");
    let denied = weir(&["allow", "api/a", "bob"]);
    assert!(denied.stdout.contains("banned"), "{}", denied.stdout);
    let dry = weir(&["bans", "lift", "bob", "--resource", "api/a", "--dry-run"]);
    assert!(
        dry.stdout.starts_with("dry run: it would be lifted: bob by api/each on api/a"),
        "{}",
        dry.stdout
    );
    let lifted = weir(&["bans", "lift", "bob", "--resource", "api/a", "--reason", "a mistake"]);
    assert_eq!((lifted.code, lifted.stdout.lines().count()), (Some(0), 1), "{}", lifted.stderr);
    assert!(weir(&["bans", "lift", "bob"]).stdout.starts_with("lifted: bob by api/each on api/b"));
    let none = weir(&["bans", "lift", "bob"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("bob is not banned"), "{}", none.stderr);
    assert!(fs::read_to_string(folder.path().join("audit.jsonl")).unwrap().contains("a mistake"));
    let explained = crate::support::command::weir_command(&[
        "explain",
        "api/a",
        "bob",
        "--config",
        &file.display().to_string(),
    ]);
    let explained = text(&{ explained }.output().unwrap().stdout);
    assert!(explained.contains("ban    for 600s after 1 denials within 60s"), "{explained}");
}

/// A pattern that fits nearly everybody is a slip more often than not.
#[test]
fn a_pattern_that_fits_nearly_everybody_wants_yes() {
    let node = Node::start();
    let server = format!("http://{}", node.server.grpc);
    for pattern in ["*", "a*", "ab*"] {
        let refused = weir_at(&server, &["control", "put-access", "deny", pattern]);
        assert!(refused.code == Some(2) && refused.stderr.contains("--yes puts it"), "{}", refused.stderr);
        let dry = weir_at(&server, &["control", "put-access", "deny", pattern, "--dry-run"]);
        assert_eq!(dry.code, Some(0), "{}", dry.stderr);
        let done = weir_at(&server, &["control", "put-access", "deny", pattern, "--yes"]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    }
    for name in ["abc*", "ab"] {
        assert_eq!(weir_at(&server, &["control", "put-access", "deny", name]).code, Some(0), "{name}");
    }
}

/// A text of others stays on its line, and no terminal obeys it.
#[test]
fn lists_and_histories_are_clean() {
    let node = Node::start();
    let server = format!("http://{}", node.server.grpc);
    let reason = "fine\ndeny everybody under all strategies\u{202e}x\u{2028}";
    let done = weir_at(&server, &["control", "put-access", "deny", "bot\n\u{202e}7", "--reason", reason]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    for command in ["list", "history"] {
        let shown = weir_at(&server, &["control", command]).stdout;
        assert!(!shown.contains(['\u{202e}', '\u{2028}']), "{shown}");
        assert!(!shown.lines().any(|line| line.starts_with("deny everybody")), "{shown}");
        assert!(shown.contains("bot\\n\\u202e7") && shown.contains("fine\\ndeny everybody"), "{shown}");
    }
    let audit = fs::read_to_string(node.path("audit.jsonl")).unwrap();
    assert!(!audit.contains(['\u{202e}', '\u{2028}']) && audit.contains("\\u202e"), "{audit}");
}
