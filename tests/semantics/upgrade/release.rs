//! A release as it is kept in a folder: the parts of its scripts, and what it sent, was answered and left in Redis.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use redis::{Connection, Value};
use serde_json::{Value as Json, json};

use super::bytes::{bytes_of, json_of};
use super::record::SentCall;

/// The scripts of a release, and its stories by name.
pub(super) struct Release {
    /// By their digests.
    pub(super) scripts: BTreeMap<String, String>,
    pub(super) stories: BTreeMap<String, Json>,
}

/// The folder of a release.
pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/semantics/upgrade").join(name)
}

impl Release {
    pub(super) fn read(folder: &Path) -> Self {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let list: BTreeMap<String, Vec<String>> = serde_json::from_str(&read("scripts.json")).unwrap();
        let joined = |(sha, parts): (String, Vec<String>)| {
            let texts: Vec<String> = parts.iter().map(|part| read(part)).collect();
            (sha, texts.join("\n"))
        };
        let stories: Vec<Json> = serde_json::from_str(&read("stories.json")).unwrap();
        let stories = stories.into_iter().map(|story| (story["name"].as_str().unwrap().to_owned(), story));
        Self { scripts: list.into_iter().map(joined).collect(), stories: stories.collect() }
    }

    /// Makes a server know its scripts.
    pub(super) fn load(&self, connection: &mut Connection) {
        for (sha, text) in &self.scripts {
            let loaded: String = redis::cmd("SCRIPT").arg("LOAD").arg(text).query(connection).unwrap();
            assert_eq!(loaded, *sha, "the parts of a script have changed");
        }
    }
}

/// A call as it is kept: the script, the keys, the arguments.
pub(super) fn json_of_call(call: &SentCall) -> Json {
    let (keys, args) = call.args.split_at(call.keys);
    let all = |args: &[Vec<u8>]| args.iter().map(|arg| json_of(arg)).collect::<Vec<_>>();
    json!({ "script": call.sha, "keys": all(keys), "args": all(args) })
}

/// Makes a call that was kept, and returns the reply.
pub(super) fn make_call(connection: &mut Connection, call: &Json) -> Json {
    let (keys, args) = (call["keys"].as_array().unwrap(), call["args"].as_array().unwrap());
    let mut command = redis::cmd("EVALSHA");
    command.arg(call["script"].as_str().unwrap()).arg(keys.len());
    for arg in keys.iter().chain(args) {
        command.arg(bytes_of(arg));
    }
    match command.query(connection) {
        Ok(reply) => json_of_reply(&reply),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn json_of_reply(reply: &Value) -> Json {
    match reply {
        Value::BulkString(bytes) => json_of(bytes),
        Value::Array(parts) => json!({ "parts": parts.iter().map(json_of_reply).collect::<Vec<_>>() }),
        Value::Int(number) => json!({ "number": number }),
        Value::Nil => Json::Null,
        other => panic!("a script replies {other:?}"),
    }
}

/// Writes a release into a folder. `texts` are the scripts by their digests, and `files` those that they are joined from.
pub(super) fn write(
    folder: &Path,
    texts: &BTreeMap<String, String>,
    files: &[(String, String)],
    stories: &[Json],
) {
    let mut list = String::new();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    };
    for (sha, text) in texts {
        let mut parts = Vec::new();
        for part in split(text, files) {
            let known = files.iter().find(|(_, file)| file == part).map(|(name, _)| name.clone());
            let name = match part {
                "" => "short/none.lua".to_owned(),
                _ => known.unwrap_or_else(|| format!("short/{}-{}.lua", &sha[..8], parts.len())),
            };
            write(&name, part);
            parts.push(name);
        }
        let comma = if list.is_empty() { "{" } else { "," };
        write!(list, "{comma}\n{}: {}", json!(sha), json!(parts)).unwrap();
    }
    write("scripts.json", &format!("{list}\n}}\n"));
    let mut text = String::from("[");
    for (place, story) in stories.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let steps: Vec<String> = story["steps"].as_array().unwrap().iter().map(Json::to_string).collect();
        let keys =
            |name: &str| story[name].as_array().unwrap().iter().map(Json::to_string).collect::<Vec<_>>();
        write!(
            text,
            "{comma}\n{{ \"name\": {}, \"steps\": [\n{}\n],\n\"states\": [\n{}\n],\n\"end\": [\n{}\n] }}",
            story["name"],
            steps.join(",\n"),
            keys("states").join(",\n"),
            keys("end").join(",\n"),
        )
        .unwrap();
    }
    write("stories.json", &format!("{text}\n]\n"));
}

/// The parts of a script, which a line break joins: files as far as there are such, and what is between them.
fn split<'t>(text: &'t str, files: &[(String, String)]) -> Vec<&'t str> {
    let file_at = |at: usize| {
        let fits = |file: &&(String, String)| {
            let rest = text[at..].strip_prefix(file.1.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
        };
        files.iter().filter(fits).map(|(_, file)| file.len()).max()
    };
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let begins = |next: &usize| text[..*next].ends_with('\n') && file_at(*next).is_some();
        let length = file_at(at).unwrap_or_else(|| {
            let end = (at + 1..text.len()).filter(|next| text.is_char_boundary(*next)).find(begins);
            end.map_or(text.len(), |end| end - 1) - at
        });
        parts.push(&text[at..at + length]);
        at += length + 1;
    }
    parts
}
