-- What was written after the position of a node. Twins: ControlState::changes_since and BanState::bans_since.
--
-- ARGV[2]  the position

local SINCE, EVERYTHING = 5, 6

local function answer()
  local position, records, bytes = store_position(), {}, 0
  if position == ARGV[2] then return reply_of(SINCE, 0, position, records) end
  local id = text((struct.unpack('>I8', ARGV[2]))) .. '-0'
  local changes = ask('XRANGE', KEYS[2], id, '+', 'COUNT', text(c.most_polled + 1))
  local first = changes[1]
  if position == NONE or not first or first[1] ~= id or first[2][2] ~= ARGV[2]:sub(9) then
    return reply_of(EVERYTHING, 0, position, records)
  end
  local last = ARGV[2]
  for i = 2, #changes do
    if bytes >= c.most_bytes then break end
    local fields = changes[i][2]
    for place = 3, #fields do
      records[#records + 1] = fields[place]
      bytes = bytes + #fields[place]
    end
    last = struct.pack('>I8', tonumber(changes[i][1]:match('%d+'))) .. fields[2]
  end
  return reply_of(SINCE, 0, last, records)
end
