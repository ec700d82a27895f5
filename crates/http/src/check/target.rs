//! The path of the request that a proxy asks about, in one spelling.

/// Returns the path of a target: without the query, with unreserved characters decoded, dot segments removed and slashes merged.
/// `None` if it stays odd: a backend might read it as another path.
pub(super) fn normalized(target: &str) -> Option<String> {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let decoded = decoded(path.strip_prefix('/')?)?;
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_in_slash = true;
    for segment in decoded.split('/') {
        ends_in_slash = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let slash = if ends_in_slash && !segments.is_empty() { "/" } else { "" };
    Some(format!("/{}{slash}", segments.join("/")))
}

/// Decodes the unreserved characters of RFC 3986, and writes other escapes in capitals.
fn decoded(path: &str) -> Option<String> {
    let mut rest = path.as_bytes();
    let mut out = String::with_capacity(path.len());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let (digits, after) = rest.split_first_chunk::<2>()?;
                rest = after;
                let digits = std::str::from_utf8(digits)
                    .ok()
                    .filter(|it| it.bytes().all(|b| b.is_ascii_hexdigit()))?;
                let value = u8::from_str_radix(digits, 16).ok()?;
                match value {
                    // A backend that decodes these reads another path.
                    b'/' | b'\\' | b'%' | 0..=0x1f | 0x7f => return None,
                    _ if value.is_ascii_alphanumeric() || b"-._~".contains(&value) => {
                        out.push(char::from(value))
                    }
                    _ => {
                        out.push('%');
                        out.push_str(&digits.to_ascii_uppercase());
                    }
                }
            }
            b'\\' => return None,
            0x21..=0x7e => out.push(char::from(byte)),
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn one_path_has_one_spelling() {
        for (target, path) in [
            ("/", "/"),
            ("/search?q=1", "/search"),
            ("//search", "/search"),
            ("/%73earch", "/search"),
            ("/a/./b/../search", "/a/search"),
            ("/a/%2e%2E/search/", "/search/"),
            ("/../..", "/"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/a//b///c", "/a/b/c"),
            ("/a/..", "/"),
            ("/a/b/.", "/a/b/"),
        ] {
            assert_eq!(normalized(target).as_deref(), Some(path), "{target}");
        }
        for odd in [
            "",
            "search",
            "*",
            "http://a/b",
            "/a%2fb",
            "/a%5cb",
            "/a\\b",
            "/a%",
            "/a%zz",
            "/a%00",
            "/caf\u{e9}",
            "/a b",
            "/%25",
        ] {
            assert_eq!(normalized(odd), None, "{odd}");
        }
    }
}
