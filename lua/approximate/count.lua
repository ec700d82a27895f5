-- The counter of a key that nodes count on their own. Twin: SharedCount of weir-core.
--
-- KEYS[1]  a hash: w the window, c the count, v its version; for each place p its last holder's incarnation, sequence and
--          units as 'incarnation:sequence:units'
-- ARGV     the time in µs, or -1 for the server's; the length of a window; cost, limit and share; 1 with a push, and of
--          it the window, place, incarnation, sequence and units
--
-- The reply: 1 if the cost was charged, the window, the count, its version, the time in µs.

local key = KEYS[1]
local now, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local cost, limit, share = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local has_push, pushed_window, place = ARGV[6] == '1', tonumber(ARGV[7]), 'p' .. ARGV[8]
local incarnation, sequence, units = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

-- Numbers above 10^14 would be written with an exponent.
local function text(number)
  return string.format('%.0f', number)
end

if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local window = math.floor(now / length)
local state = redis.call('HMGET', key, 'w', 'c', 'v', place)
local count, version = tonumber(state[2]) or 0, tonumber(state[3]) or 0
local last, written = state[4], {}
local is_new = tonumber(state[1]) ~= window
if is_new then
  count, version, last = 0, math.max(now, version + 1), false
  written = { 'w', text(window) }
end

local holds = false
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
    end
    local kept = text(its) .. ':' .. text(math.max(passed, sequence)) .. ':' .. text(math.max(seen, units))
    if kept ~= last then
      written[#written + 1], written[#written + 2] = place, kept
    end
  end
end

local allowed = count + cost <= (holds and limit or math.max(limit - share, 0))
if allowed and cost > 0 then
  count, version = count + cost, version + 1
end
if is_new or #written > 0 or text(count) ~= state[2] then
  written[#written + 1], written[#written + 2] = 'c', text(count)
  written[#written + 1], written[#written + 2] = 'v', text(version)
  if is_new then redis.call('DEL', key) end
  redis.call('HSET', key, unpack(written))
  -- A window more, so that a node with an older clock finds it.
  redis.call('PEXPIRE', key, text(math.ceil(((window + 2) * length - now) / 1000)))
end
return { allowed and 1 or 0, window, count, version, now }
