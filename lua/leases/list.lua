-- A page of the leases of one key, by end and id. Twin: crates/leases/src/model/page.rs. It writes nothing.
--
-- KEYS: the records and the ends, as in call.lua. ARGV: the id after which the page begins; and two doubles: the time, or -1
-- for the server's; the end of that lease, or -1 for the first page.
--
-- Reply: an array of a string of doubles (the time, the number of leases, 1 if more follow, and of each lease its weight, the
-- time of its acquisition and its end), and the ids and the partitions by turns.

local MOST, CHUNK = 100, 500
local now, after_end = struct.unpack('<dd', ARGV[2])
if now < 0 then
  local time = redis.pcall('TIME')
  if time.err then return time end
  now = time[1] * 1000000 + time[2]
end
local text = string.format('%.0f', now)
local count = redis.pcall('ZCOUNT', KEYS[2], '(' .. text, '+inf')
if type(count) == 'table' then return count end

-- A lease of the same end comes after another one by its id.
local from, skipped = '(' .. text, false
if after_end > now then from, skipped = string.format('%.0f', after_end), true end
local ids, ends, offset, more = {}, {}, 0, false
repeat
  local some = redis.pcall('ZRANGEBYSCORE', KEYS[2], from, '+inf', 'WITHSCORES', 'LIMIT', offset, CHUNK)
  if some.err then return some end
  for i = 1, #some, 2 do
    local its_end = tonumber(some[i + 1])
    if not (skipped and its_end == after_end and some[i] <= ARGV[1]) then
      if #ids == MOST then more = true break end
      ids[#ids + 1], ends[#ends + 1] = some[i], its_end
    end
  end
  offset = offset + CHUNK
until more or #some < 2 * CHUNK

local names, reply = {}, { '' }
for i = 1, #ids do names[i] = 'i' .. ids[i] end
local records = #names > 0 and redis.pcall('HMGET', KEYS[1], unpack(names)) or {}
if records.err then return records end
local numbers = {}
for i = 1, #ids do
  local weight, acquired, partition, _ = 0, 0, '', nil
  if records[i] then
    weight, _, acquired = struct.unpack('<ddd', records[i])
    if #records[i] > 24 then partition = records[i]:sub(25) end
  end
  numbers[i] = struct.pack('<ddd', math.max(0, weight), acquired, ends[i])
  reply[2 * i], reply[2 * i + 1] = ids[i], partition
end
reply[1] = struct.pack('<ddd', now, count, more and 1 or 0) .. table.concat(numbers)
return reply
