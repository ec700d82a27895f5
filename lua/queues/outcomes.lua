-- Outcomes of a span of time, of one item or of all, the newest first. Twin: `search` in crates/queues/src/model/archive.rs.
--
-- The numbers of the only call are how many are shown at most (0 for totals alone), the item (-1 twice for all), the earliest
-- millisecond, the id before which the look begins, and the way in which items left (0 for all); the text follows, which may be
-- empty for all. Reply: the time, the depth, 1 if there may be more, the last one that was looked at, and how many were found of
-- each way; then what `show_entry` adds of each.

local fields = {}

local function answer()
  local LOOKS, WAYS = 1000, 4
  local _, _, parts_of = entry_functions()
  local most, of_ms, of_seq, from_ms, ms, seq, way = struct.unpack('<ddddddd', ARGV[1], q.at)
  local text, member = ARGV[2], false
  if of_ms >= 0 then member = string.format('%016.0f-%016.0f', of_ms, of_seq) end
  local is_search = member or way > 0 or text ~= '' or most == 0
  local reply, totals, found, looked, ended = { false }, { 0, 0, 0, 0 }, 0, 0, false
  local last = string.format('%.0f-%.0f', ms, seq)
  local function has_place() return (most == 0 or found < most) and looked < LOOKS end
  trim_archive()
  while not ended and has_place() do
    local chunk = math.min(LOOKS - looked, is_search and 100 or most - found)
    local entries = ask('XREVRANGE', KEYS[4], '(' .. last, string.format('%.0f', from_ms), 'COUNT', chunk)
    ended = #entries < chunk
    for i = 1, #entries do
      if not has_place() then break end
      local parts = entries[i][2]
      local its_way = tonumber(parts[1])
      looked, last = looked + 1, entries[i][1]
      if (not member or parts[2] == member) and (way == 0 or its_way == way) and (text == '' or parts[6] == text) then
        found, totals[its_way] = found + 1, totals[its_way] + 1
        if most > 0 then show_entry(reply, entries[i], parts_of) end
      end
    end
  end
  ms, seq = parts_of(last)
  reply[1] = struct.pack('<ddddd', q.now, ask(LENGTH, KEYS[1]), has_place() and 0 or 1, ms, seq)
  for i = 1, WAYS do reply[1] = reply[1] .. struct.pack('<d', totals[i]) end
  return reply
end
