//! The path of a rule, as the label `rule` of `weir_envoy_hits_total` has it: `key=value,key`. An element may end in `*`;
//! then any text may follow. What is in quotes is literal.

use crate::rules::rule_element;

/// A pattern of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RulePattern(Vec<ElementPattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum ElementPattern {
    /// An element with exactly this text.
    Exact(String),
    /// All that begin with this text.
    Begins(String),
}

impl RulePattern {
    /// Parses a path.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let mut elements = Vec::new();
        loop {
            let (element, after) = element(rest)?;
            elements.push(element);
            match after.strip_prefix(',') {
                Some(next) => rest = next,
                None if after.is_empty() => return Ok(Self(elements)),
                None => return Err("after a text in quotes comes `=`, `,` or the end".to_owned()),
            }
        }
    }

    /// True if the elements of a rule match.
    pub(crate) fn matches(&self, path: &[String]) -> bool {
        self.0.len() == path.len()
            && self.0.iter().zip(path).all(|(pattern, element)| pattern.matches(element))
    }

    /// True if all that it matches is matched by `other` too: then it is at least as specific.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(own, other)| own.is_within(other))
    }

    /// True if there may be a rule that both match.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let meet =
            |(one, other): (&ElementPattern, &ElementPattern)| one.is_within(other) || other.is_within(one);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(meet)
    }
}

impl ElementPattern {
    fn matches(&self, element: &str) -> bool {
        match self {
            Self::Exact(text) => text == element,
            Self::Begins(text) => element.starts_with(text.as_str()),
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(own), other) => other.matches(own),
            (Self::Begins(own), Self::Begins(other)) => own.starts_with(other.as_str()),
            (Self::Begins(_), Self::Exact(_)) => false,
        }
    }
}

/// The first element of a text, and what follows.
fn element(text: &str) -> Result<(ElementPattern, &str), String> {
    let (key, key_is_open, after) = word(text)?;
    let Some(after_equals) = after.strip_prefix('=') else {
        return Ok((ending(&key, None, key_is_open), after));
    };
    let (value, value_is_open, after) = word(after_equals)?;
    if value.is_empty() && !value_is_open {
        return Err(format!(
            "the value of {key:?} is empty; for any value, leave `=` out, for each one, write `=*`"
        ));
    }
    Ok((ending(&key, Some(&value), value_is_open), after))
}

fn ending(key: &str, value: Option<&str>, is_open: bool) -> ElementPattern {
    // What follows a beginning is not known, so it is taken as it is.
    match (is_open, value) {
        (true, None) => ElementPattern::Begins(key.to_owned()),
        (true, Some(value)) => ElementPattern::Begins(format!("{}={value}", rule_element(key, None))),
        (false, value) => ElementPattern::Exact(rule_element(key, value)),
    }
}

/// The first word of a text; whether it ends in `*`, which is not a part of it; and what follows.
fn word(text: &str) -> Result<(String, bool, &str), String> {
    if let Some(inside) = text.strip_prefix('"') {
        let (word, after) = unquoted(inside).ok_or("a text in quotes has no end, or an unknown escape")?;
        return Ok((word, false, after));
    }
    let end = text.find([',', '=']).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    if word.contains('"') {
        return Err("a quote stands within a text: put the whole text in quotes".to_owned());
    }
    match word.strip_suffix('*') {
        // A pattern of keys with a value is no beginning.
        Some(beginning) if !after.starts_with('=') => Ok((beginning.to_owned(), true, after)),
        _ if word.is_empty() && !after.starts_with('=') && text.starts_with(',') | text.is_empty() => {
            Err("an element is empty".to_owned())
        }
        _ => Ok((word.to_owned(), false, after)),
    }
}

/// Reads a text in quotes, as the label is written, after its first quote.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next()? {
            '"' => return Some((word, rest.as_str())),
            '\\' => match rest.next()? {
                'n' => word.push('\n'),
                'r' => word.push('\r'),
                't' => word.push('\t'),
                '0' => word.push('\0'),
                'u' => {
                    let (digits, after) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                    word.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                    rest = after.chars();
                }
                escaped @ ('"' | '\\' | '\'') => word.push(escaped),
                _ => return None,
            },
            char => word.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, elements: &[(&str, Option<&str>)]) -> bool {
        let path: Vec<String> = elements.iter().map(|(key, value)| rule_element(key, *value)).collect();
        RulePattern::parse(pattern).unwrap().matches(&path)
    }

    #[test]
    fn a_path_matches_as_its_label_is_written() {
        let route = [("r/0/*", Some("r/0/*")), ("rule-0-match-0", None)];
        for (pattern, expected) in [
            ("r/0/*=r/0/*,rule-0-match-0", true),
            ("r/0/*=\"r/0/*\",rule-0-match-0", true),
            ("r*,rule-0-match-0", true),
            ("*,*", true),
            ("*,rule-*", true),
            ("r/0/*=*,rule-*", true),
            ("*", false),
            ("r/0/*,rule-1*", false),
            ("r/0/*=x*,rule-0-match-0", false),
            ("\"r/0\"=*,rule-0-match-0", false),
        ] {
            assert_eq!(matches(pattern, &route), expected, "{pattern}");
        }
        assert!(matches(r#""a,b"="c=\"d\u{e9}\"",k"#, &[("a,b", Some("c=\"dé\"")), ("k", None)]));
        assert!(!matches("k=*", &[("k", None)]) && matches("k=*", &[("k", Some("v"))]));
        assert!(matches("\"other\"", &[("other", None)]));
    }

    #[test]
    fn the_narrower_pattern_is_more_specific() {
        let pattern = |text| RulePattern::parse(text).unwrap();
        assert!(pattern("a=b,c").is_within(&pattern("a=*,c")));
        assert!(pattern("a=bc*,c").is_within(&pattern("a=b*,*")));
        assert!(!pattern("a=*,c").is_within(&pattern("a=b,c")));
        let (one, other) = (pattern("a=b,*"), pattern("*,c"));
        assert!(one.meets(&other) && !one.is_within(&other) && !other.is_within(&one));
        assert!(!pattern("a,b").meets(&pattern("a,c")));
    }

    #[test]
    fn mistakes_are_refused() {
        for text in ["", ",", "a,", ",a", "a=", "\"a", "\"a\"b", "a\"b\"", "\"\\x\"", "a=,b"] {
            assert!(RulePattern::parse(text).is_err(), "{text}");
        }
    }
}
