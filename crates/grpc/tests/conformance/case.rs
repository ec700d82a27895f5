//! One case: what a client does, step by step, and what must come of it. Whatever comes that no step expects is
//! a fault.

mod answer;
mod expected;

use std::time::Duration;

use weir_grpc::ConnectionLimits;

use self::expected::{Expected, brief, meet, quiet};
use crate::client::{Client, Command};
use crate::link::Link;
use crate::wire::{PREFACE, message, settings, unary};

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
pub(crate) const UNIMPLEMENTED: u32 = 12;
pub(crate) const INTERNAL: u32 = 13;

/// A table of cases: a row has what a case is called, and the steps that follow.
macro_rules! cases {
    ($($case:ident($($about:expr),*) $(=> $($step:ident($($given:expr),*)),+)?;)*) => {
        vec![$($case($($about),*)$($(.$step($($given),*))+)?),*]
    };
}
pub(crate) use cases;

pub(crate) struct Case {
    pub(crate) section: &'static str,
    pub(crate) name: String,
    limits: ConnectionLimits,
    steps: Vec<Step>,
}

enum Step {
    Send(Vec<u8>),
    Finish,
    Command(Command),
    Wait(Duration),
    Expect(Expected),
}

/// A case whose connection has completed its handshake.
pub(crate) fn case(section: &'static str, name: impl Into<String>) -> Case {
    let begun = [PREFACE.to_vec(), settings(&[])].concat();
    bare(section, name).send(begun).acks(1)
}

/// A case that begins before the handshake.
pub(crate) fn bare(section: &'static str, name: impl Into<String>) -> Case {
    let limits = ConnectionLimits { keepalive_interval: NEVER, ..ConnectionLimits::default() };
    Case { section, name: name.into(), limits, steps: Vec::new() }
}

/// Bytes that a client sends, in one piece or in several.
pub(crate) trait Sent {
    fn into_bytes(self) -> Vec<u8>;
}

impl Sent for Vec<u8> {
    fn into_bytes(self) -> Vec<u8> {
        self
    }
}

impl Sent for &[u8] {
    fn into_bytes(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Sent for &str {
    fn into_bytes(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl<const N: usize> Sent for [u8; N] {
    fn into_bytes(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl<const N: usize> Sent for [Vec<u8>; N] {
    fn into_bytes(self) -> Vec<u8> {
        self.concat()
    }
}

/// The expectations of a case, each a method with these arguments.
macro_rules! expectations {
    ($($(#[$doc:meta])* $name:ident($($given:ident: $type:ty),*) => $expected:ident $(($($value:expr),*))?;)*) => {
        impl Case {
            $($(#[$doc])*
            pub(crate) fn $name(self, $($given: $type),*) -> Self {
                self.expect(Expected::$expected $(($($value),*))?)
            })*
        }
    };
}

expectations! {
    /// A connection error: GOAWAY with this code, and the connection is closed (5.4.1).
    error(code: u32) => Error(vec![code], None);
    /// The same where the RFC allows several codes.
    error_of(codes: impl Into<Vec<u32>>) => Error(codes.into(), None);
    /// The same, and which stream was the last one that was processed.
    error_after(last: u32, code: u32) => Error(vec![code], Some(last));
    goaway(last: u32, code: u32) => Goaway(last, code);
    /// The connection ends without an error.
    closed() => Closed(true);
    /// The connection ends, and not well.
    broken() => Closed(false);
    /// A stream error (5.4.2).
    reset(stream: u32, code: u32) => Reset(stream, code);
    settings(values: impl Into<Vec<(u16, u32)>>) => Settings(values.into());
    /// So many acknowledgements of SETTINGS.
    acks(count: usize) => SettingsAcks(count);
    pong(opaque: &[u8; 8]) => Pong(*opaque);
    /// The server sends a PING, and the client acknowledges it.
    ping() => Ping;
    /// The server sends a PING, and the client does not acknowledge it.
    lost_ping() => LostPing;
    /// At least one WINDOW_UPDATE on this stream.
    credit(stream: u32) => Credit(stream);
    /// Exactly these bytes come back, and grpc-status 0.
    answer(stream: u32, bytes: impl Into<Vec<u8>>) => Answer(stream, bytes.into());
    /// So many bytes of DATA and no more.
    some(stream: u32, bytes: usize) => Some(stream, bytes);
    /// So many further bytes, and grpc-status 0.
    rest(stream: u32, bytes: usize) => Rest(stream, bytes);
    /// The call ends with this status of gRPC.
    status(stream: u32, code: u32) => Status(stream, code, "");
    /// The same, and its message has this in it.
    status_says(stream: u32, code: u32, says: &'static str) => Status(stream, code, says);
    /// So many further bytes, and then this status.
    ends(stream: u32, bytes: usize, code: u32) => Ends(stream, bytes, code);
    /// The answer ends with a field that has this in its value.
    field_has(stream: u32, name: &'static str, part: &'static str) => Field(stream, name, part);
    /// The request ends with this status of HTTP.
    http(stream: u32, status: &'static str) => Http(stream, status, None);
    http_with(stream: u32, status: &'static str, name: &'static str, value: &'static str) =>
        Http(stream, status, Some((name, value)));
    /// The service saw a deadline of this time, or none.
    deadline(stream: u32, time: Option<Duration>) => Deadline(stream, time);
    /// Bytes that are not HTTP/2 and have this in them.
    text(part: &'static str) => Text(part);
    /// Nothing comes.
    nothing() => Nothing;
}

impl Case {
    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn expect(self, expected: Expected) -> Self {
        self.step(Step::Expect(expected))
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut ConnectionLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Sends bytes. All that is sent without an expectation in between arrives together.
    pub(crate) fn send(self, bytes: impl Sent) -> Self {
        self.step(Step::Send(bytes.into_bytes()))
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

    /// A request whose answer is complete is read on for a while; then it is not needed any more (8.1).
    pub(crate) fn released(self, stream: u32) -> Self {
        self.nothing().wait(Duration::from_secs(1)).reset(stream, NO_ERROR)
    }

    /// One message with this text comes back, and grpc-status 0.
    pub(crate) fn echo(self, stream: u32, text: &str) -> Self {
        self.answer(stream, message(text))
    }

    /// The connection serves a further call.
    pub(crate) fn usable(self) -> Self {
        self.send(unary(TRIED, "still there")).echo(TRIED, "still there")
    }

    /// The fault, if the case does not hold.
    pub(crate) fn fault(self, document: &str, link: Link) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let (section, name) = (self.section, self.name.clone());
        let fault = runtime.expect("a runtime").block_on(self.run(link)).err()?;
        Some(format!("{document}, {section}: {name}: {fault}"))
    }

    async fn run(self, link: Link) -> Result<(), String> {
        let mut client = Client::new(self.limits, link).await;
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
