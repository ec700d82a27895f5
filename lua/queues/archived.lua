-- Drops what the archive keeps no more.
local function trim_archive()
  ask('XTRIM', KEYS[4], 'MAXLEN', '=', string.format('%.0f', q.outcomes_max))
  ask('XTRIM', KEYS[4], 'MINID', '=', string.format('%.0f', math.floor(math.max(0, q.now - q.outcomes_for) / 1000)))
end

-- Adds an entry of the archive to a reply: numbers, the record of the last delivery, the text of the Ack, and what is kept of the
-- payload, behind its letter.
local function show_entry(reply, entry, parts_of)
  local parts, n = entry[2], #reply
  local ms, seq = parts_of(entry[1])
  local item_ms, item_seq = parts_of(parts[2])
  reply[n + 1] = struct.pack('<ddddd', ms, seq, item_ms, item_seq, tonumber(parts[1]))
  reply[n + 2], reply[n + 3], reply[n + 4] = parts[4], parts[6], parts[7] and parts[7] .. parts[8] or ''
end
