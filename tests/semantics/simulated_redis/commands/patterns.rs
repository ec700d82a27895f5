//! Commands with places for random words.

/// A word in lower case stands for a random one of its kind, and what follows `...` stands once or a few times.
pub(super) const PATTERNS: &[&str] = &[
    "GET key",
    "GET key",
    "MGET ... key",
    "STRLEN key",
    "SET key value",
    "SET key value",
    "SET key value NX GET",
    "SET key value XX",
    "SET key value KEEPTTL",
    "SET key value PX span",
    "SET key value PXAT time",
    "SET key value EX span GET",
    "SET key value option option",
    "SET key value option span",
    "SETRANGE key integer value",
    "GETRANGE key integer integer",
    "INCR key",
    "INCRBY key integer",
    "DEL ... key",
    "UNLINK key",
    "EXISTS ... key",
    "TYPE key",
    "PERSIST key",
    "TTL key",
    "PTTL key",
    "PEXPIRETIME key",
    "PEXPIRE key span",
    "EXPIRE key span",
    "PEXPIREAT key time",
    "EXPIREAT key time GT",
    "PEXPIREAT key time option",
    "PEXPIRE key span LT",
    "HSET key ... field value",
    "HSET key ... field value",
    "HSET key field value field",
    "HGET key field",
    "HMGET key ... field",
    "HDEL key ... field",
    "HLEN key",
    "HEXISTS key field",
    "HGETALL key",
    "HINCRBY key field integer",
    "HSCAN key 0",
    "HSCAN key integer COUNT integer",
    "HSCAN key 0 MATCH *a*",
    "RPUSH key ... value",
    "RPUSH key ... value",
    "LPUSH key ... value",
    "LPOP key",
    "LPOP key integer",
    "RPOP key integer",
    "RPOP key",
    "LLEN key",
    "LINDEX key integer",
    "LSET key integer value",
    "LRANGE key integer integer",
    "LRANGE key 0 -1",
    "LTRIM key integer integer",
    "ZADD key ... score member",
    "ZADD key ... score member",
    "ZADD key NX ... score member",
    "ZADD key XX CH ... score member",
    "ZADD key GT CH score member",
    "ZADD key option option score member",
    "ZADD key XX INCR score member",
    "ZADD key INCR score member score member",
    "ZINCRBY key score member",
    "ZREM key ... member",
    "ZSCORE key member",
    "ZCARD key",
    "ZRANK key member",
    "ZCOUNT key bound bound",
    "ZRANGE key integer integer",
    "ZRANGE key integer integer WITHSCORES",
    "ZRANGE key 0 -1 REV WITHSCORES",
    "ZRANGE key bound bound BYSCORE LIMIT integer integer",
    "ZRANGE key bound bound BYSCORE REV",
    "ZRANGE key integer integer LIMIT 0 1",
    "ZRANGEBYSCORE key bound bound",
    "ZRANGEBYSCORE key bound bound WITHSCORES LIMIT integer integer",
    "ZREMRANGEBYRANK key integer integer",
    "ZREMRANGEBYSCORE key bound bound",
    "ZSCAN key 0",
    "XADD key id ... field value",
    "XADD key id ... field value",
    "XADD key MAXLEN = integer id field value",
    "XADD key MINID = id id field value",
    "XLEN key",
    "XDEL key ... id",
    "XTRIM key MAXLEN = integer",
    "XTRIM key MINID id",
    "XRANGE key edge edge",
    "XRANGE key - + COUNT integer",
    "XREVRANGE key edge edge",
    "XREVRANGE key + - COUNT 2",
    "PING",
    "PING value",
    "ECHO value",
    "SELECT 0",
    "SELECT 99",
    "SELECT x",
    "AUTH value",
    "AUTH value value",
    "CLUSTER SLOTS",
    "CLIENT GETNAME",
    "BOGUS key value",
    "GET",
    "HSET key field",
    "ZADD key 1",
    "XADD key 1-1 field",
    "SCRIPT EXISTS value",
    "EVALSHA value 0",
];

/// Scripts, each behind `EVAL`, with two keys and two arguments.
pub(super) const SCRIPTS: &[&str] = &[
    "return redis.call('GET', KEYS[1])",
    "return redis.pcall('GET', KEYS[1])",
    "return {redis.pcall('GET', KEYS[1])}",
    "local r = redis.pcall('HGET', KEYS[1], ARGV[1]); return type(r) == 'table' and r.err or r",
    "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 100000000000)",
    "return redis.call('HGETALL', KEYS[1])",
    "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
    "return redis.call('ZSCORE', KEYS[1], ARGV[2])",
    "return redis.call('XRANGE', KEYS[1], '-', '+')",
    "return redis.call('MGET', unpack(KEYS))",
    "return redis.call('LRANGE', KEYS[1], 0, -1)",
    "return redis.call('TYPE', KEYS[1])",
    "return redis.call('TYPE', KEYS[1]).ok",
    "return redis.call('RPUSH', KEYS[2], 1, 1.5, 1e15, 1e16, 1e17, 1e20, 0.1, -7, 2^53, 1/3)",
    "return redis.call('INCRBY', KEYS[1], ARGV[1])",
    "redis.call('SET', KEYS[2], 'x')\n\nreturn redis.call('LPOP', KEYS[2])",
    "local ok, why = pcall(redis.call, 'LPOP', KEYS[1]); return ok and 'fine' or why.err",
    "local ok, why = pcall(function() return redis.call('LPOP', KEYS[1]) end); if not ok then error(why) end return why",
    "local function f() return redis.call('NOTHING', KEYS[1]) end\nlocal r = f()\nreturn r",
    "return redis.pcall('GET')",
    "return redis.call('GET')",
    "return redis.call()",
    "return redis.pcall('GET', {})",
    "return redis.call('SUBSCRIBE', 'x')",
    "return {1, 2.9, -2.9, 1e30, 0/0, true, false, 'x', {}, {3, nil, 4}, nil, 5}",
    "return {err = 'MY words'}",
    "return {err = 'word'}",
    "return {ok = 'FINE'}",
    "return redis.error_reply(ARGV[1])",
    "return redis.error_reply('-CODE words')",
    "return redis.error_reply('one two')",
    "return redis.status_reply('fine')",
    "return redis.sha1hex(ARGV[1])",
    "return tostring(1e15) .. ' ' .. 1e14 .. ' ' .. 0.1 .. ' ' .. 2^53 .. ' ' .. -1.5 .. ' ' .. 100",
    "return string.format('%.0f %d %s %5.2f %q', 2^53, 7, 'x', 1.005, 'a\\nb')",
    "return {tonumber('0x10'), tonumber(' 5 '), tonumber('x'), tonumber('1e3'), #ARGV}",
    "return struct.pack('<dBhI4>I8', 1.5, 255, -2, 7, 2^40)",
    "return {struct.unpack('>I8bHx', struct.pack('>I8bHx', 2^40, -3, 65535))}",
    "return {struct.unpack('<i2<I4', struct.pack('<i2<I4', -9, 9), 1)}",
    "return struct.pack('c5sc0', 'abcdefgh', 'xyz', ARGV[1])",
    "return {struct.unpack('s', 'abc\\0def')}",
    "return struct.size('<!8 b d i4')",
    "return {struct.unpack('<d', 'short')}",
    "local unpack_struct = struct.unpack\nlocal x = unpack_struct('<d', 'short')\nreturn x",
    "local ok, why = pcall(struct.unpack, '<d', 'short') return why",
    "return struct.pack('<d', {})",
    "return struct.pack('<d', 'x')",
    "return #struct.pack('<d', '7')",
    "return struct.pack('?', 1)",
    "local ok, why = pcall(struct.pack, '!3', 1) return why",
    "error('words')",
    "error({err = 'CODE words'})",
    "error('words', 0)",
    "local x = nil\nreturn x.y",
    "return nothing",
    "nothing = 1",
    "return 1 +",
    "if true then",
    "return string.rep('x', 3):upper():sub(2)",
    "return {string.find('a-b', '-', 1, true), ('p12:3'):match('^p(%d+):(%d+)$')}",
    "return math.max(1, 2) + math.fmod(7, 4) + math.floor(-1.5)",
    "local t = {3, 1, 2} table.sort(t) return table.concat(t, ',')",
    "return redis.call('HSET', KEYS[1], unpack({'a', 1, 'b', 2}))",
    "return redis.call('PEXPIREAT', KEYS[1], 1)",
    "return #redis.call('TIME')",
    "return redis.call('EXISTS', KEYS[1], KEYS[2]) + 1",
    "return {KEYS[1], ARGV[1], KEYS[3], 'unseen'}",
    "return {type(redis.call('GET', 'absent')), type(redis.call('LPOP', 'absent', 3)), type(redis.call('LRANGE', 'absent', 0, 1))}",
    "local ok, why = pcall(error, {1, 2}) return why",
    "local ok, why = pcall(error) return {ok, why}",
    "return select('#', pcall(function() return 1, nil, nil end))",
    "return {xpcall(function() error('x') end, function(why) return 'seen ' .. why end)}",
];

/// The words of each kind, separated by `|`. Spans are of days or nothing: both servers have clocks, and a key that goes
/// within a test may be gone on one only.
const WORDS: [(&str, &[u8]); 12] = [
    ("key", b"a|b|c|d"),
    ("value", b"|0|1|-7|abc|9223372036854775807|3.5|\x00\xff\r\n| 7|nan|a longer value, but not so long that it is kept in another way"),
    ("integer", b"0|1|2|3|-1|-2|5|100|x||1.5|9223372036854775807|-9223372036854775808|9223372036854775808|+1|01"),
    ("span", b"1000000000|2000000000|0|-5|x||1.5|9223372036854775807|-9223372036854775808|9223372036854775808|+1|01"),
    ("time", b"3000000000000|4000000000000|1|0|-1|x"),
    ("option", b"NX|XX|GT|LT|CH|GET|KEEPTTL|nx|zz|PX"),
    ("field", b"f|g||h a"),
    ("member", b"m|n|o||mm"),
    ("score", b"0|1|2|-0|0.1|1e300|inf|-inf|x|nan||-3.75|12345678901"),
    ("bound", b"0|(0|1|(1|-inf|+inf|(inf|2|x|(0.1|("),
    ("id", b"0-0|1-1|1-2|2|3-*|5-7|5-18446744073709551615|x|-1|1-x|9"),
    ("edge", b"-|+|1|(1-1|1-2|2|(2|x|5-7|(-|0"),
];

/// Chooses words: a small generator of numbers, seeded by one.
pub(super) struct Chooser(u64);

impl Chooser {
    pub(super) fn new(number: u64) -> Self {
        let mut chooser = Self(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        chooser.below(1);
        chooser
    }

    /// The words of a pattern.
    pub(super) fn filled(&mut self, pattern: &str) -> Vec<Vec<u8>> {
        let is_script = ["return", "error(", " = 1", "then"].iter().any(|word| pattern.contains(word));
        if is_script {
            let words = ["key", "key", "value", "member"].map(|kind| self.word(kind));
            return [b"EVAL".to_vec(), pattern.into(), b"2".to_vec()].into_iter().chain(words).collect();
        }
        let (start, repeated) = pattern.split_once(" ... ").unwrap_or((pattern, ""));
        let mut words: Vec<Vec<u8>> = start.split(' ').map(|word| self.word(word)).collect();
        if !repeated.is_empty() {
            for _ in 0..=self.below(3) {
                words.extend(repeated.split(' ').map(|word| self.word(word)));
            }
        }
        words
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub(super) fn of<'a, T: ?Sized>(&mut self, words: &[&'a T]) -> &'a T {
        let place = self.below(words.len() as u64);
        words[usize::try_from(place).unwrap()]
    }

    fn word(&mut self, kind: &str) -> Vec<u8> {
        let Some((_, words)) = WORDS.iter().find(|(name, _)| *name == kind) else {
            return kind.as_bytes().to_vec();
        };
        let words: Vec<&[u8]> = words.split(|byte| *byte == b'|').collect();
        self.of(&words).to_vec()
    }
}
