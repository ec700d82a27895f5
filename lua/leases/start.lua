-- What every call about leases begins with. ../README.md has the contract; the twin of all these files is
-- crates/leases/src/model/.
--
-- To define a function costs as much as a command, and more for each local of the script that it uses. So what is known
-- of the lease at hand is in one table, `l`.
--
-- ARGV: the keys of all leases, if they are not declared; the id of each and its partition; and one string of doubles:
-- the time, and 19 for each lease.

local SPAN, leases = 152, (#ARGV[#ARGV] - 8) / 152
local now = struct.unpack('<d', ARGV[#ARGV])
local by_caller = now >= 0

local l = {
  now = 0, records = '', ends = '', id = '', partition = '',
  -- How many samples a window must have is `window_samples`; p1 to p4 are the controller's own numbers.
  op = 0, initial = 0, least = 0, most = 0, max_ttl = 0, idle = 0, share = 0, weight = 0, ttl = 0, outcome = 0, rtt = 0,
  shown_in_flight = 0, jitter = 0, window_span = 0, window_samples = 0, p1 = 0, p2 = 0, p3 = 0, p4 = 0,
  -- What a key remembers for its limit: m1 to m3 are the controller's own memory. `has_memory` is false before the
  -- first sample.
  has_memory = false, stored_memory = false, estimate = 0, m1 = 0, m2 = 0, m3 = 0,
  began = 0, samples = 0, rtt_sum = 0, max_in_flight = 0, any_dropped = 0,
  -- What is held, how many leases there are, the latest end that any has had, until when the keys live, since when there
  -- is no lease, and a time before which none ends.
  in_flight = 0, count = 0, latest_end = 0, goes = 0, empty_since = 0, first_end = 0,
  record = false, removed = false, new_record = false, changed = false,
  -- The numbers as they were read, and whether others were written that may have to be undone.
  stored = false, saving = false,
  -- Leases that have ended and are still stored: how many, their ids, and names and records of the fields.
  -- `gone_own` is the place of one that had the id of the lease at hand.
  gone = 0, gone_ids = false, gone_names = false, gone_records = false, gone_own = nil,
  -- When the lease at hand ends, if that is to be written, as text.
  ends_at = false,
  -- What partitions hold, as far as it was read, and what those held that have changed.
  held_by = false, changed_partitions = false,
}

-- Begins with a lease: its keys, its names and its numbers.
local function begin(number)
  local keys, first = KEYS, 0
  if #KEYS == 0 then keys, first = ARGV, 2 * leases end
  l.now, l.records, l.ends = now, keys[2 * number - 1], keys[2 * number]
  l.id, l.partition = ARGV[first + 2 * number - 1], ARGV[first + 2 * number]
  l.op, l.initial, l.least, l.most, l.max_ttl, l.idle, l.share, l.weight, l.ttl, l.outcome, l.rtt, l.shown_in_flight,
    l.jitter, l.window_span, l.window_samples, l.p1, l.p2, l.p3, l.p4 =
    struct.unpack('<ddddddddddddddddddd', ARGV[#ARGV], 9 + SPAN * (number - 1))
  l.has_memory, l.stored_memory, l.estimate, l.m1, l.m2, l.m3 = false, false, l.initial, 0, 0, 0
  l.began, l.samples, l.rtt_sum, l.max_in_flight, l.any_dropped = 0, 0, 0, 0, 0
  l.in_flight, l.count, l.latest_end, l.goes, l.empty_since, l.first_end = 0, 0, 0, 0, 0, 0
  l.record, l.removed, l.new_record, l.changed, l.held_by, l.changed_partitions = false, false, false, false, {}, {}
  l.stored, l.saving, l.gone, l.gone_ids, l.gone_own, l.ends_at = false, false, 0, false, nil, false
end

local function within(limit)
  return math.max(l.least, math.min(l.most, limit))
end
