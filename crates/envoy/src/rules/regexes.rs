//! Regular expressions for whole values. All of one key are one automaton, which is run once.

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::{Input, PatternID};

use super::sibling::SiblingIndex;

/// The longest expression, in bytes.
pub const MAX_REGEX: usize = 512;

/// Bound of one compiled expression, or of one automaton, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// Reasons why a text cannot be a regular expression here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRegex {
    /// More than [`MAX_REGEX`] bytes.
    #[error("is {0} bytes long: at most {MAX_REGEX}")]
    TooLong(usize),
    /// Not an expression, or one that is too large when compiled.
    #[error("{0}")]
    Refused(String),
}

/// Checks if `text` is a valid expression within the bounds.
pub fn check_regex(text: &str) -> Result<(), InvalidRegex> {
    if text.len() > MAX_REGEX {
        return Err(InvalidRegex::TooLong(text.len()));
    }
    // Checked alone first: `a)(b` must not become valid by the parentheses that are put around it.
    let alone = Regex::builder().configure(config()).build(text).map_err(Box::new);
    let regex = alone.and_then(|_| compile(std::iter::once(text)));
    regex.map(drop).map_err(|error| {
        let reason = match (error.syntax_error(), error.size_limit()) {
            (Some(error), _) => error.to_string().lines().last().unwrap_or_default().to_owned(),
            (None, Some(limit)) => format!("error: compiled, it would take more than {limit} bytes"),
            (None, None) => error.to_string(),
        };
        InvalidRegex::Refused(reason)
    })
}

/// Many expressions with the place of each, in the order of the file.
#[derive(Debug)]
pub(super) struct Regexes(Vec<Automaton>);

#[derive(Debug)]
struct Automaton {
    regex: Regex,
    places: Box<[SiblingIndex]>,
}

impl Regexes {
    /// A table of expressions that [`check_regex`] accepts; others match nothing.
    pub(super) fn new(regexes: &[(String, SiblingIndex)]) -> Self {
        let mut automata = Vec::new();
        add(regexes, &mut automata);
        Self(automata)
    }

    /// The first place in the file whose expression matches all of `value`.
    pub(super) fn first(&self, value: &str) -> Option<SiblingIndex> {
        self.0.iter().find_map(|Automaton { regex, places }| {
            // Each begins at the beginning and ends at the end, so the match that is found is of the
            // earliest expression that has one.
            let found = regex.search_half(&Input::new(value))?;
            places.get(PatternID::as_usize(&found.pattern())).copied()
        })
    }
}

/// As few automata as hold them all.
fn add(regexes: &[(String, SiblingIndex)], automata: &mut Vec<Automaton>) {
    match compile(regexes.iter().map(|(text, _)| text.as_str())) {
        Ok(regex) if !regexes.is_empty() => {
            automata.push(Automaton { regex, places: regexes.iter().map(|(_, place)| *place).collect() });
        }
        Err(_) if regexes.len() > 1 => {
            let (front, back) = regexes.split_at(regexes.len() / 2);
            add(front, automata);
            add(back, automata);
        }
        Ok(_) | Err(_) => {}
    }
}

fn compile<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Regex, Box<BuildError>> {
    let whole: Vec<String> = texts.map(|text| format!(r"\A(?:{text})\z")).collect();
    Ok(Regex::builder().configure(config()).build_many(&whole)?)
}

fn config() -> Config {
    Config::new().nfa_size_limit(Some(MAX_COMPILED)).hybrid_cache_capacity(2 * MAX_COMPILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A build of the workspace's tests may have more of the library than a release has; `cargo test -p weir-core` has not.
    #[test]
    fn expressions_know_unicode() {
        let texts = [
            "(?i)STRASSE|straße",
            r"\p{Greek}+",
            r"\p{Lu}\p{Ll}+",
            r"\d+",
            r"[[:alpha:]]+-.{2}",
            // The lazy DFA gives up at letters outside ASCII; another engine answers.
            r"\bfoo\b.*\bbär\b",
            r"\p{Age=3.0}\p{Emoji}\p{WB=Katakana}?",
        ];
        texts.iter().for_each(|text| assert_eq!(check_regex(text), Ok(()), "{text}"));
        let regexes: Vec<(String, SiblingIndex)> =
            texts.iter().enumerate().map(|(place, text)| ((*text).to_owned(), place)).collect();
        let regexes = Regexes::new(&regexes);
        for (value, expected) in [
            ("STRAßE", Some(0)),
            ("strasse", Some(0)),
            ("αβγ", Some(1)),
            ("Über", Some(2)),
            ("٣٤", Some(3)),
            ("abc-→é", Some(4)),
            ("foo and bär", Some(5)),
            ("foo and bärs", None),
            ("", None),
        ] {
            assert_eq!(regexes.first(value), expected, "{value}");
        }
    }
}
