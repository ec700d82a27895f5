//! Parses a file into a tree of nodes with positions.
//!
//! It deliberately supports a subset of YAML: scalars, lists and mappings of one document. Anchors, aliases and tags
//! are rejected, because a limit that is defined somewhere else is hard to review. Files that were written for another
//! service may have them ([`compose_foreign`]). Mappings keep every entry in order, so that a duplicate key is
//! detected and does not silently overwrite another.

use std::panic::{AssertUnwindSafe, catch_unwind};

use saphyr_parser::{Event, Input, Marker, Parser, ScalarStyle, Span, Tag};

use super::aliases::{Aliases, merged};
use super::errors::{MistakeReport, Position};
use super::yaml_node::{Content, YamlNode};

/// Maximum nesting depth of lists and mappings.
const MAX_DEPTH: usize = 64;

/// Maximum nesting depth in a file that was written for another service.
const MAX_FOREIGN_DEPTH: usize = 128;

/// Maximum number of nodes in a file: a hundred for each of ten thousand strategies.
pub(super) const MAX_NODES: usize = 1_000_000;

/// Maximum number of nodes in a file with aliases. An alias counts as all the nodes it expands to.
const MAX_FOREIGN_NODES: usize = 250_000;

/// Parses `text` into a tree. After a syntax error, returns the part before it.
///
/// `nodes` counts the nodes of all files of a configuration.
pub(super) fn compose(text: &str, nodes: &mut usize, report: &mut MistakeReport) -> Option<YamlNode> {
    let mut composer = Composer { nodes: *nodes, ..Composer::default() };
    compose_by(&mut composer, text, report);
    *nodes = composer.nodes;
    composer.root
}

/// Parses `text` into a tree, and expands its aliases and merge keys.
pub fn compose_foreign(text: &str, report: &mut MistakeReport) -> Option<YamlNode> {
    let mut composer = Composer { aliases: Some(Aliases::default()), ..Composer::default() };
    compose_by(&mut composer, text, report);
    composer.root
}

fn compose_by(composer: &mut Composer, text: &str, report: &mut MistakeReport) {
    composer.file = report.file_number();
    if let Some(at) = first_control(text, composer.file) {
        report.at(at, "", "a control character cannot stand in a configuration");
        return;
    }
    // The parser is third-party code, and no file may end the process: a panic in it is reported as a mistake.
    let parsing = AssertUnwindSafe(|| composer.all(Parser::new_from_str(text), text, report));
    let done = catch_unwind(parsing).unwrap_or_else(|_| {
        report.file("cannot be read: the YAML parser fails on it");
        Err(Stop)
    });
    if done.is_err() {
        composer.cut();
    }
}

/// Aborts parsing; the reason has been reported.
struct Stop;

#[derive(Default)]
struct Composer {
    open: Vec<OpenCollection>,
    root: Option<YamlNode>,
    nodes: usize,
    documents: usize,
    /// The anchors; `None` rejects anchors and aliases.
    aliases: Option<Aliases>,
    /// The number of the file.
    file: usize,
}

/// A list or mapping whose end was not reached yet.
struct OpenCollection {
    at: Position,
    /// The number of the anchor; 0 without an anchor.
    anchor: usize,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<YamlNode>),
    Map(Vec<(YamlNode, YamlNode)>, Option<YamlNode>),
}

impl Composer {
    fn all<'t, T: Input>(
        &mut self,
        events: Parser<'t, T>,
        text: &str,
        report: &mut MistakeReport,
    ) -> Result<(), Stop> {
        for event in events {
            match event {
                Ok((event, span)) => self.event(event, span, report)?,
                Err(error) => {
                    let at = self.position(error.marker());
                    report.at(at, "", syntax_error(error.info(), stands_in_variable(text, at)));
                    return Err(Stop);
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, span: Span, report: &mut MistakeReport) -> Result<(), Stop> {
        let at = self.position(&span.start);
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

    fn position(&self, marker: &Marker) -> Position {
        Position { file: self.file, line: marker.line(), column: marker.col() + 1 }
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

    /// Rejects a node of depth `levels` if the total nesting would be too deep.
    fn descend(&self, levels: usize, at: Position, report: &mut MistakeReport) -> Result<(), Stop> {
        let most = if self.aliases.is_some() { MAX_FOREIGN_DEPTH } else { MAX_DEPTH };
        if self.open.len() + levels > most {
            report.at(at, "", format!("lists and mappings nest at most {most} deep"));
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

    /// Stores an anchored node. Its nodes are counted a second time, so that nested aliases stay bounded.
    fn remember(&mut self, anchor: usize, node: &YamlNode, report: &mut MistakeReport) -> Result<(), Stop> {
        let Some(aliases) = self.aliases.as_mut().filter(|_| anchor > 0) else { return Ok(()) };
        let size = aliases.keep(anchor, node);
        self.count(size, node.at, report)
    }

    /// Expands an alias.
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

    /// True if a tag is the YAML core schema's `sort`, in a file that may have such tags.
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

    /// Closes all open collections as truncated. A key without a value is dropped.
    fn cut(&mut self) {
        // No further alias can follow, and the mistake has been reported.
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
                    // For an empty value the parser returns the position of the next token.
                    if matches!(node.content, Content::Empty) {
                        node.at = key.at;
                    }
                    entries.push((key, node));
                }
            },
        }
    }
}

/// True if this place is the brace of `${`, which begins a mapping in `{ … }` and `[ … ]`.
fn stands_in_variable(text: &str, at: Position) -> bool {
    let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
    let mut before = line.chars().take(at.column).collect::<Vec<_>>().into_iter().rev();
    before.next() == Some('{') && before.next() == Some('$')
}

fn syntax_error(info: &str, is_variable: bool) -> String {
    let help = match info {
        _ if is_variable => "; within { } and [ ] put a variable in quotes, such as \"${NAME}\"",
        info if info.contains("anchor") => "; put text that begins with * or & in quotes",
        _ => "",
    };
    format!("not valid YAML: {info}{help}")
}

fn scalar(text: &str, style: ScalarStyle) -> Content {
    let quoted = style != ScalarStyle::Plain;
    match text {
        "" | "~" | "null" | "Null" | "NULL" if !quoted => Content::Empty,
        _ => Content::Scalar { text: text.to_owned(), quoted },
    }
}

/// Returns the position of the first control character that YAML forbids. The parser takes a NUL for the end of the
/// file, and would silently ignore the rest.
fn first_control(text: &str, file: usize) -> Option<Position> {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    let (index, _) = text.char_indices().find(|&(_, c)| c.is_control() && !allowed(c))?;
    text.get(..index).map(|before| end_of(before, file))
}

/// Returns the position right after `text`, which begins a file.
pub(super) fn end_of(text: &str, file: usize) -> Position {
    let line = 1 + text.matches('\n').count();
    let column = 1 + text.chars().rev().take_while(|&c| c != '\n').count();
    Position { file, line, column }
}
