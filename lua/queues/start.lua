-- What every call of a queue begins with. ../README.md has the contract; the twin of all these files is
-- crates/queues/src/model/.
--
-- KEYS[1]  the items: a stream with one consumer group, `weir`, or a list
-- KEYS[2]  a sorted set: delivered items by the time at which they are delivered again, in µs
-- KEYS[3]  a hash: 's' numbers of the queue (16; older versions write and read 13); 'i' .. item: size and deliveries of a
--          delivered item, 't' or 'n' (taken, or given back), and who has or had it; 'k' .. item: the token of a delivery, in
--          two halves, and which delivery it is (versions without tokens count on and keep this field); 'p' how far lost items were looked for;
--          't' totals that came later
-- KEYS[4]  a stream: the archive, which is outcomes of items that have left
-- KEYS[5]  the items of the dead letters, and KEYS[6] their hash of numbers
-- KEYS[7]  and those after it: ids of new items
-- An item in a set or a hash is its id with leading zeros, so that equal times keep the order of ids. Commands of
-- streams read such an id, too.
--
-- To define a function costs as much as a command, and more for each local of the script that it uses. So what calls
-- have in common is in one table, `q`, and what is rarely needed is defined within what needs it.
--
-- A user of Redis may lack the right to any of the commands, and what was done before it stays done. So an order of
-- commands is such that none of them can be refused after something that cannot be undone by commands that have run.

-- `count` and `period` are the rate, 0 for none; `max_deliveries` is 0 where there are no dead letters; `max_age`
-- is 0 for none; `drops` is 1 if a full queue drops its oldest items; `lifo` is 1 if a list hands out its newest; `outcomes_max`
-- is how many outcomes are kept, and `payload` what of payloads: 0 for nothing, 1 for a digest, 2 for the head; `calls` is the
-- number of calls, and `at` the place of their own numbers in the first argument. The numbers of the queue are from
-- `last_ms` to `late_step`: `latest` is the latest time at which they were written, and due times above `late_from` are
-- still to be moved back by `late_step`, because the clock was.
local q = {
  now = 0, capacity = 0, max_bytes = 0, visibility = 0, max_deliveries = 0, count = 0, period = 0, outcomes_for = 0,
  max_age = 0, drops = 0, lifo = 0, outcomes_max = 0, payload = 0, calls = 0, at = 0,
  last_ms = 0, last_seq = 0, bytes = 0, level = 0, level_at = 0, accepted = 0, first = 0, nacked = 0, expired = 0,
  acked = 0, buried = 0, outcome_ms = 0, outcome_seq = 0, latest = 0, late_from = 0, late_step = 0,
  -- Whether the numbers have changed, and fields of META that are written with them. Absent at first: `add` and `new`, what
  -- adds an item once the numbers are written, and place, ms and seq of each; `commit`, what is done then, and `committed`
  -- once it cannot be undone; `before`, fields of META as they were, and `undo`, what undoes the rest; `hands_out`: the
  -- fields are those of items that were made due.
  -- What makes room in a full queue, and what then drops its oldest items. Absent where items neither age out nor are dropped:
  -- `age_out` and `find_oldest`.
  changed = false, written = false, make_room = false, drop = false,
  by_caller = false,
}
q.now, q.capacity, q.max_bytes, q.visibility, q.max_deliveries, q.count, q.period, q.outcomes_for, q.max_age, q.drops,
  q.lifo, q.outcomes_max, q.payload, q.calls, q.at = struct.unpack('<dddddddddddddd', ARGV[1])
q.by_caller = q.now >= 0

-- An error of a key is the reply of the call.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then error(reply) end
  return reply
end
