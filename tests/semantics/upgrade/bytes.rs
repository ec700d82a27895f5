//! Bytes as a reader can check them: text as text, doubles that are whole as numbers, the rest in hexadecimal.

use serde_json::{Value as Json, json};

/// The bytes as JSON. [`bytes_of`] reads them back.
pub(super) fn json_of(bytes: &[u8]) -> Json {
    if let Some(text) = printable(bytes) {
        return json!(text);
    }
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        if let Some(text) = printable(rest) {
            parts.push(json!(text));
            break;
        }
        let (chunk, after) = rest.split_at(rest.len().min(8));
        parts.push(whole(chunk).map_or_else(|| json!({ "hex": hex(chunk) }), |number| json!(number)));
        rest = after;
    }
    Json::Array(parts)
}

/// The bytes of [`json_of`].
pub(super) fn bytes_of(json: &Json) -> Vec<u8> {
    match json {
        Json::String(text) => text.clone().into_bytes(),
        Json::Number(number) => (number.as_i64().unwrap() as f64).to_le_bytes().to_vec(),
        Json::Array(parts) => parts.iter().flat_map(bytes_of).collect(),
        _ => unhex(json["hex"].as_str().unwrap()),
    }
}

fn printable(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)))
}

/// The double, if it is a whole number whose bytes follow from it.
fn whole(chunk: &[u8]) -> Option<i64> {
    let double = f64::from_le_bytes(chunk.try_into().ok()?);
    let number = double as i64;
    (number.unsigned_abs() <= 1 << 53 && (number as f64).to_le_bytes() == *chunk).then_some(number)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn bytes_are_read_back_as_they_were() {
    let doubles =
        |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let mut mixed = doubles(&[1.0, 0.5, -0.0, f64::NAN]);
    mixed.extend(b"ttaker");
    for bytes in [vec![], b"bob".to_vec(), vec![0, 1, 2], doubles(&[-1.0, 1e15]), mixed, vec![255; 21]] {
        assert_eq!(bytes_of(&json_of(&bytes)), bytes, "{}", json_of(&bytes));
    }
}
