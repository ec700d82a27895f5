//! EXTRA_TAGS: labels of every metric.

use std::collections::BTreeMap;

use weir_config::foreign::quote;

use super::given::RatelimitGiven;

const NAME: &str = "EXTRA_TAGS";

/// Most labels.
const MAX_LABELS: usize = 16;

/// The longest name or value of a label, in bytes.
const MAX_LABEL: usize = 256;

/// Reads `name:value,name:value` as the reference does: of two equal names the last one counts.
pub(super) fn labels(given: &mut RatelimitGiven) -> Option<Vec<(String, String)>> {
    let parsed = given.text(NAME).map_or_else(|| Ok(Vec::new()), parse);
    parsed.map_err(|reason| given.wrong(NAME, reason)).ok()
}

fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut labels = BTreeMap::new();
    for pair in text.split(',') {
        let Some((name, value)) = pair.split_once(':').filter(|(name, value)| is_label(name, value)) else {
            return Err(format!(
                "{} is not NAME:VALUE with 1 to {MAX_LABEL} bytes each; separate several with commas",
                quote(pair)
            ));
        };
        labels.insert(plain(name), value.to_owned());
    }
    match labels.len() {
        0..=MAX_LABELS => Ok(labels.into_iter().collect()),
        more => Err(format!("has {more} labels; at most {MAX_LABELS} fit")),
    }
}

fn is_label(name: &str, value: &str) -> bool {
    let fits = |text: &str| (1..=MAX_LABEL).contains(&text.len());
    fits(name) && fits(value) && !value.contains(':')
}

/// A name as Prometheus takes it: other characters are `_`, and so is a digit at the start.
fn plain(name: &str) -> String {
    let is_plain = |(index, char): (usize, char)| match char {
        '0'..='9' => index > 0,
        _ => char.is_ascii_alphabetic() || char == '_',
    };
    name.char_indices().map(|one| if is_plain(one) { one.1 } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn pairs_are_labels() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(parse("zone:b"), Ok(vec![pair("zone", "b")]));
        assert_eq!(parse("b.c:x y,a:1,a:2"), Ok(vec![pair("a", "2"), pair("b_c", "x y")]));
        assert_eq!(parse("1a:2"), Ok(vec![pair("_a", "2")]));
        for wrong in ["", "a", "a:", ":b", "a:b,", "a:b:c", &format!("a:{}", "x".repeat(257))] {
            assert!(parse(wrong).unwrap_err().contains("NAME:VALUE"), "{wrong}");
        }
        let many: Vec<String> = (0..17).map(|index| format!("l{index}:v")).collect();
        assert!(parse(&many.join(",")).unwrap_err().contains("at most 16"));
    }
}
