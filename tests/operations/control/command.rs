//! `weir control` and `weir reload` against a real process.

use super::*;
use crate::support::command::{Serve, text, weir_command};

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
    let file = folder.path().join("weir.yaml");
    let yaml = "
server: { control: true }
control: { cache_file: entries, audit_file: audit.jsonl }
strategies: { api: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 10/s } }] } }
resources: [{ match: 'api/*', strategy: api }]
";
    fs::write(&file, yaml).unwrap();
    let server = Serve::start(&["--config", &file.display().to_string()]);
    let address = server.server.clone();
    let documentation = include_str!("../../../docs/control.md");
    let commands: Vec<&str> =
        documentation.lines().filter(|line| line.starts_with("weir control ")).collect();
    assert_eq!(commands.len(), 6, "{commands:?}");
    for command in commands {
        let words = shell_words(command);
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
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
    assert_eq!(verbs.len(), 5, "{}", history.stdout);
    assert!(
        verbs[0].starts_with("deleted strategy api") && verbs[4].starts_with("put override"),
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
    let file = folder.path().join("weir.yaml");
    let yaml = "
server: { control: true }
control: { cache_file: entries, audit_file: audit.jsonl }
strategies:
  api:
    limits:
      - name: each
        per: [resource, consumer]
        token_bucket: { rate: 1/h }
        ban: { after: 1, within: 1m, for: 10m }
resources: [{ match: 'api/*', strategy: api }]
";
    fs::write(&file, yaml).unwrap();
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
