//! Sources as a check reads them: code without comments, without the text of strings, without tests.

use std::path::Path;

/// One file.
pub struct Source {
    /// From the root of the project, as in `crates/core/src/key.rs`.
    pub path: String,
    /// All of it.
    pub text: String,
    /// The code outside of tests, without comments.
    pub code: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), code: without_tests(&bare(text)) }
    }

    /// Returns true for `module.rs`, and for files in the folder of that name.
    pub fn is_of(&self, module: &str) -> bool {
        self.path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Returns true if the code names `word`: not as a part of a longer word, and not as a step of a longer path.
    pub fn names(&self, word: &str) -> bool {
        self.code.match_indices(word).any(|(at, _)| {
            let before = self.code[..at].chars().next_back().unwrap_or(' ');
            let after = self.code[at + word.len()..].chars().next().unwrap_or(' ');
            let starts = !is_of_a_word(before) && before != ':';
            starts && (!is_of_a_word(after) || !word.ends_with(is_of_a_word))
        })
    }
}

fn is_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Every file in `folder` and below whose name ends like this.
pub fn read_all(folder: &str, extension: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // What a generator writes follows rules of its own.
                folders.extend((!path.ends_with("proto/src/generated")).then_some(path));
            } else if path.extension().is_some_and(|it| it == extension) {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                found.push(Source::new(name, &std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "no .{extension} in {folder}");
    found
}

/// The code with comments and the insides of strings left out; lines stay lines.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let skipped = match letter {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => 1 + end_of_string(&rest[1..]),
            'r' if is_raw_string(rest) && !out.ends_with(is_of_a_word) => end_of_raw_string(rest),
            '\'' => length_of_char(rest),
            _ => 0,
        };
        if skipped == 0 {
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
        } else {
            out.extend(rest[..skipped].chars().filter(|&letter| letter == '\n'));
            rest = &rest[skipped..];
        }
    }
    out
}

/// After the quote that ends a string; one behind a backslash does not.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|&(_, letter)| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

fn is_raw_string(text: &str) -> bool {
    text[1..].trim_start_matches('#').starts_with('"')
}

fn end_of_raw_string(text: &str) -> usize {
    let hashes = text[1..].len() - text[1..].trim_start_matches('#').len();
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = 2 + hashes;
    text[begin..].find(&end).map_or(text.len(), |at| begin + at + end.len())
}

/// Of a character like `'"'`; 0 where the quote begins a lifetime.
fn length_of_char(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    let (_, first) = letters.next().unwrap_or((0, ' '));
    if first == '\\' {
        return text[2..].find('\'').map_or(0, |at| at + 3);
    }
    letters.next().filter(|&(_, letter)| letter == '\'').map_or(0, |(at, _)| at + 1)
}

fn without_tests(code: &str) -> String {
    let mut out = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let open = rest.find(['{', ';']).unwrap_or(rest.len());
        rest = &rest[open..];
        let mut depth = 0;
        let end = rest.char_indices().find(|&(_, letter)| {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            depth == 0
        });
        rest = &rest[end.map_or(rest.len(), |(at, _)| at + 1)..];
    }
    out + rest
}
