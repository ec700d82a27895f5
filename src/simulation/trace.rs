//! Reads calls from a CSV file with the columns `at_s`, `resource`, `consumer` and optionally `cost`.

use std::collections::HashMap;

use weir_core::key::MAX_PART;
use weir_units::{LONGEST_SPAN, Micros};

use super::{MAX_CALLS, SimulatedCall, SimulatedCalls};

/// The columns, in any order; a missing cost is 1.
const COLUMNS: [&str; 4] = ["at_s", "resource", "consumer", "cost"];

/// Reason and position of an error in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: u64,
    /// The field's number in the line, from 1.
    pub column: usize,
    /// Why.
    pub reason: String,
}

/// The calls of a file, in the order of their times; calls of one time stay in the order of the file.
pub fn read_trace(text: &str) -> Result<SimulatedCalls, TraceError> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| unreadable(&error))?.clone();
    let places = columns(&headers)?;
    let (mut calls, mut known) = (SimulatedCalls::default(), HashMap::new());
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let error = |column: usize, reason: String| TraceError { line, column: column + 1, reason };
        if calls.calls.len() == MAX_CALLS {
            return Err(error(0, format!("a simulation has at most {MAX_CALLS} calls")));
        }
        let field = |name: usize| places[name].map(|place| (place, record.get(place).unwrap_or_default()));
        let text = |name: usize, least: usize| {
            let Some((place, text)) = field(name) else { return Ok(String::new()) };
            let bytes = text.len();
            if (least..=MAX_PART).contains(&bytes) {
                return Ok(text.to_owned());
            }
            let column = COLUMNS.get(name).copied().unwrap_or_default();
            Err(error(place, format!("{column} has {bytes} bytes; it must have {least} to {MAX_PART}")))
        };
        let (place, at) = field(0).unwrap_or_default();
        let at = seconds(at).map_err(|reason| error(place, reason))?;
        let cost = match field(3) {
            None | Some((_, "")) => 1,
            Some((place, cost)) => {
                let wrong = |_| error(place, format!("cost {cost:?} is no whole number from 0"));
                cost.parse().map_err(wrong)?
            }
        };
        let next = calls.subjects.len();
        let subject = (text(1, 1)?, text(2, 0)?);
        let subject = *known.entry(subject).or_insert_with_key(|subject| {
            calls.subjects.push(subject.clone());
            next
        });
        calls.calls.push(SimulatedCall { at, subject, cost });
    }
    calls.calls.sort_by_key(|call| call.at);
    Ok(calls)
}

/// Index of each of [`COLUMNS`].
fn columns(headers: &csv::StringRecord) -> Result<[Option<usize>; 4], TraceError> {
    let error = |column: usize, reason: String| TraceError { line: 1, column: column + 1, reason };
    if let Some((place, name)) = headers.iter().enumerate().find(|(_, name)| !COLUMNS.contains(name)) {
        return Err(error(place, format!("{name:?} is no column; there are {}", COLUMNS.join(", "))));
    }
    let known = |place: usize, name: &str| headers.iter().take(place).any(|header| header == name);
    if let Some((place, name)) = headers.iter().enumerate().find(|(place, name)| known(*place, name)) {
        return Err(error(place, format!("there is another column {name}")));
    }
    let places = COLUMNS.map(|name| headers.iter().position(|header| header == name));
    match COLUMNS.iter().zip(places).take(2).find(|(_, place)| place.is_none()) {
        Some((name, _)) => {
            Err(error(0, format!("the column {name} is missing; the first line names the columns")))
        }
        None => Ok(places),
    }
}

/// Seconds with up to six digits behind the point, exactly.
fn seconds(text: &str) -> Result<Micros, String> {
    let wrong =
        || format!("at_s {text:?} is no number of seconds such as 12.5, from 0 and with at most 6 decimals");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let micros = format!("{part:0<6}").parse::<u64>().map_err(|_| wrong())?;
    let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000_000));
    let at = whole.and_then(|whole| whole.checked_add(micros)).map(Micros);
    at.filter(|at| *at <= LONGEST_SPAN).ok_or_else(|| {
        format!("at_s {text:?} is too late; it must be at most {}, 100 years", LONGEST_SPAN.0 / 1_000_000)
    })
}

fn unreadable(error: &csv::Error) -> TraceError {
    let line = error.position().map_or(1, csv::Position::line);
    let (column, reason) = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => (
            (*len).min(*expected_len) + 1,
            format!("the line has {len} fields, and there are {expected_len} columns"),
        ),
        _ => (1, error.to_string()),
    };
    let column = usize::try_from(column).unwrap_or(usize::MAX);
    TraceError { line, column, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_in_the_order_of_its_times() {
        let calls =
            read_trace("at_s,resource,consumer,cost\n2.5,r,bob,3\n0.000001,r,alice,\n2.5,r,bob,1\n").unwrap();
        let read: Vec<_> = calls.calls.iter().map(|call| (call.at.0, call.subject, call.cost)).collect();
        assert_eq!(read, [(1, 1, 1), (2_500_000, 0, 3), (2_500_000, 0, 1)]);
        assert_eq!(calls.subjects, [("r", "bob"), ("r", "alice")].map(|(r, c)| (r.to_owned(), c.to_owned())));
    }

    #[test]
    fn a_mistake_has_a_line_and_a_column() {
        let at = |text: &str| {
            let error = read_trace(text).unwrap_err();
            (error.line, error.column)
        };
        assert_eq!(at("at_s,resource,color\n"), (1, 3));
        assert_eq!(at("resource,consumer\n"), (1, 1));
        assert_eq!(at("at_s,resource\n1,r\nsoon,r\n"), (3, 1));
        assert_eq!(at("at_s,resource\n1.0000001,r\n"), (2, 1));
        assert_eq!(at("resource,at_s,cost\nr,1,-1\n"), (2, 3));
        assert_eq!(at("at_s,resource\n1,r,too many\n"), (2, 3));
        assert_eq!(at("at_s,resource\n1,r\n1\n"), (3, 2));
        assert_eq!(at("at_s,resource,at_s\n1,r,1\n"), (1, 3));
        assert_eq!(at("at_s,resource\n1,r\n1,\n"), (3, 2));
        assert_eq!(at(&format!("consumer,at_s,resource\n{},1,r\n", "x".repeat(513))), (2, 1));
        assert_eq!(at("at_s,resource\n3155760000,r\n3155760000.000001,r\n"), (3, 1));
    }
}
