//! The `authorization` header.

use super::credentials::MAX_CREDENTIAL;

pub(super) fn bearer(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    let (scheme, credential) = text.split_once(' ')?;
    let credential = credential.trim_start_matches(' ');
    let is_plain = credential.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    let fits =
        scheme.eq_ignore_ascii_case("bearer") && (1..=MAX_CREDENTIAL).contains(&credential.len()) && is_plain;
    fits.then_some(credential)
}

#[cfg(test)]
mod tests {
    use super::bearer;

    #[test]
    fn a_header_is_one_bearer_credential() {
        assert_eq!(bearer(b"Bearer abc"), Some("abc"));
        assert_eq!(bearer(b"bEARER  a.b-c_d=="), Some("a.b-c_d=="));
        let long = format!("Bearer {}", "x".repeat(8 << 10));
        assert!(bearer(long.as_bytes()).is_some() && bearer(format!("{long}x").as_bytes()).is_none());
        for bad in [
            &b""[..],
            b"Bearer",
            b"Bearer ",
            b"abc",
            b"Basic abc",
            b"Bearer a,b",
            b"Bearer a, Bearer b",
            b"Bearer a b",
            b"Bearer \xff",
            b"Bearer\tabc",
            b"Bearer \x7f",
            "Bearer ä".as_bytes(),
        ] {
            assert_eq!(bearer(bad), None, "{bad:?}");
        }
    }
}
