//! The text of a file as a tree of nodes that know where they stand.
//!
//! A small part of YAML, on purpose: scalars, lists and mappings of one document. Anchors, aliases
//! and tags are refused, because a limit that is said somewhere else is hard to review; but files that
//! were written for another service may have them ([`compose_foreign`]). Mappings keep every entry in
//! order, so that a key given twice is seen rather than silently overwritten.

use std::panic::{AssertUnwindSafe, catch_unwind};

use saphyr_parser::{Event, Input, Marker, Parser, ScalarStyle, Span, Tag};

use super::aliases::{Aliases, merged};
use super::errors::{MistakeReport, Position};

/// How deep lists and mappings may nest.
pub(super) const MAX_DEPTH: usize = 64;

/// How many scalars, lists and mappings a file may have: a hundred for each of ten thousand strategies.
pub(super) const MAX_NODES: usize = 1_000_000;

/// The same of a file with aliases, each of which counts as what it stands for.
const MAX_FOREIGN_NODES: usize = 250_000;

/// A piece of the file.
#[derive(Debug, Clone)]
pub(super) struct YamlNode {
    /// Where it begins; where nothing is written, its key.
    pub(super) at: Position,
    /// What it is.
    pub(super) content: Content,
    /// Whether a syntax error ended it early, so that what is missing may only not have been read.
    pub(super) cut: bool,
}

/// What a node is.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Nothing: an empty value, `~` or `null`.
    Empty,
    /// A single value.
    Scalar {
        /// Its text, without quotes.
        text: String,
        /// Whether it was written in quotes or as a block, and so is meant as text.
        quoted: bool,
    },
    /// A list.
    List(Vec<YamlNode>),
    /// Keys and values, in the order of the file.
    Map(Vec<(YamlNode, YamlNode)>),
    /// Something that was reported already, and is not reported again.
    Refused,
}

/// The tree of `text`. After a syntax error, the part before it.
pub(super) fn compose(text: &str, report: &mut MistakeReport) -> Option<YamlNode> {
    compose_by(Composer::default(), text, report)
}

/// The tree of `text` with its aliases and merge keys replaced by what they stand for.
pub(super) fn compose_foreign(text: &str, report: &mut MistakeReport) -> Option<YamlNode> {
    compose_by(Composer { aliases: Some(Aliases::default()), ..Composer::default() }, text, report)
}

fn compose_by(mut composer: Composer, text: &str, report: &mut MistakeReport) -> Option<YamlNode> {
    if let Some(at) = first_control(text) {
        report.at(at, "", "a control character cannot stand in a configuration");
        return None;
    }
    // The parser is not ours, and no file may end the process: a panic in it is one more mistake.
    let parsing = AssertUnwindSafe(|| composer.all(Parser::new_from_str(text), report));
    let done = catch_unwind(parsing).unwrap_or_else(|_| {
        report.file("cannot be read: the YAML parser fails on it");
        Err(Stop)
    });
    if done.is_err() {
        composer.cut();
    }
    composer.root
}

/// The rest of the file cannot be read; the reason is reported.
struct Stop;

#[derive(Default)]
struct Composer {
    open: Vec<OpenCollection>,
    root: Option<YamlNode>,
    nodes: usize,
    documents: usize,
    /// `None` refuses them.
    aliases: Option<Aliases>,
}

/// A list or mapping that has begun.
struct OpenCollection {
    at: Position,
    /// The number of its anchor, or 0.
    anchor: usize,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<YamlNode>),
    Map(Vec<(YamlNode, YamlNode)>, Option<YamlNode>),
}

impl Composer {
    fn all<'t, T: Input>(&mut self, events: Parser<'t, T>, report: &mut MistakeReport) -> Result<(), Stop> {
        for event in events {
            match event {
                Ok((event, span)) => self.event(event, span, report)?,
                Err(error) => {
                    report.at(position(error.marker()), "", syntax_error(error.info()));
                    return Err(Stop);
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, span: Span, report: &mut MistakeReport) -> Result<(), Stop> {
        let at = position(&span.start);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    report.at(at, "", "a second document begins here; a configuration is one document");
                    return Err(Stop);
                }
            }
            Event::Alias(anchor) if self.aliases.is_some() => self.alias(anchor, at, report)?,
            Event::Alias(_) => {
                let reason = "aliases are not supported; put text that begins with * in quotes";
                report.at(at, "", reason);
                self.count(1, at, report)?;
                self.add(YamlNode { at, content: Content::Refused, cut: false });
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_properties(at, anchor, tag.as_deref(), report);
                self.count(1, at, report)?;
                let style =
                    if self.is_sort(tag.as_deref(), "str") { ScalarStyle::DoubleQuoted } else { style };
                let node = YamlNode { at, content: scalar(&text, style), cut: false };
                self.remember(anchor, &node, report)?;
                self.add(node);
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_properties(at, anchor, tag.as_deref(), report);
                self.begin(at, anchor, OpenContent::List(Vec::new()), report)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_properties(at, anchor, tag.as_deref(), report);
                self.begin(at, anchor, OpenContent::Map(Vec::new(), None), report)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(false, report)?,
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize, at: Position, report: &mut MistakeReport) -> Result<(), Stop> {
        let most = if self.aliases.is_some() { MAX_FOREIGN_NODES } else { MAX_NODES };
        self.nodes += nodes;
        if self.nodes > most {
            report.at(at, "", format!("a configuration has at most {most} values, lists and mappings"));
            return Err(Stop);
        }
        Ok(())
    }

    fn begin(
        &mut self,
        at: Position,
        anchor: usize,
        content: OpenContent,
        report: &mut MistakeReport,
    ) -> Result<(), Stop> {
        self.count(1, at, report)?;
        self.descend(1, at, report)?;
        self.open.push(OpenCollection { at, anchor, content });
        Ok(())
    }

    /// Refuses what would nest too deep, being itself `levels` deep.
    fn descend(&self, levels: usize, at: Position, report: &mut MistakeReport) -> Result<(), Stop> {
        if self.open.len() + levels > MAX_DEPTH {
            report.at(at, "", format!("lists and mappings nest at most {MAX_DEPTH} deep"));
            return Err(Stop);
        }
        Ok(())
    }

    fn end(&mut self, cut: bool, report: &mut MistakeReport) -> Result<(), Stop> {
        let Some(OpenCollection { at, anchor, content }) = self.open.pop() else { return Ok(()) };
        let content = match content {
            OpenContent::List(items) => Content::List(items),
            OpenContent::Map(entries, _) if self.aliases.is_some() => Content::Map(merged(entries, report)),
            OpenContent::Map(entries, _) => Content::Map(entries),
        };
        let node = YamlNode { at, content, cut };
        let remembered = self.remember(anchor, &node, report);
        self.add(node);
        remembered
    }

    /// Keeps what has an anchor; it counts once more, so that aliases of aliases stay bounded.
    fn remember(&mut self, anchor: usize, node: &YamlNode, report: &mut MistakeReport) -> Result<(), Stop> {
        let Some(aliases) = self.aliases.as_mut().filter(|_| anchor > 0) else { return Ok(()) };
        let size = aliases.keep(anchor, node);
        self.count(size, node.at, report)
    }

    /// Puts what has an anchor where an alias of it stands.
    fn alias(&mut self, anchor: usize, at: Position, report: &mut MistakeReport) -> Result<(), Stop> {
        let known = self.aliases.as_ref().and_then(|aliases| aliases.get(anchor));
        match known.map(|known| (known.size, known.depth)) {
            Some((size, depth)) => {
                self.count(size, at, report)?;
                self.descend(depth, at, report)?;
                let known = self.aliases.as_ref().and_then(|aliases| aliases.get(anchor));
                let Some(node) = known.map(|known| known.node.clone()) else { return Ok(()) };
                self.add(node);
            }
            None => {
                report.at(at, "", "an alias cannot stand inside of what it stands for");
                self.count(1, at, report)?;
                self.add(YamlNode { at, content: Content::Refused, cut: false });
            }
        }
        Ok(())
    }

    /// Whether a tag only says the sort of a value, in a file that may have such tags.
    fn is_sort(&self, tag: Option<&Tag>, sort: &str) -> bool {
        self.aliases.is_some() && tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == sort)
    }

    fn refuse_properties(&self, at: Position, anchor: usize, tag: Option<&Tag>, report: &mut MistakeReport) {
        if anchor > 0 && self.aliases.is_none() {
            report.at(at, "", "anchors are not supported; put text that begins with & in quotes");
        }
        let plain = ["str", "seq", "map"].iter().any(|sort| self.is_sort(tag, sort));
        if tag.is_some() && !plain {
            report.at(at, "", "tags are not supported; put text that begins with ! in quotes");
        }
    }

    /// Ends all that is open. A key whose value was not reached is forgotten.
    fn cut(&mut self) {
        // Nothing follows that an alias could stand in, and what is wrong has been reported.
        let mut untold = MistakeReport::default();
        while !self.open.is_empty() {
            let _ = self.end(true, &mut untold);
        }
        if let Some(root) = &mut self.root {
            root.cut = true;
        }
    }

    fn add(&mut self, mut node: YamlNode) {
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(OpenContent::List(items)) => items.push(node),
            Some(OpenContent::Map(entries, pending)) => match pending.take() {
                None => *pending = Some(node),
                Some(key) => {
                    // What is not there has no place of its own; the parser gives that of what follows.
                    if matches!(node.content, Content::Empty) {
                        node.at = key.at;
                    }
                    entries.push((key, node));
                }
            },
        }
    }
}

fn syntax_error(info: &str) -> String {
    let help = if info.contains("anchor") { "; put text that begins with * or & in quotes" } else { "" };
    format!("not valid YAML: {info}{help}")
}

fn scalar(text: &str, style: ScalarStyle) -> Content {
    let quoted = style != ScalarStyle::Plain;
    match text {
        "" | "~" | "null" | "Null" | "NULL" if !quoted => Content::Empty,
        _ => Content::Scalar { text: text.to_owned(), quoted },
    }
}

/// The first character that YAML does not know. The parser takes a NUL for the end of the file, and
/// what follows would be ignored without a word.
fn first_control(text: &str) -> Option<Position> {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    let (index, _) = text.char_indices().find(|&(_, c)| c.is_control() && !allowed(c))?;
    text.get(..index).map(end_of)
}

/// The position right after `text`.
pub(super) fn end_of(text: &str) -> Position {
    let line = 1 + text.matches('\n').count();
    let column = 1 + text.chars().rev().take_while(|&c| c != '\n').count();
    Position { line, column }
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}
