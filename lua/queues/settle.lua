-- Acks items, gives them back, or gives their workers more time. Twin: crates/queues/src/model/settle.rs.
--
-- ARGV: the numbers, with 1 (ack), 2 (nack) or 3 (extend), the delay or the time, the number of items and 1 if tokens follow
-- for each call, then their tokens, in two halves; then the items of all calls, as members; then the outcome of each call.
--
-- Of an acked item the record goes first, which needs no memory, and then the numbers are written: both can be undone, by
-- what wrote the numbers. Once the item itself is gone, what is left of it elsewhere is removed when it is due.

local fields, members = {}, #ARGV - 1 - q.calls
for i = 1, members do
  fields[i], fields[members + i] = 'i' .. ARGV[1 + i], 'k' .. ARGV[1 + i]
end

-- What gives an item back: when it comes again, and its record; nothing if it went to the dead letters.
local function nack_function(dead)
  local LATEST = 9007199254740991
  local bury, write_dead = dead_letters(dead)
  local function nack(member, raw, delay)
    local size, deliveries = struct.unpack('<dd', raw)
    if bury(member, size, deliveries, raw) then return nil, false end
    return string.format('%.0f', math.min(q.now + delay, LATEST)), raw:sub(1, 16) .. 'n' .. raw:sub(18)
  end
  return nack, write_dead
end

-- What is written of items whose last word is a Nack: when they are due, as arguments of ZADD. Their records go with the
-- numbers.
local function give_back(due, records)
  local scored, written = {}, {}
  for member, again in pairs(due) do
    scored[#scored + 1], scored[#scored + 2] = again, member
    written[#written + 1], written[#written + 2] = 'i' .. member, records[member]
  end
  q.written = written
  return scored
end

-- Whether a record is of the delivery with this token. That of an earlier one may still be there, where a version without
-- tokens has delivered the item since.
local function is_of(raw, token, high, low)
  if high == 0 and low == 0 then return true end
  if not token then return false end
  local its_high, its_low, its_deliveries = struct.unpack('<ddd', token)
  local _, deliveries = struct.unpack('<dd', raw)
  return its_high == high and its_low == low and its_deliveries == deliveries
end

local function answer(read)
  local ACK, EXTEND, LATEST, ACKED = 1, 3, 9007199254740991, 1
  -- What the records of items are by now, false for none; items that are gone; when an item is delivered again.
  -- Items that leave, also those that go to the dead letters, are in `left`, in order.
  local records, gone, gone_fields, due, left, before = {}, {}, {}, {}, {}, {}
  local dead = { count = 0, left = left }
  local reply, place, nack, write_dead = { struct.pack('<d', q.now) }, 1, nil, nil
  for call = 1, q.calls do
    local op, delay, n, checked, at = struct.unpack('<dddd', ARGV[1], q.at)
    local outcome, done, dead_before = ARGV[1 + members + call], '', dead.count
    for _ = 1, n do
      place = place + 1
      local member, high, low = ARGV[place], 0, 0
      if checked == 1 then high, low, at = struct.unpack('<dd', ARGV[1], at) end
      local raw, token = records[member], read[place + members]
      if raw == nil then raw = read[place] end
      if not raw or not is_of(raw, token, high, low) then
        done = done .. '0'
      else
        done, q.changed = done .. '1', true
        before[#before + 1], before[#before + 2] = fields[place - 1], read[place]
        if op == ACK then
          gone[#gone + 1] = member
          gone_fields[#gone_fields + 1] = fields[place - 1]
          if token then
            gone_fields[#gone_fields + 1] = fields[members + place - 1]
            before[#before + 1], before[#before + 2] = fields[members + place - 1], token
          end
          records[member], due[member] = false, nil
          q.bytes, q.acked = math.max(0, q.bytes - struct.unpack('<d', raw)), q.acked + 1
          left[#left + 1] = { ACKED, member, raw, outcome }
        elseif op == EXTEND then
          due[member], records[member] = string.format('%.0f', math.min(q.now + delay, LATEST)), raw
        else
          if not nack then nack, write_dead = nack_function(dead) end
          due[member], records[member] = nack(member, raw, delay)
        end
      end
    end
    q.at = at
    -- From how many items are gone follows how many held a place after this call.
    reply[#reply + 1] = struct.pack('<dd', #gone + dead.count, dead.count - dead_before)
    reply[#reply + 1] = done
  end
  reply[#reply + 1] = struct.pack('<d', ask(LENGTH, KEYS[1]) + dead.count)
  if write_dead then write_dead() end
  if #gone > 0 then ask('HDEL', KEYS[3], unpack(gone_fields)) end
  local scored, keep = next(due) and give_back(due, records) or {}, archive_function(left)
  q.before = dead.count == 0 and before
  q.commit = function()
    -- Before the items go: an outcome that is kept twice is better than none.
    if keep then keep() end
    if #gone > 0 then
      ask('XDEL', KEYS[1], unpack(gone))
      q.committed = true
      ask('XACK', KEYS[1], 'weir', unpack(gone))
      ask('ZREM', KEYS[2], unpack(gone))
    end
    if #scored > 0 then ask('ZADD', KEYS[2], unpack(scored)) end
  end
  return reply
end
