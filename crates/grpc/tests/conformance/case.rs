//! One case: what a client does, step by step, and what must come of it. Whatever comes that no step expects is
//! a fault.

use std::time::Duration;

use weir_grpc::{ConnectionEnd, Limits};

use crate::client::{Client, Command, Event};
use crate::wire::{ACK, PING, PREFACE, frame, message, settings, unary};

/// A stream that no case opens by itself: the one with which [`Case::usable`] tries the connection.
const TRIED: u32 = 1_000_001;

/// No case waits so long: PINGs of keepalive are a case of their own.
const NEVER: Duration = Duration::from_secs(10_000_000);

/// Error codes (RFC 9113, 7).
pub(crate) const NO_ERROR: u32 = 0x0;
pub(crate) const PROTOCOL_ERROR: u32 = 0x1;
pub(crate) const FLOW_CONTROL_ERROR: u32 = 0x3;
pub(crate) const STREAM_CLOSED: u32 = 0x5;
pub(crate) const FRAME_SIZE_ERROR: u32 = 0x6;
pub(crate) const REFUSED_STREAM: u32 = 0x7;
pub(crate) const CANCEL: u32 = 0x8;
pub(crate) const COMPRESSION_ERROR: u32 = 0x9;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 0xb;

/// gRPC's status codes.
pub(crate) const OK: u32 = 0;
pub(crate) const INVALID_ARGUMENT: u32 = 3;
pub(crate) const DEADLINE_EXCEEDED: u32 = 4;
pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
pub(crate) const OUT_OF_RANGE: u32 = 11;
pub(crate) const UNIMPLEMENTED: u32 = 12;
pub(crate) const INTERNAL: u32 = 13;

pub(crate) struct Case {
    pub(crate) section: &'static str,
    pub(crate) name: String,
    limits: Limits,
    steps: Vec<Step>,
}

enum Step {
    Send(Vec<u8>),
    Finish,
    Command(Command),
    Wait(Duration),
    Expect(Expected),
}

#[derive(Debug)]
enum Expected {
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
    /// One of these statuses.
    StatusOf(u32, Vec<u32>),
    /// A field with this in its value.
    Field(u32, &'static str, &'static str),
    /// HTTP's status, a field and its value.
    Http(u32, &'static str, Option<(&'static str, &'static str)>),
    Deadline(u32, Option<Duration>),
    Text(&'static str),
    Nothing,
}

/// A case whose connection has completed its handshake.
pub(crate) fn case(section: &'static str, name: impl Into<String>) -> Case {
    let begun = [PREFACE.to_vec(), settings(&[])].concat();
    bare(section, name).send(begun).acks(1)
}

/// A case that begins before the handshake.
pub(crate) fn bare(section: &'static str, name: impl Into<String>) -> Case {
    let limits = Limits { keepalive_interval: NEVER, ..Limits::default() };
    Case { section, name: name.into(), limits, steps: Vec::new() }
}

impl Case {
    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn expect(self, expected: Expected) -> Self {
        self.step(Step::Expect(expected))
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// What is sent without an expectation in between arrives together.
    pub(crate) fn send(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Send(bytes.into()))
    }

    /// Every byte arrives by itself.
    pub(crate) fn send_byte_by_byte(mut self, bytes: impl AsRef<[u8]>) -> Self {
        for &byte in bytes.as_ref() {
            self = self.send([byte]).wait(Duration::ZERO);
        }
        self
    }

    /// The client shuts down its sending half.
    pub(crate) fn finish(self) -> Self {
        self.step(Step::Finish)
    }

    pub(crate) fn shut_down(self) -> Self {
        self.step(Step::Command(Command::ShutDown))
    }

    pub(crate) fn finish_shutdown(self) -> Self {
        self.step(Step::Command(Command::FinishShutdown))
    }

    pub(crate) fn wait(self, time: Duration) -> Self {
        self.step(Step::Wait(time))
    }

    /// A connection error: GOAWAY with this code, and the connection is closed (5.4.1).
    pub(crate) fn error(self, code: u32) -> Self {
        self.error_of([code])
    }

    /// The same where the RFC allows several codes.
    pub(crate) fn error_of(self, codes: impl Into<Vec<u32>>) -> Self {
        self.expect(Expected::Error(codes.into(), None))
    }

    /// The same, and which stream was the last one that was processed.
    pub(crate) fn error_after(self, last: u32, code: u32) -> Self {
        self.expect(Expected::Error(vec![code], Some(last)))
    }

    pub(crate) fn goaway(self, last: u32, code: u32) -> Self {
        self.expect(Expected::Goaway(last, code))
    }

    /// The connection ends without an error.
    pub(crate) fn closed(self) -> Self {
        self.expect(Expected::Closed(true))
    }

    /// The connection ends, and not well.
    pub(crate) fn broken(self) -> Self {
        self.expect(Expected::Closed(false))
    }

    /// A stream error (5.4.2).
    pub(crate) fn reset(self, stream: u32, code: u32) -> Self {
        self.expect(Expected::Reset(stream, code))
    }

    pub(crate) fn settings(self, values: impl Into<Vec<(u16, u32)>>) -> Self {
        self.expect(Expected::Settings(values.into()))
    }

    /// So many acknowledgements of SETTINGS.
    pub(crate) fn acks(self, count: usize) -> Self {
        self.expect(Expected::SettingsAcks(count))
    }

    pub(crate) fn pong(self, opaque: &[u8; 8]) -> Self {
        self.expect(Expected::Pong(*opaque))
    }

    /// The server sends a PING, and the client acknowledges it.
    pub(crate) fn ping(self) -> Self {
        self.expect(Expected::Ping)
    }

    /// The server sends a PING, and the client does not acknowledge it.
    pub(crate) fn lost_ping(self) -> Self {
        self.expect(Expected::LostPing)
    }

    /// At least one WINDOW_UPDATE on this stream.
    pub(crate) fn credit(self, stream: u32) -> Self {
        self.expect(Expected::Credit(stream))
    }

    /// One message with this text comes back, and grpc-status 0.
    pub(crate) fn echo(self, stream: u32, text: &str) -> Self {
        self.answer(stream, message(text))
    }

    /// Exactly these bytes come back, and grpc-status 0.
    pub(crate) fn answer(self, stream: u32, bytes: impl Into<Vec<u8>>) -> Self {
        self.expect(Expected::Answer(stream, bytes.into()))
    }

    /// So many bytes of DATA and no more.
    pub(crate) fn some(self, stream: u32, bytes: usize) -> Self {
        self.expect(Expected::Some(stream, bytes))
    }

    /// So many further bytes, and grpc-status 0.
    pub(crate) fn rest(self, stream: u32, bytes: usize) -> Self {
        self.expect(Expected::Rest(stream, bytes))
    }

    /// The call ends with this status of gRPC.
    pub(crate) fn status(self, stream: u32, code: u32) -> Self {
        self.expect(Expected::Status(stream, code, ""))
    }

    /// The same, and its message has this in it.
    pub(crate) fn status_says(self, stream: u32, code: u32, says: &'static str) -> Self {
        self.expect(Expected::Status(stream, code, says))
    }

    /// The same where the specification allows several.
    pub(crate) fn status_of(self, stream: u32, codes: impl Into<Vec<u32>>) -> Self {
        self.expect(Expected::StatusOf(stream, codes.into()))
    }

    /// So many further bytes, and then this status.
    pub(crate) fn ends(self, stream: u32, bytes: usize, code: u32) -> Self {
        self.expect(Expected::Ends(stream, bytes, code))
    }

    /// The answer ends with a field that has this in its value.
    pub(crate) fn field_has(self, stream: u32, name: &'static str, part: &'static str) -> Self {
        self.expect(Expected::Field(stream, name, part))
    }

    /// The request ends with this status of HTTP.
    pub(crate) fn http(self, stream: u32, status: &'static str) -> Self {
        self.expect(Expected::Http(stream, status, None))
    }

    pub(crate) fn http_with(
        self,
        stream: u32,
        status: &'static str,
        name: &'static str,
        value: &'static str,
    ) -> Self {
        self.expect(Expected::Http(stream, status, Some((name, value))))
    }

    /// The service saw a deadline of this time, or none.
    pub(crate) fn deadline(self, stream: u32, time: Option<Duration>) -> Self {
        self.expect(Expected::Deadline(stream, time))
    }

    /// Bytes that are not HTTP/2 and have this in them.
    pub(crate) fn text(self, part: &'static str) -> Self {
        self.expect(Expected::Text(part))
    }

    /// Nothing comes.
    pub(crate) fn nothing(self) -> Self {
        self.expect(Expected::Nothing)
    }

    /// The connection serves a further call.
    pub(crate) fn usable(self) -> Self {
        self.send(unary(TRIED, "still there")).echo(TRIED, "still there")
    }

    /// What is wrong, if the case does not hold.
    pub(crate) fn fault(self, document: &str) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let (section, name) = (self.section, self.name.clone());
        let fault = runtime.expect("a runtime").block_on(self.run()).err()?;
        Some(format!("{document}, {section}: {name}: {fault}"))
    }

    async fn run(self) -> Result<(), String> {
        let mut client = Client::new(self.limits);
        for (number, step) in self.steps.into_iter().enumerate() {
            match step {
                Step::Send(bytes) => client.send(&bytes).await,
                Step::Finish => client.finish().await,
                Step::Command(command) => client.command(command),
                Step::Wait(Duration::ZERO) => tokio::task::yield_now().await,
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Expect(expected) => {
                    client.read().await?;
                    let said = meet(&mut client, &expected).await;
                    said.map_err(|why| {
                        let came = brief(&client.events);
                        format!("step {number} expected {expected:?}: {why}; what came: {came}")
                    })?;
                }
            }
        }
        client.read().await?;
        quiet(&client.events)
    }
}

/// Takes what is expected out of the events.
async fn meet(client: &mut Client, expected: &Expected) -> Result<(), String> {
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
        Expected::StatusOf(stream, codes) => {
            let answer = answer(events, *stream)?;
            codes.iter().find_map(|code| answer.ends_with(*code).ok()).ok_or_else(|| format!("{answer:?}"))
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

/// What has come on one stream.
#[derive(Debug, Default)]
struct Answer {
    fields: Vec<(String, String)>,
    bytes: Vec<u8>,
    blocks: usize,
    ended: bool,
}

impl Answer {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.0 == name).map(|field| &*field.1)
    }

    fn has_begun(&self) -> Result<(), String> {
        let status = self.fields.first().map(|field| (&*field.0, &*field.1));
        check(status == Some((":status", "200")), || format!("{:?}", self.fields))?;
        check(self.field("content-type") == Some("application/grpc"), || format!("{:?}", self.fields))
    }

    fn ends_with(&self, code: u32) -> Result<(), String> {
        check(self.ended, || "it has not ended".to_owned())?;
        check(self.field("grpc-status") == Some(&*code.to_string()), || format!("{:?}", self.fields))
    }
}

fn answer(events: &mut Vec<Event>, of: u32) -> Result<Answer, String> {
    let mut answer = Answer::default();
    let mut fault = Ok(());
    events.retain(|event| {
        let behind = answer.ended;
        match event {
            Event::Headers { stream, fields, end } if *stream == of => {
                answer.fields.extend_from_slice(fields);
                answer.blocks += 1;
                answer.ended = *end;
            }
            Event::Data { stream, bytes, end } if *stream == of => {
                answer.bytes.extend_from_slice(bytes);
                answer.ended = *end;
            }
            _ => return true,
        }
        if behind || answer.blocks > 2 {
            fault = Err(format!("{event:?} came behind the end"));
        }
        false
    });
    fault.map(|()| answer)
}

fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
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
fn quiet(events: &[Event]) -> Result<(), String> {
    let unexpected =
        events.iter().find(|event| !matches!(event, Event::WindowUpdate { .. } | Event::Settings(_)));
    unexpected.map_or(Ok(()), |_| Err(format!("unexpected: {}", brief(events))))
}

fn brief(events: &[Event]) -> String {
    let mut text = format!("{events:?}");
    if let Some((end, _)) = text.char_indices().nth(1_000) {
        text.truncate(end);
    }
    text
}
