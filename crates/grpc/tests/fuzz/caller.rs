//! A client that keeps to the rules: it makes calls of all methods, in pieces, and knows what must come back.

use std::collections::{BTreeMap, VecDeque};

use crate::echo::{DEADLINE, HELD, LARGE, OTHER, SLOW, STREAM, UNARY, UNREAD};
use crate::monitor::Monitor;
use crate::script::Script;
use crate::wire::{
    CONTINUATION, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PADDED, PING, PRIORITIZED, PRIORITY,
    Pair, block, call_of, data, frame, headers, message, reset, settings, string, window_update,
};

const METHODS: [&str; 9] = [UNARY, UNARY, SLOW, STREAM, HELD, DEADLINE, LARGE, UNREAD, OTHER];

/// The most bytes of one message.
const LONGEST: usize = 40_000;

/// The most that the client grants to one stream, and to the connection at once.
const GRANT: u32 = 1 << 20;

#[derive(Default)]
pub(crate) struct Caller {
    next: u32,
    pub(crate) calls: BTreeMap<u32, CallOfClient>,
    grants: u32,
}

/// One call of the client.
pub(crate) struct CallOfClient {
    path: &'static str,
    /// Unsent bytes; true if END_STREAM was sent; true if the client has reset it.
    rest: VecDeque<u8>,
    pub(crate) ended: bool,
    pub(crate) is_reset: bool,
    /// The DATA that must come back, if it is known.
    expected: Option<Vec<u8>>,
    grants: u32,
}

impl CallOfClient {
    /// True if an answer must come once all of the call was sent.
    fn is_answered(&self) -> bool {
        self.ended && !self.is_reset && !matches!(self.path, HELD | UNREAD)
    }
}

impl Caller {
    /// The next thing that such a client does: a frame or a few.
    pub(crate) fn acts(&mut self, script: &mut Script<'_>, monitor: &Monitor) -> Vec<u8> {
        match script.below(16) {
            0..4 => self.open(script, true, monitor),
            4 | 5 => self.open(script, false, monitor),
            6..11 => self.more(script, monitor),
            11 => self.cancel(script),
            12 => self.grant(script),
            13 => settings(&[setting(script), setting(script)][..script.below(3)]),
            14 => frame(PING, 0, 0, [script.byte(); 8]),
            _ => match script.below(3) {
                // A stream cannot depend on itself.
                0 => frame(PRIORITY, 0, 1 + script.below(50) as u32, [0, 0, 0, 0x80 | script.byte(), 9]),
                1 => frame(0x20, script.byte(), script.below(9) as u32, vec![7; script.below(300)]),
                _ => self.cancel(script),
            },
        }
    }

    fn open(&mut self, script: &mut Script<'_>, whole: bool, monitor: &Monitor) -> Vec<u8> {
        self.next += if self.next == 0 { 1 } else { 2 + 2 * u32::from(script.once_in(9)) };
        let (id, path) = (self.next, script.pick(&METHODS));
        let (body, expected) = body(script, path);
        let length = body.len().to_string();
        let mut fields: Vec<Pair<'_>> = call_of(path);
        if script.once_in(3) {
            fields.push(("content-length", &length));
        }
        let fields = [block(&fields), indexing(script)].concat();
        let call =
            CallOfClient { path, rest: body.into(), ended: false, is_reset: false, expected, grants: 0 };
        self.calls.insert(id, call);
        let mut bytes = header_frames(script, id, &fields);
        if whole {
            bytes.extend(self.send(script, id, monitor, usize::MAX));
        }
        bytes
    }

    fn more(&mut self, script: &mut Script<'_>, monitor: &Monitor) -> Vec<u8> {
        let open: Vec<u32> =
            self.calls.iter().filter(|(_, call)| !call.ended && !call.is_reset).map(|it| *it.0).collect();
        if open.is_empty() {
            return Vec::new();
        }
        let (id, most) = (script.pick(&open), 1 + script.below(20_000));
        self.send(script, id, monitor, most)
    }

    /// Sends some of a call, as far as the server's windows and its own state allow.
    fn send(&mut self, script: &mut Script<'_>, id: u32, monitor: &Monitor, most: usize) -> Vec<u8> {
        let Some(call) = self.calls.get_mut(&id) else { return Vec::new() };
        let (sent, credited, ended) =
            monitor.streams.get(&id).map_or((0, 0, false), |seen| (seen.sent, seen.credited, seen.ended));
        if ended {
            call.is_reset = true;
            return Vec::new();
        }
        // At most what the server announces first: its SETTINGS may not have come yet.
        let window = (monitor.their_initial + credited - sent)
            .min(monitor.connection.credited - monitor.connection.sent);
        let mut window = usize::try_from(window).unwrap_or(0);
        let (mut bytes, mut most) = (Vec::new(), most.min(call.rest.len()));
        loop {
            let padding = if script.once_in(4) { Some(script.below(256)) } else { None };
            let overhead = padding.map_or(0, |padding| padding + 1);
            let size = most.min(16_384 - overhead).min(window.saturating_sub(overhead));
            if size == 0 && (most > 0 || overhead > window) {
                return bytes;
            }
            let content: Vec<u8> = call.rest.drain(..size).collect();
            most -= size;
            window -= size + overhead;
            let ends = call.rest.is_empty() && script.once_in(2);
            call.ended = ends;
            let flags = if ends { END_STREAM } else { 0 };
            bytes.extend(match padding {
                Some(padding) => {
                    data(id, flags | PADDED, [&[padding as u8][..], &content, &vec![0; padding]].concat())
                }
                None => data(id, flags, content),
            });
            if ends {
                return bytes;
            }
            if call.rest.is_empty() {
                call.ended = true;
                bytes.extend(headers(id, END_STREAM, &[("x-checksum", "1")]));
                return bytes;
            }
            if most == 0 {
                return bytes;
            }
        }
    }

    fn cancel(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let open: Vec<u32> = self.calls.iter().filter(|(_, call)| !call.is_reset).map(|it| *it.0).collect();
        if open.is_empty() || script.once_in(2) {
            return Vec::new();
        }
        let id = script.pick(&open);
        if let Some(call) = self.calls.get_mut(&id) {
            call.is_reset = true;
        }
        reset(id, script.pick(&[0, 8, 2, 0xffff_ffff]))
    }

    fn grant(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let increment = 1 + script.below(GRANT as usize / 16) as u32;
        if script.once_in(2) && self.grants < 64 {
            self.grants += 1;
            return window_update(0, increment);
        }
        let open: Vec<u32> = self.calls.keys().copied().collect();
        if open.is_empty() {
            return Vec::new();
        }
        let id = script.pick(&open);
        match self.calls.get_mut(&id) {
            Some(call) if call.grants < 16 => {
                call.grants += 1;
                window_update(id, increment)
            }
            _ => Vec::new(),
        }
    }

    /// Ends all calls that have not ended, and gives all windows that may be needed.
    pub(crate) fn ends(&mut self, monitor: &Monitor) -> Vec<u8> {
        let mut bytes = [window_update(0, 1 << 30), settings(&[(INITIAL_WINDOW_SIZE, 1 << 30)])].concat();
        for (id, call) in &mut self.calls {
            let is_over = monitor.streams.get(id).is_some_and(|seen| seen.ended);
            if !is_over && !call.is_reset && !call.is_answered() {
                call.is_reset = true;
                bytes.extend(reset(*id, 8));
            }
        }
        bytes
    }

    /// Checks that each answer is that of its call. `all` if nothing is under way any more.
    pub(crate) fn checks(&self, monitor: &Monitor, all: bool) -> usize {
        let mut answered = 0;
        for (id, call) in &self.calls {
            let Some(seen) = monitor.streams.get(id) else { continue };
            assert!(matches!(seen.reset, None | Some(0 | 7)), "call {id} was reset: {:?}", seen.reset);
            let is_whole = seen.ended && seen.reset != Some(7);
            if let Some(expected) = &call.expected {
                assert!(expected.starts_with(&seen.received), "call {id} of {}", call.path);
                assert!(!is_whole || seen.received == *expected, "call {id} of {} ended early", call.path);
            }
            if is_whole {
                assert_eq!(seen.grpc_status.as_deref(), Some("0"), "call {id} of {}", call.path);
                answered += 1;
            }
            assert!(!all || seen.ended || !call.is_answered(), "call {id} of {} has no answer", call.path);
        }
        answered
    }
}

/// The bytes of a call, and those of its answer.
fn body(script: &mut Script<'_>, path: &str) -> (Vec<u8>, Option<Vec<u8>>) {
    let length = if script.once_in(5) { script.below(LONGEST) } else { script.below(50) };
    let text = match script.below(8) {
        0 => b"wait".to_vec(),
        _ => vec![b'x'; length],
    };
    match path {
        LARGE => {
            let bytes = length * 4;
            (message(bytes.to_string()), Some(message(vec![7; bytes])))
        }
        STREAM => {
            let all = message(&text).repeat(script.below(4));
            (all.clone(), Some(all))
        }
        DEADLINE => (message(&text), Some(message("none"))),
        HELD | UNREAD => (message(&text), Some(Vec::new())),
        _ => (message(&text), Some(message(&text))),
    }
}

/// Fields that go into the dynamic table, and references to them.
fn indexing(script: &mut Script<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..script.below(4) {
        bytes.push(0x40);
        string(&mut bytes, b"x-field");
        string(&mut bytes, &vec![b'v'; script.below(600)]);
        // The newest, which is larger than no table.
        bytes.push(0x80 | 62);
    }
    bytes
}

fn header_frames(script: &mut Script<'_>, id: u32, block: &[u8]) -> Vec<u8> {
    let (first, rest) =
        block.split_at(if script.once_in(4) { script.below(block.len()) } else { block.len() });
    let (mut flags, mut payload) = (if rest.is_empty() { END_HEADERS } else { 0 }, first.to_vec());
    if script.once_in(6) {
        flags |= PRIORITIZED;
        payload.splice(..0, [0, 0, 0, 0, 9]);
    }
    if script.once_in(6) {
        let padding = script.below(60);
        flags |= PADDED;
        payload.insert(0, padding as u8);
        payload.resize(payload.len() + padding, 0);
    }
    let mut bytes = frame(HEADERS, flags, id, payload);
    if !rest.is_empty() {
        bytes.extend(frame(CONTINUATION, END_HEADERS, id, rest));
    }
    bytes
}

fn setting(script: &mut Script<'_>) -> (u16, u32) {
    match script.below(3) {
        0 => (INITIAL_WINDOW_SIZE, script.pick(&[0, 1, 100, 65_535, GRANT])),
        1 => (script.pick(&[1, 3, 6, 0x99]), script.below(5_000) as u32),
        _ => (5, 16_384 + script.below(5_000) as u32),
    }
}
