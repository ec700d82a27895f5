-- Limits of which nodes take chunks: takes back what is left of a chunk, decides on calls, and charges a chunk, in this order.
-- Twin: SharedChunk of weir-core.
--
-- KEYS     for each call the key of its limit, which is that of an exact one
-- ARGV     one string of doubles: the time in µs, or -1 for the server's; the number of calls; 0; then for each call those that
--          `read_ask` reads
--
-- The reply: for each call the time in µs, 1 if something was taken back, how many passed, 1 if the chunk did, and the state
-- between the first and the second step, if there is one; or the reason of a failure.

local AT_MOST_CHUNK = 2 -- the other one is 1: a charge

local function read_ask()
  local limit, ask = {}, {}
  limit.engine, limit.limit, limit.weight, limit.p1, limit.p2, limit.p3, ask.op, ask.cost, ask.times, ask.chunk, ask.units,
    ask.taken, ask.lasts, position = unpack_struct('<ddddddddddddd', request, position)
  limit.capacity = limit.limit * limit.weight
  return limit, ask
end

local function read_state(limit, key)
  local level, at, origin, extra, shift = read(limit, key, now)
  if not level then error(at) end
  return { level = level, at = at, origin = origin, extra = extra, shift = shift, raw = last_raw }
end

local function write_state(limit, key, one, level)
  local reply = write(limit, key, one, level)
  if refused(reply) then error(reply.err) end
end

-- A window names the chunks that are of it. Those of a bucket are named by when they were taken.
local function is_of_now(limit, one, ask)
  if limit.engine == WINDOW then return one.shift == 0 and one.origin == ask.taken end
  return ask.taken <= now and now - ask.taken <= ask.lasts
end

-- How many calls pass, the units that are charged, and whether that is all of them.
local function calls(limit, one, ask)
  local cost, level = ask.cost, one.level
  local fits = level <= limit.capacity and 1 or 0
  if ask.op == AT_MOST_CHUNK then
    local units = min(cost, floor_div(max(limit.capacity - level, 0), limit.weight))
    if cost > 0 then fits = units > 0 and 1 or 0 end
    return fits, units, fits == ask.times and units == cost
  end
  local passed = 0
  if cost == 0 then passed = fits * ask.times
  elseif cost <= limit.limit and level < limit.capacity then
    passed = min(ask.times, floor_div(limit.capacity - level, cost * limit.weight))
  end
  return passed, passed * cost, passed == ask.times
end

local function state_of(limit, raw)
  if not raw then return end
  if limit.engine == WINDOW then return unpack_struct('<ddd', raw) end
  return unpack_struct('<dddd', raw)
end

local function answer(limit, ask, key)
  local one, took_back = read_state(limit, key), 0
  if ask.units > 0 and one.level > 0 and is_of_now(limit, one, ask) then
    write_state(limit, key, one, max(one.level - ask.units * limit.weight, 0))
    one, took_back = read_state(limit, key), 1
  end
  local before, passed, units, all = one.raw, calls(limit, one, ask)
  local level, has_chunk = one.level + units * limit.weight, 0
  local takes = ask.chunk > 0 and all
  if takes and level + ask.chunk * limit.weight <= limit.capacity then
    level, has_chunk = level + ask.chunk * limit.weight, 1
  end
  -- A state from a clock that has since gone back is moved, as a denial does anywhere.
  local moves = one.shift > 0 and (takes or ask.cost > 0 and ask.times > 0)
  if level > one.level or moves then write_state(limit, key, one, level) end
  local found = { now, took_back, passed, has_chunk, state_of(limit, before) }
  -- Where the string ended comes last.
  if before then found[#found] = nil end
  return found
end

local replies = {}
for number = 1, groups do
  local limit, ask = read_ask()
  local done, found = pcall(answer, limit, ask, keys[number])
  if not done and type(found) == 'table' then found = found.err end
  replies[number] = done and found or tostring(found)
end
return replies
