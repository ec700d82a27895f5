//! Expands `${VAR}` and `${file:PATH}` in the values of a configuration. It works on the parsed tree, and on scalars
//! alone, so that a value cannot add keys. `$${` stands for `${`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::errors::{MistakeReport, Position};
use super::expanded_from::{ExpandedFrom, VariableLookup};
use super::fields::{MAX_PATH, join};
use super::files::MAX_FILE;
use super::unreadable::unreadable;
use super::values::quote;
use super::watched_files::FilesSnapshot;
use super::yaml_node::{Content, YamlNode};

/// Maximum size of a file that a value names, in bytes.
pub const MAX_VALUE_FILE: usize = 64 << 10;

/// Maximum number of files that the values of a configuration name.
pub const MAX_VALUE_FILES: usize = 1000;

/// The files that values name.
#[derive(Debug, Default)]
pub(super) struct ValueFiles {
    /// Their paths, in the order of the tree.
    pub(super) paths: Vec<PathBuf>,
    /// The files as they were right before they were read.
    pub(super) files: FilesSnapshot,
}

/// Expands the scalars of a tree, and records the files that they name.
pub(super) struct Expander<'a> {
    lookup: Option<VariableLookup>,
    report: &'a mut MistakeReport,
    known: HashMap<PathBuf, Result<String, String>>,
    named: ValueFiles,
    /// Bytes that expansions have made.
    made: usize,
}

/// A step of the path to a node.
struct PathStep<'a> {
    parent: Option<&'a PathStep<'a>>,
    key: Option<&'a str>,
    index: usize,
}

impl PathStep<'_> {
    fn path(&self) -> String {
        let before = self.parent.map(Self::path).unwrap_or_default();
        match self.key {
            Some(key) => join(&before, key),
            None => format!("{before}[{}]", self.index),
        }
    }
}

impl<'a> Expander<'a> {
    pub(super) fn new(lookup: Option<VariableLookup>, report: &'a mut MistakeReport) -> Self {
        Self { lookup, report, known: HashMap::new(), named: ValueFiles::default(), made: 0 }
    }

    /// Expands every value below `node`. Keys stay as they are.
    pub(super) fn all(mut self, node: &mut YamlNode) -> ValueFiles {
        self.node(node, None);
        self.named
    }

    fn node(&mut self, node: &mut YamlNode, here: Option<&PathStep<'_>>) {
        match &mut node.content {
            Content::Scalar { text, .. } if text.contains("${") => {
                if let Some(content) = self.scalar(text, node.at, here) {
                    node.content = content;
                }
            }
            Content::Scalar { .. } | Content::Empty | Content::Refused => {}
            Content::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.node(item, Some(&PathStep { parent: here, key: None, index }));
                }
            }
            Content::Map(entries) => {
                for (key, value) in entries {
                    let key = Some(key.text().unwrap_or_default());
                    self.node(value, Some(&PathStep { parent: here, key, index: 0 }));
                }
            }
        }
    }

    /// Returns the expanded scalar, or a refused one whose mistakes are reported. A value that a reference gave is no
    /// text for its quotes: flow mappings need them.
    fn scalar(&mut self, text: &str, at: Position, here: Option<&PathStep<'_>>) -> Option<Content> {
        let found = Self::pieces(text).and_then(|pieces| self.expanded(&pieces, at));
        match found {
            Ok((expanded, None)) => Some(Content::Scalar { text: expanded, quoted: true }),
            Ok((text, Some(from))) => {
                self.report.expanded(at, from);
                Some(Content::Scalar { text, quoted: false })
            }
            Err(reason) => {
                let path = here.map(PathStep::path).unwrap_or_default();
                self.report.at(at, &path, reason);
                Some(Content::Refused)
            }
        }
    }

    /// Splits a text into literal pieces and references.
    fn pieces(text: &str) -> Result<Vec<TextPiece<'_>>, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            let after = from.get(2..).unwrap_or_default();
            if let Some(before) = before.strip_suffix('$') {
                pieces.extend([TextPiece::Literal(before), TextPiece::Literal("${")]);
                rest = after;
                continue;
            }
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("{} has no closing brace; `$${{` is a literal `${{`", quote(from)))?;
            pieces.extend([TextPiece::Literal(before), reference(name)?]);
            rest = after;
        }
        pieces.push(TextPiece::Literal(rest));
        Ok(pieces)
    }

    fn expanded(
        &mut self,
        pieces: &[TextPiece<'_>],
        at: Position,
    ) -> Result<(String, Option<ExpandedFrom>), String> {
        let (mut text, mut written) = (String::new(), String::new());
        let (mut variables, mut files) = (false, false);
        for piece in pieces {
            match piece {
                TextPiece::Literal(literal) => {
                    text += literal;
                    written += literal;
                }
                TextPiece::Variable(name) => {
                    variables = true;
                    text += &self.variable(name)?;
                    written += &format!("${{{name}}}");
                }
                TextPiece::File(path) => {
                    files = true;
                    text += self.file(path, at)?;
                    written += &format!("${{file:{path}}}");
                }
            }
            if self.made + text.len() > MAX_FILE {
                return Err(format!(
                    "makes the expanded configuration larger than {MAX_FILE} bytes (16 MiB)"
                ));
            }
        }
        self.made += text.len();
        Ok((
            text,
            match (files, variables) {
                (true, _) => Some(ExpandedFrom::Files(quote(&written))),
                (false, true) => Some(ExpandedFrom::Variables(quote(&written))),
                (false, false) => None,
            },
        ))
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        match self.lookup.and_then(|lookup| lookup(name)).map(OsString::into_string) {
            Some(Ok(value)) => Ok(value),
            Some(Err(_)) => Err(format!("the variable {name} is not UTF-8")),
            None => Err(format!(
                "the variable {name} is not set: begin the command with {name}=VALUE; `$${{` is a literal `${{`"
            )),
        }
    }

    /// Returns what a file says. Each is read once.
    fn file(&mut self, path: &str, at: Position) -> Result<&str, String> {
        let path = self.report.resolve(at, Path::new(path));
        if !self.known.contains_key(&path) {
            if self.named.paths.len() >= MAX_VALUE_FILES {
                return Err(format!(
                    "is one more file: the values of a configuration name at most {MAX_VALUE_FILES}"
                ));
            }
            self.named.files.add(&path);
            self.named.paths.push(path.clone());
            self.known.insert(path.clone(), read(&path));
        }
        match self.known.get(&path) {
            Some(Ok(text)) => Ok(text),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err(String::new()),
        }
    }
}

/// A part of a text.
enum TextPiece<'t> {
    Literal(&'t str),
    Variable(&'t str),
    File(&'t str),
}

/// Reads what stands between `${` and `}`.
fn reference(name: &str) -> Result<TextPiece<'_>, String> {
    if let Some(path) = name.strip_prefix("file:") {
        return match path.len() {
            0 => Err("`${file:}` names no file".to_owned()),
            length if length > MAX_PATH => {
                Err(format!("the path in `${{file:…}}` is {length} bytes long: at most {MAX_PATH}"))
            }
            _ => Ok(TextPiece::File(path)),
        };
    }
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_name = name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit());
    match is_name {
        true => Ok(TextPiece::Variable(name)),
        false => Err(format!(
            "{} is neither ${{VARIABLE}} nor ${{file:PATH}}; `$${{` is a literal `${{`",
            quote(&format!("${{{name}}}"))
        )),
    }
}

/// Reads a file, without its final line break.
fn read(path: &Path) -> Result<String, String> {
    let shown = || quote(&path.display().to_string());
    let mut bytes = Vec::new();
    // Two more bytes for the line break, and a third one to detect a file that is too large.
    let most = MAX_VALUE_FILE as u64 + 3;
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| format!("{} cannot be read: {}", shown(), unreadable(path, &error)))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", shown()))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.len() {
        length if length > MAX_VALUE_FILE => {
            Err(format!("{} is larger than {MAX_VALUE_FILE} bytes (64 KiB)", shown()))
        }
        _ => Ok(line.to_owned()),
    }
}
