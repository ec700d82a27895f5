-- What was written after the position of a node. Twins: ControlState::changes_since and BanState::bans_since.
--
-- ARGV[2]  the position

local SINCE, EVERYTHING = 5, 6
-- Changes that are read at a time: one may have 1,000 records.
local STEP = 8

-- The records of the changes after this one, within the bounds of an answer, and the position of the last one.
local function changes_after(id, last)
  local records, bytes, count = {}, 0, 0
  repeat
    local changes = ask('XRANGE', KEYS[2], '(' .. id, '+', 'COUNT', text(STEP))
    for i = 1, #changes do
      local fields = changes[i][2]
      local is_full = #records > 0 and #records + #fields - 2 > 2 * c.most_together
      if count >= c.most_polled or bytes >= c.most_bytes or is_full then return records, last end
      for place = 3, #fields do
        records[#records + 1] = fields[place]
        bytes = bytes + #fields[place]
      end
      id, count = changes[i][1], count + 1
      last = struct.pack('>I8', tonumber(id:match('%d+'))) .. fields[2]
    end
  until #changes < STEP
  return records, last
end

local function answer()
  local position = store_position()
  if position == ARGV[2] then return reply_of(SINCE, 0, position, {}) end
  local id = text((struct.unpack('>I8', ARGV[2]))) .. '-0'
  local first = ask('XRANGE', KEYS[2], id, id)[1]
  if position == NONE or not first or first[2][2] ~= ARGV[2]:sub(9) then
    return reply_of(EVERYTHING, 0, position, {})
  end
  local records, last = changes_after(id, ARGV[2])
  return reply_of(SINCE, 0, last, records)
end
