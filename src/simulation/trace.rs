//! Reads calls from a CSV file with the columns `at_s`, `resource`, `consumer`, and optionally `cost` and `cost.NAME`.

use std::collections::HashMap;

use weir_core::key::MAX_PART;
use weir_units::{LONGEST_SPAN, Micros};

use super::{CostByName, MAX_CALLS, SimulatedCall, SimulatedCalls, read_units};

/// The columns, in any order; a missing cost is 1.
const COLUMNS: [&str; 4] = ["at_s", "resource", "consumer", "cost"];

/// The prefix of the columns of costs by name.
const NAMED: &str = "cost.";

/// Reason and position of an error in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: u64,
    /// The field's number in the line, from 1.
    pub column: usize,
    /// The mistake.
    pub reason: String,
}

/// The calls of a file, in the order of their times; calls of one time stay in the order of the file.
pub fn read_trace(text: &str) -> Result<SimulatedCalls, TraceError> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| unreadable(&error))?.clone();
    let places = columns(&headers)?;
    let (mut calls, mut known, mut known_costs) = (SimulatedCalls::default(), HashMap::new(), HashMap::new());
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
        let costs = costs_by_name(&headers, &record).map_err(|(place, reason)| error(place, reason))?;
        let next = calls.costs.len();
        let costs = *known_costs.entry(costs).or_insert_with_key(|costs| {
            calls.costs.push(costs.clone());
            next
        });
        calls.calls.push(SimulatedCall { at, subject, cost, costs });
    }
    calls.calls.sort_by_key(|call| call.at);
    Ok(calls)
}

/// The costs by name of a call, or the column with a mistake.
fn costs_by_name(
    headers: &csv::StringRecord,
    record: &csv::StringRecord,
) -> Result<Vec<CostByName>, (usize, String)> {
    let columns = headers.iter().zip(record.iter()).enumerate();
    let named =
        columns.filter_map(|(place, (header, text))| Some((place, header.strip_prefix(NAMED)?, text)));
    let read = named.map(|(place, name, text)| match (text, read_units(text)) {
        ("", _) => Err((place, format!("{NAMED}{name} is empty: a forgotten cost is no free call, write 0"))),
        (_, Ok((cost, at_least))) => Ok(CostByName { name: name.to_owned(), cost, at_least }),
        (_, Err(_)) => Err((place, format!("{NAMED}{name} {text:?} is no cost: write 4096 or \"4096,256\""))),
    });
    read.collect()
}

/// Index of each of [`COLUMNS`].
fn columns(headers: &csv::StringRecord) -> Result<[Option<usize>; 4], TraceError> {
    let error = |column: usize, reason: String| TraceError { line: 1, column: column + 1, reason };
    let is_known =
        |name: &str| COLUMNS.contains(&name) || name.strip_prefix(NAMED).is_some_and(|name| !name.is_empty());
    if let Some((place, name)) = headers.iter().enumerate().find(|(_, name)| !is_known(name)) {
        let known = COLUMNS.join(", ");
        return Err(error(place, format!("{name:?} is no column; there are {known}, and {NAMED}NAME")));
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
    fn costs_have_columns_by_their_names() {
        let calls =
            read_trace("at_s,resource,cost.output,cost.usd\n1,r,900,0\n2,r,\"4_096,256\",7\n3,r,900,0\n")
                .unwrap();
        let cost = |name: &str, cost, at_least| CostByName { name: name.to_owned(), cost, at_least };
        let few = vec![cost("output", 900, None), cost("usd", 0, None)];
        assert_eq!(calls.costs, [few.clone(), vec![cost("output", 4_096, Some(256)), cost("usd", 7, None)]]);
        assert_eq!(calls.costs_of(&calls.calls[2]), few);
        let wrong = |cost: &str| read_trace(&format!("at_s,cost.usd,resource\n1,{cost},r\n")).unwrap_err();
        assert_eq!((wrong("").line, wrong("").column), (2, 2));
        assert_eq!((wrong("much").line, wrong("much").column), (2, 2));
        assert_eq!(read_trace("at_s,resource,cost.\n").unwrap_err().column, 3);
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
