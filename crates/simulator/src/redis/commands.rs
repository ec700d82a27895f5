//! The commands that work on keys: their names, how many words they have, and which of them are keys.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::reply::CommandResult;
use super::{hashes, key_commands, lists, scans, score_ranges, scored, streams, strings};

/// Function of a command.
type CommandRun = fn(&mut Keyspace, &[Vec<u8>]) -> CommandResult;

/// A command.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandEntry {
    /// Name in lower case.
    pub(super) name: &'static str,
    /// Number of words, with the name; a negative number is a lower bound.
    arity: isize,
    pub(super) writes: bool,
    keys: KeyWords,
    pub(super) run: CommandRun,
}

/// Positions of the keys among the words.
#[derive(Debug, Clone, Copy)]
enum KeyWords {
    None,
    One,
    All,
}

impl CommandEntry {
    pub(super) fn has_arity(&self, words: usize) -> bool {
        let least = self.arity.unsigned_abs();
        if self.arity < 0 { words >= least } else { words == least }
    }

    /// Runs it, if it has enough words.
    pub(super) fn call(&self, keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
        if !self.has_arity(args.len()) {
            return Err(SimulatedError::arity(self.name));
        }
        (self.run)(keys, args)
    }

    /// The keys among the words.
    pub(super) fn keys<'a>(&self, args: &'a [Vec<u8>]) -> &'a [Vec<u8>] {
        match self.keys {
            KeyWords::None => &[],
            KeyWords::One => args.get(1..2).unwrap_or_default(),
            KeyWords::All => args.get(1..).unwrap_or_default(),
        }
    }
}

macro_rules! commands {
    ($($name:literal $arity:literal $does:ident $keys:ident $run:path;)*) => {
        &[$(CommandEntry { name: $name, arity: $arity, writes: commands!($does), keys: KeyWords::$keys, run: $run }),*]
    };
    (reads) => { false };
    (writes) => { true };
}

/// All commands, by name.
const COMMANDS: &[CommandEntry] = commands! {
    "dbsize" 1 reads None key_commands::dbsize;
    "del" -2 writes All key_commands::del;
    "exists" -2 reads All key_commands::exists;
    "expire" -3 writes One key_commands::expire;
    "expireat" -3 writes One key_commands::expireat;
    "flushall" -1 writes None key_commands::flush;
    "flushdb" -1 writes None key_commands::flush;
    "get" 2 reads One strings::get;
    "getrange" 4 reads One strings::getrange;
    "hdel" -3 writes One hashes::hdel;
    "hexists" 3 reads One hashes::hexists;
    "hget" 3 reads One hashes::hget;
    "hgetall" 2 reads One hashes::hgetall;
    "hincrby" 4 writes One hashes::hincrby;
    "hlen" 2 reads One hashes::hlen;
    "hmget" -3 reads One hashes::hmget;
    "hscan" -3 reads One scans::hscan;
    "hset" -4 writes One hashes::hset;
    "incr" 2 writes One strings::incr;
    "incrby" 3 writes One strings::incrby;
    "lindex" 3 reads One lists::lindex;
    "llen" 2 reads One lists::llen;
    "lpop" -2 writes One lists::lpop;
    "lpush" -3 writes One lists::lpush;
    "lrange" 4 reads One lists::lrange;
    "lset" 4 writes One lists::lset;
    "ltrim" 4 writes One lists::ltrim;
    "mget" -2 reads All strings::mget;
    "persist" 2 writes One key_commands::persist;
    "pexpire" -3 writes One key_commands::pexpire;
    "pexpireat" -3 writes One key_commands::pexpireat;
    "pexpiretime" 2 reads One key_commands::pexpiretime;
    "pttl" 2 reads One key_commands::pttl;
    "rpop" -2 writes One lists::rpop;
    "rpush" -3 writes One lists::rpush;
    "scan" -2 reads None scans::scan;
    "set" -3 writes One strings::set;
    "setrange" 4 writes One strings::setrange;
    "strlen" 2 reads One strings::strlen;
    "ttl" 2 reads One key_commands::ttl;
    "type" 2 reads One key_commands::type_of;
    "unlink" -2 writes All key_commands::del;
    "xadd" -5 writes One streams::xadd;
    "xdel" -3 writes One streams::xdel;
    "xlen" 2 reads One streams::xlen;
    "xrange" -4 reads One streams::xrange;
    "xrevrange" -4 reads One streams::xrevrange;
    "xtrim" -4 writes One streams::xtrim;
    "zadd" -4 writes One scored::zadd;
    "zcard" 2 reads One scored::zcard;
    "zcount" 4 reads One score_ranges::zcount;
    "zincrby" 4 writes One scored::zincrby;
    "zrange" -4 reads One score_ranges::zrange;
    "zrangebyscore" -4 reads One score_ranges::zrangebyscore;
    "zrank" 3 reads One scored::zrank;
    "zrem" -3 writes One scored::zrem;
    "zremrangebyrank" 4 writes One scored::zremrangebyrank;
    "zremrangebyscore" 4 writes One scored::zremrangebyscore;
    "zscan" -3 reads One scans::zscan;
    "zscore" 3 reads One scored::zscore;
};

/// Finds a command by its name in any case.
pub(super) fn find(name: &[u8]) -> Option<&'static CommandEntry> {
    let name = name.to_ascii_lowercase();
    let place = COMMANDS.binary_search_by(|entry| entry.name.as_bytes().cmp(&name)).ok()?;
    COMMANDS.get(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_in_order() {
        assert!(COMMANDS.is_sorted_by_key(|entry| entry.name));
        assert!(COMMANDS.iter().all(|entry| find(entry.name.to_uppercase().as_bytes()).is_some()));
        assert!(find(b"xreadgroup").is_none());
    }
}
