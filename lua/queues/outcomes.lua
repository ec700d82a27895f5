-- Outcomes of a span of time, of one item or of all, the newest first. Twin: `search` in crates/queues/src/model/records.rs.
--
-- The numbers of the only call are how many are shown at most, the item (-1 twice for all), the earliest millisecond, and the
-- id before which the look begins. Reply: the time, the depth, 1 if there may be more, and the last one that was looked at;
-- then of each its numbers, the name of the worker and the text.

local fields = {}

local function answer()
  local LOOKS = 1000
  local _, _, parts_of = entry_functions()
  local most, of_ms, of_seq, from_ms, ms, seq = struct.unpack('<dddddd', ARGV[1], q.at)
  local reply, found, looked, last, ended = { false }, 0, 0, string.format('%.0f-%.0f', ms, seq), false
  ask('XTRIM', KEYS[4], 'MINID', '=', string.format('%.0f', math.floor(math.max(0, q.now - q.outcomes_for) / 1000)))
  while not ended and found < most and looked < LOOKS do
    local chunk = math.min(LOOKS - looked, of_ms < 0 and most - found or 100)
    local entries = ask('XREVRANGE', KEYS[4], '(' .. last, string.format('%.0f', from_ms), 'COUNT', chunk)
    ended = #entries < chunk
    for i = 1, #entries do
      if found >= most then break end
      local parts = entries[i][2]
      local item_ms, item_seq = parts_of(parts[2])
      looked, last = looked + 1, entries[i][1]
      ms, seq = parts_of(last)
      if of_ms < 0 or (item_ms == of_ms and item_seq == of_seq) then
        local n = #reply
        reply[n + 1] = struct.pack('<ddddd', ms, seq, item_ms, item_seq, tonumber(parts[4]))
        reply[n + 2], reply[n + 3] = parts[6], parts[8]
        found = found + 1
      end
    end
  end
  local more = (found < most and looked < LOOKS) and 0 or 1
  reply[1] = struct.pack('<ddddd', q.now, ask(LENGTH, KEYS[1]), more, ms, seq)
  return reply
end
