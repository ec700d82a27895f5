//! Expectations, and how they are matched with received events.

use std::time::Duration;

use weir_grpc::ConnectionEnd;

use super::OK;
use super::answer::answer;
use crate::client::{Client, Event};
use crate::wire::{ACK, PING, frame};

#[derive(Debug)]
pub(super) enum Expected {
    /// A connection error with one of these codes, and the end.
    Error(Vec<u32>, Option<u32>),
    /// GOAWAY of a graceful shutdown.
    Goaway(u32, u32),
    Closed(bool),
    Reset(u32, u32),
    /// At least these.
    Settings(Vec<(u16, u32)>),
    SettingsAcks(usize),
    Pong([u8; 8]),
    /// A PING of the server, which is acknowledged.
    Ping,
    /// The same, but it is not.
    LostPing,
    Credit(u32),
    /// The answer with these bytes and grpc-status 0.
    Answer(u32, Vec<u8>),
    /// So many bytes of an answer, which has not ended.
    Some(u32, usize),
    /// The rest of an answer: so many bytes, and grpc-status 0.
    Rest(u32, usize),
    /// Only a status, and a part of its message.
    Status(u32, u32, &'static str),
    /// The end of an answer, after so many bytes, with this status.
    Ends(u32, usize, u32),
    /// A field with this in its value.
    Field(u32, &'static str, &'static str),
    /// HTTP's status, a field and its value.
    Http(u32, &'static str, Option<(&'static str, &'static str)>),
    Deadline(u32, Option<Duration>),
    Text(&'static str),
    Nothing,
}

/// Takes what is expected out of the events.
pub(super) async fn meet(client: &mut Client, expected: &Expected) -> Result<(), String> {
    let events = &mut client.events;
    match expected {
        Expected::Error(codes, processed) => {
            let (last, code) = take(events, |event| match event {
                Event::Goaway { last, code } => Some((*last, *code)),
                _ => None,
            })?;
            check(processed.is_none_or(|processed| processed == last), || {
                format!("the last stream is {last}")
            })?;
            take_one(events, &Event::Closed)?;
            let ended = client.ended().await?;
            let ended = matches!(&ended, Err(ConnectionEnd::Protocol(why)) if why.code as u32 == code);
            check(ended && codes.contains(&code), || format!("the code is {code}"))
        }
        Expected::Goaway(last, code) => take_one(events, &Event::Goaway { last: *last, code: *code }),
        Expected::Closed(well) => {
            take_one(events, &Event::Closed)?;
            let ended = client.ended().await?;
            check(ended.is_ok() == *well, || format!("it ended with {ended:?}"))
        }
        Expected::Reset(stream, code) => take_one(events, &Event::Reset { stream: *stream, code: *code }),
        Expected::Settings(wanted) => take(events, |event| match event {
            Event::Settings(values) => wanted.iter().all(|value| values.contains(value)).then_some(()),
            _ => None,
        }),
        Expected::SettingsAcks(count) => (0..*count).try_for_each(|_| take_one(events, &Event::SettingsAck)),
        Expected::Pong(opaque) => take_one(events, &Event::Pong(*opaque)),
        Expected::Ping | Expected::LostPing => {
            let opaque =
                take(events, |event| if let Event::Ping(opaque) = event { Some(*opaque) } else { None })?;
            if matches!(expected, Expected::Ping) {
                client.send(&frame(PING, ACK, 0, opaque)).await;
            }
            Ok(())
        }
        Expected::Credit(of) => take(events, |event| match event {
            Event::WindowUpdate { stream, .. } if stream == of => Some(()),
            _ => None,
        }),
        Expected::Answer(stream, bytes) => {
            let answer = answer(events, *stream)?;
            answer.has_begun()?;
            answer.ends_with(OK)?;
            check(answer.bytes == *bytes, || format!("the message is {:?}", answer.bytes))
        }
        Expected::Some(stream, bytes) => {
            let answer = answer(events, *stream)?;
            check(answer.bytes.len() == *bytes && !answer.ended, || {
                format!("{} bytes came, ended: {}", answer.bytes.len(), answer.ended)
            })
        }
        Expected::Rest(stream, bytes) => {
            let answer = answer(events, *stream)?;
            answer.ends_with(OK)?;
            check(answer.bytes.len() == *bytes, || format!("{} bytes came", answer.bytes.len()))
        }
        Expected::Status(stream, code, says) => {
            let answer = answer(events, *stream)?;
            answer.has_begun()?;
            answer.ends_with(*code)?;
            let message = answer.field("grpc-message").unwrap_or_default();
            check(message.contains(says), || format!("it says {message:?}"))
        }
        Expected::Ends(stream, bytes, code) => {
            let answer = answer(events, *stream)?;
            answer.ends_with(*code)?;
            check(answer.bytes.len() == *bytes, || format!("{} bytes came", answer.bytes.len()))
        }
        Expected::Field(stream, name, part) => {
            let answer = answer(events, *stream)?;
            let is_there = answer.ended && answer.field(name).is_some_and(|value| value.contains(part));
            check(is_there, || format!("{answer:?}"))
        }
        Expected::Http(stream, status, field) => {
            let answer = answer(events, *stream)?;
            check(answer.field(":status") == Some(*status) && answer.ended, || format!("{answer:?}"))?;
            let is_there = field.is_none_or(|(name, value)| answer.field(name) == Some(value));
            check(is_there, || format!("{answer:?}"))
        }
        Expected::Deadline(stream, time) => {
            let answer = answer(events, *stream)?;
            answer.ends_with(OK)?;
            seen_deadline(answer.bytes.get(5..).unwrap_or_default(), *time)
        }
        Expected::Text(part) => take(events, |event| match event {
            Event::Text(text) if text.contains(part) => Some(()),
            _ => None,
        }),
        Expected::Nothing => quiet(events),
    }
}

/// The deadline is counted from when the server read it, so that it is nearer than it was sent, but not by much.
fn seen_deadline(text: &[u8], time: Option<Duration>) -> Result<(), String> {
    const FAR: Duration = Duration::from_secs(1_000);
    let text = String::from_utf8_lossy(text);
    let Some(time) = time else { return check(text == "none", || format!("there is one: {text}")) };
    let seen: u128 = text.parse().map_err(|_| format!("it is {text:?}"))?;
    let is_near = seen <= time.as_nanos() && seen + FAR.as_nanos() >= time.as_nanos();
    check(is_near, || format!("it is {seen} ns"))
}

pub(super) fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn take<T>(events: &mut Vec<Event>, wanted: impl Fn(&Event) -> Option<T>) -> Result<T, String> {
    let found = events.iter().enumerate().find_map(|(place, event)| Some((place, wanted(event)?)));
    let (place, found) = found.ok_or("it did not come")?;
    events.remove(place);
    Ok(found)
}

fn take_one(events: &mut Vec<Event>, wanted: &Event) -> Result<(), String> {
    take(events, |event| (event == wanted).then_some(()))
}

/// Nothing has come that was not expected. Credit, and the server's settings, come as they come.
pub(super) fn quiet(events: &[Event]) -> Result<(), String> {
    let unexpected =
        events.iter().find(|event| !matches!(event, Event::WindowUpdate { .. } | Event::Settings(_)));
    unexpected.map_or(Ok(()), |_| Err(format!("unexpected: {}", brief(events))))
}

pub(super) fn brief(events: &[Event]) -> String {
    let mut text = format!("{events:?}");
    if let Some((end, _)) = text.char_indices().nth(400) {
        text.truncate(end);
    }
    text
}
