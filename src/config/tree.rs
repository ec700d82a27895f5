//! The text of a file as a tree of nodes that know where they stand.
//!
//! A small part of YAML, on purpose: scalars, lists and mappings of one document. Anchors, aliases
//! and tags are refused, because a limit that is said somewhere else is hard to review. Mappings keep
//! every entry in order, so that a key given twice is seen rather than silently overwritten.

use std::panic::{AssertUnwindSafe, catch_unwind};

use saphyr_parser::{Event, Input, Marker, Parser, ScalarStyle, Span};

use super::errors::{Position, Report};

/// How deep lists and mappings may nest.
pub(super) const MAX_DEPTH: usize = 64;

/// How many scalars, lists and mappings a file may have.
pub(super) const MAX_NODES: usize = 250_000;

/// A piece of the file.
#[derive(Debug)]
pub(super) struct Node {
    /// Where it begins; where nothing is written, its key.
    pub(super) at: Position,
    /// What it is.
    pub(super) content: Content,
    /// Whether a syntax error ended it early, so that what is missing may only not have been read.
    pub(super) cut: bool,
}

/// What a node is.
#[derive(Debug)]
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
    List(Vec<Node>),
    /// Keys and values, in the order of the file.
    Map(Vec<(Node, Node)>),
    /// Something that was reported already; nobody need complain about it again.
    Refused,
}

/// The tree of `text`. After a syntax error, the part before it.
pub(super) fn compose(text: &str, report: &mut Report) -> Option<Node> {
    if let Some(at) = first_control(text) {
        report.at(at, "", "a control character cannot stand in a configuration");
        return None;
    }
    let mut composer = Composer::default();
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
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
}

/// A list or mapping that has begun.
struct Open {
    at: Position,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<Node>),
    Map(Vec<(Node, Node)>, Option<Node>),
}

impl Composer {
    fn all<'t, T: Input>(&mut self, events: Parser<'t, T>, report: &mut Report) -> Result<(), Stop> {
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

    fn event(&mut self, event: Event<'_>, span: Span, report: &mut Report) -> Result<(), Stop> {
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
            Event::Alias(_) => {
                let reason = "aliases are not supported; put text that begins with * in quotes";
                report.at(at, "", reason);
                self.count(at, report)?;
                self.add(Node { at, content: Content::Refused, cut: false });
            }
            Event::Scalar(text, style, anchor, tag) => {
                refuse_properties(at, anchor, tag.is_some(), report);
                self.count(at, report)?;
                self.add(Node { at, content: scalar(&text, style), cut: false });
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_properties(at, anchor, tag.is_some(), report);
                self.begin(at, OpenContent::List(Vec::new()), report)?;
            }
            Event::MappingStart(anchor, tag) => {
                refuse_properties(at, anchor, tag.is_some(), report);
                self.begin(at, OpenContent::Map(Vec::new(), None), report)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(false),
        }
        Ok(())
    }

    fn count(&mut self, at: Position, report: &mut Report) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            report.at(at, "", format!("a configuration has at most {MAX_NODES} values, lists and mappings"));
            return Err(Stop);
        }
        Ok(())
    }

    fn begin(&mut self, at: Position, content: OpenContent, report: &mut Report) -> Result<(), Stop> {
        self.count(at, report)?;
        if self.open.len() >= MAX_DEPTH {
            report.at(at, "", format!("lists and mappings nest at most {MAX_DEPTH} deep"));
            return Err(Stop);
        }
        self.open.push(Open { at, content });
        Ok(())
    }

    fn end(&mut self, cut: bool) {
        let Some(Open { at, content }) = self.open.pop() else { return };
        let content = match content {
            OpenContent::List(items) => Content::List(items),
            OpenContent::Map(entries, _) => Content::Map(entries),
        };
        self.add(Node { at, content, cut });
    }

    /// Ends all that is open. A key whose value was not reached is forgotten.
    fn cut(&mut self) {
        while !self.open.is_empty() {
            self.end(true);
        }
        if let Some(root) = &mut self.root {
            root.cut = true;
        }
    }

    fn add(&mut self, mut node: Node) {
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

fn refuse_properties(at: Position, anchor: usize, tag: bool, report: &mut Report) {
    if anchor > 0 {
        report.at(at, "", "anchors are not supported; put text that begins with & in quotes");
    }
    if tag {
        report.at(at, "", "tags are not supported; put text that begins with ! in quotes");
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
