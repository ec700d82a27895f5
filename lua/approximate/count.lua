-- The counters of keys that nodes count on their own. Twin: SharedCount of weir-core.
--
-- KEYS     for each call a hash: w the window, c the count, v its version, r the units that were taken back, o those above
--          the limit that were pushed; for each place p its last holder's incarnation, sequence and units as
--          'incarnation:sequence:units'
-- ARGV     the time in µs, or -1 for the server's; then for each call the length of a window; 'charge', 'at_most', 'peek',
--          'force', 'refund' or 'reset'; the cost, how many times, the limit, the share and the most that a debit leaves; 1
--          with a push, and of it the window, place, incarnation, sequence and units
--
-- The reply: for each call how many passed, the units, the limit that they were decided at, the count before, the window,
-- the count, its version, the units that were taken back, those above the limit, the time in µs; or the reason of a failure.

-- Arguments of a call.
local WIDTH = 13

-- Numbers above 10^14 would be written with an exponent.
local function text(number)
  return string.format('%.0f', number)
end

local now = tonumber(ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- How many calls pass, and the units that are charged or taken back.
local function decide(op, cost, times, at, most, count)
  local room = math.max(at - count, 0)
  local fits = count + cost <= at and 1 or 0
  if op == 'charge' and cost > 0 then
    local passed = math.min(times, (room - room % cost) / cost)
    return passed, passed * cost
  elseif op == 'charge' then
    return fits * times, 0
  elseif op == 'at_most' then
    local units = math.min(cost, room)
    return units > 0 and 1 or fits, units
  elseif op == 'force' then
    return 1, math.min(cost, math.max(most - count, 0))
  elseif op == 'refund' then
    return 1, math.min(cost, count)
  elseif op == 'reset' then
    return 1, count
  end
  return fits, 0
end

local function answer(number)
  local key, first = KEYS[number], 2 + (number - 1) * WIDTH
  local length, op, cost = tonumber(ARGV[first]), ARGV[first + 1], tonumber(ARGV[first + 2])
  local times, limit, share = tonumber(ARGV[first + 3]), tonumber(ARGV[first + 4]), tonumber(ARGV[first + 5])
  local most, has_push = tonumber(ARGV[first + 6]), ARGV[first + 7] == '1'
  local pushed_window, place = tonumber(ARGV[first + 8]), 'p' .. ARGV[first + 9]
  local incarnation, sequence = tonumber(ARGV[first + 10]), tonumber(ARGV[first + 11])
  local units = tonumber(ARGV[first + 12])

  local window = math.floor(now / length)
  local state = redis.call('HMGET', key, 'w', 'c', 'v', 'r', 'o', place)
  local count, version = tonumber(state[2]) or 0, tonumber(state[3]) or 0
  local refunded, over = tonumber(state[4]) or 0, tonumber(state[5]) or 0
  local last, written = state[6], {}
  local is_new = tonumber(state[1]) ~= window
  if is_new then
    count, version, refunded, over, last = 0, math.max(now, version + 1), 0, 0, false
    written = { 'w', text(window) }
  end
  local function put(field, value)
    written[#written + 1], written[#written + 2] = field, value
  end

  local holds, before = false, count
  if has_push and pushed_window == window then
    local its, passed, seen = (last or '0:0:0'):match('^(%d+):(%d+):(%d+)$')
    its, passed, seen = tonumber(its), tonumber(passed), tonumber(seen)
    if incarnation > its then
      its, passed, seen = incarnation, 0, 0
    end
    if incarnation == its then
      holds = sequence >= passed
      if units > seen then
        count, version = count + units - seen, version + 1
        -- A debit may have passed the limit before: that is no over-admission.
        local above = count - math.max(before, limit)
        if above > 0 then
          over = over + above
          put('o', text(over))
        end
      end
      local kept = text(its) .. ':' .. text(math.max(passed, sequence)) .. ':' .. text(math.max(seen, units))
      if kept ~= last then put(place, kept) end
    end
  end

  before = count
  local at = holds and limit or math.max(limit - share, 0)
  local passed, changed = decide(op, cost, times, at, most, count)
  if changed > 0 then
    version = version + 1
    if op == 'refund' or op == 'reset' then
      count, refunded = count - changed, refunded + changed
      put('r', text(refunded))
    else
      count = count + changed
    end
  end
  if is_new or #written > 0 or text(count) ~= state[2] then
    put('c', text(count))
    put('v', text(version))
    if is_new then redis.call('DEL', key) end
    redis.call('HSET', key, unpack(written))
    if is_new then
      -- A window more, so that a node with an older clock finds it. It stays as long as the window, so it is set once.
      local set = redis.pcall('PEXPIRE', key, text(math.ceil(((window + 2) * length - now) / 1000)))
      if type(set) == 'table' and set.err then
        redis.call('DEL', key)
        error(set.err)
      end
    end
  end
  return { passed, changed, at, before, window, count, version, refunded, over, now }
end

local replies = {}
for number = 1, #KEYS do
  local done, reply = pcall(answer, number)
  if not done and type(reply) == 'table' then reply = reply.err end
  replies[number] = done and reply or tostring(reply)
end
return replies
