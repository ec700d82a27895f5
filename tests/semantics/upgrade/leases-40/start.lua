-- What every call about a lease begins with. README.md has the contract; the twin of all these files is
-- crates/core/src/lease/.

local RECORDS, ENDS = KEYS[1], KEYS[2]
local id, partition = ARGV[1], ARGV[2]
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local pack_struct, unpack_struct = struct.pack, struct.unpack

-- How many samples a window must have is `window_samples`; p1 to p4 are the controller's own numbers.
local now, op, initial, least, most, max_ttl, idle, share, weight, ttl, outcome, rtt, shown_in_flight, jitter,
  window_span, window_samples, p1, p2, p3, p4 = unpack_struct('<dddddddddddddddddddd', ARGV[3])

-- What a key remembers for its limit: m1 to m3 are the controller's own memory. `has_memory` is false before the
-- first sample.
local has_memory, estimate, m1, m2, m3 = false, initial, 0, 0, 0

local function within(limit)
  return max(least, min(most, limit))
end
