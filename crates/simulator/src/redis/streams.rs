//! Commands of streams. There are no groups: queues of the kind `stream` need a real Redis.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::numbers::integer;
use super::reply::{CommandResult, SimulatedReply};
use super::stored_stream::{EntryId, StoredStream};

pub(super) fn xadd(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (trim, words) = StreamTrim::parse(&args[2..], true)?;
    let rest = &args[2 + words..];
    let Some((id, fields)) = rest.split_first() else { return Err(SimulatedError::arity("xadd")) };
    if fields.len() < 2 || fields.len() % 2 == 1 {
        return Err(SimulatedError::arity("xadd"));
    }
    let now = u64::try_from(keys.now_ms()).unwrap_or_default();
    let id = AskedId::parse(id)?;
    let last = keys.read::<StoredStream>(&args[1])?.map_or(EntryId::default(), |stream| stream.last);
    let id = id.after(last, now)?;
    keys.write(&args[1], |stream: &mut StoredStream| {
        stream.entries.insert(id, fields.to_vec());
        stream.last = id;
        trim.apply(stream);
        SimulatedReply::bulk(id.text())
    })
}

/// The id that XADD is to give.
enum AskedId {
    /// An id from the clock.
    Any,
    /// The next id within a millisecond.
    Within(u64),
    Exactly(EntryId),
}

impl AskedId {
    fn parse(text: &[u8]) -> Result<Self, SimulatedError> {
        if text == b"*" {
            return Ok(Self::Any);
        }
        if let Some(ms) = text.strip_suffix(b"-*") {
            return Ok(Self::Within(EntryId::parse(ms, 0)?.ms));
        }
        let id = EntryId::parse(text, 0)?;
        if id == EntryId::default() {
            return Err(SimulatedError::new("ERR The ID specified in XADD must be greater than 0-0"));
        }
        Ok(Self::Exactly(id))
    }

    fn after(self, last: EntryId, now: u64) -> Result<EntryId, SimulatedError> {
        const SMALL: SimulatedError = SimulatedError::new(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        );
        let fresh = EntryId { ms: now, seq: 0 };
        let id = match self {
            Self::Any if fresh > last => Some(fresh),
            Self::Any => last.next(),
            Self::Within(ms) if ms == last.ms => last.next().filter(|id| id.ms == ms),
            Self::Within(ms) => Some(EntryId { ms, seq: 0 }),
            Self::Exactly(id) => Some(id),
        };
        id.filter(|id| *id > last).ok_or(SMALL)
    }
}

pub(super) fn xlen(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::count(keys.read::<StoredStream>(&args[1])?.map_or(0, |stream| stream.entries.len())))
}

pub(super) fn xdel(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let removed = keys.edit(&args[1], |stream: &mut StoredStream| {
        let ids = args[2..].iter().map(|id| EntryId::parse(id, 0)).collect::<Result<Vec<_>, _>>()?;
        Ok(ids.iter().filter(|id| stream.entries.remove(id).is_some()).count())
    })?;
    Ok(SimulatedReply::count(removed.unwrap_or(Ok(0))?))
}

pub(super) fn xtrim(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (trim, words) = StreamTrim::parse(&args[2..], false)?;
    if words == 0 || args.len() > 2 + words {
        return Err(SimulatedError::SYNTAX);
    }
    let removed = keys.edit(&args[1], |stream: &mut StoredStream| trim.apply(stream))?;
    Ok(SimulatedReply::count(removed.unwrap_or(0)))
}

pub(super) fn xrange(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    range(keys, args, [&args[2], &args[3]], false)
}

pub(super) fn xrevrange(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    range(keys, args, [&args[3], &args[2]], true)
}

fn range(keys: &mut Keyspace, args: &[Vec<u8>], [start, end]: [&[u8]; 2], is_reverse: bool) -> CommandResult {
    const START: SimulatedError = SimulatedError::new("ERR invalid start ID for the interval");
    const END: SimulatedError = SimulatedError::new("ERR invalid end ID for the interval");
    let start = match start.strip_prefix(b"(") {
        Some(id) => EntryId::parse(id, 0)?.next().ok_or(START)?,
        None => bound(start, 0)?,
    };
    let end = match end.strip_prefix(b"(") {
        Some(id) => EntryId::parse(id, u64::MAX)?.previous().ok_or(END)?,
        None => bound(end, u64::MAX)?,
    };
    let count = match &args[4..] {
        [] => usize::MAX,
        [word, count] if word.eq_ignore_ascii_case(b"COUNT") => usize::try_from(integer(count)?).unwrap_or(0),
        _ => return Err(SimulatedError::SYNTAX),
    };
    let Some(stream) = keys.read::<StoredStream>(&args[1])? else {
        return Ok(SimulatedReply::Array(Vec::new()));
    };
    if count == 0 {
        return Ok(SimulatedReply::NilArray);
    }
    if start > end {
        return Ok(SimulatedReply::Array(Vec::new()));
    }
    let shown = |(id, fields): (&EntryId, &Vec<Vec<u8>>)| {
        SimulatedReply::Array(vec![
            SimulatedReply::bulk(id.text()),
            SimulatedReply::bulks(fields.iter().cloned()),
        ])
    };
    let entries = stream.entries.range(start..=end);
    Ok(SimulatedReply::Array(if is_reverse {
        entries.rev().take(count).map(shown).collect()
    } else {
        entries.take(count).map(shown).collect()
    }))
}

fn bound(text: &[u8], seq: u64) -> Result<EntryId, SimulatedError> {
    match text {
        b"-" => Ok(EntryId::default()),
        b"+" => Ok(EntryId::MAX),
        _ => EntryId::parse(text, seq),
    }
}

/// Entries that a trim removes.
#[derive(Debug)]
enum StreamTrim {
    None,
    Longer(usize),
    Before(EntryId),
}

impl StreamTrim {
    /// Reads the words before the id. Returns how many there are, too.
    fn parse(words: &[Vec<u8>], adds: bool) -> Result<(Self, usize), SimulatedError> {
        let Some(word) = words.first().map(|word| word.to_ascii_uppercase()) else {
            return Ok((Self::None, 0));
        };
        let is_length = word == b"MAXLEN";
        if !is_length && word != b"MINID" {
            return Ok((Self::None, 0));
        }
        let has_sign = words.get(1).is_some_and(|sign| sign == b"=" || sign == b"~");
        let used = if has_sign { 3 } else { 2 };
        let number = words.get(used - 1).ok_or(if adds {
            SimulatedError::arity("xadd")
        } else {
            SimulatedError::SYNTAX
        })?;
        if !is_length {
            return Ok((Self::Before(EntryId::parse(number, 0)?), used));
        }
        const NEGATIVE: SimulatedError = SimulatedError::new("ERR The MAXLEN argument must be >= 0.");
        Ok((Self::Longer(usize::try_from(integer(number)?).map_err(|_| NEGATIVE)?), used))
    }

    /// Returns how many entries went.
    fn apply(&self, stream: &mut StoredStream) -> usize {
        let before = stream.entries.len();
        match self {
            Self::None => {}
            Self::Longer(most) => {
                while stream.entries.len() > *most {
                    stream.entries.pop_first();
                }
            }
            Self::Before(id) => stream.entries = stream.entries.split_off(id),
        }
        before - stream.entries.len()
    }
}
