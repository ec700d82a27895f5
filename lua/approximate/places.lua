-- The places of a strategy whose nodes count on their own. Twin: Places of weir-core.
--
-- KEYS[1]  a hash: for each place its holder's incarnation and last heartbeat in µs as 'incarnation:heartbeat', followed by
--          ':free' if it was given back; i the greatest incarnation
-- ARGV     the time in µs, or -1 for the server's; the length of a window; the number of places; 'take', 'keep' or 'free';
--          of the last two the place and its incarnation
--
-- The reply: the place, its incarnation, and the time in µs; or nothing, if the node holds none.

local key = KEYS[1]
local now, length, places = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local ask, place, incarnation = ARGV[4], ARGV[5], tonumber(ARGV[6])

-- Numbers above 10^14 would be written with an exponent.
local function text(number)
  return string.format('%.0f', number)
end

local function read(state)
  local its, heartbeat, free = (state or ''):match('^(%d+):(%d+)(:?%a*)$')
  if not its then return nil end
  return tonumber(its), tonumber(heartbeat), free ~= ''
end

local function write(number, its, heartbeat, mark, ...)
  redis.call('HSET', key, number, text(its) .. ':' .. text(heartbeat) .. mark, ...)
  -- After two windows without a heartbeat every place is free.
  redis.call('PEXPIRE', key, text(math.ceil(length * 3 / 1000)))
end

if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

if ask ~= 'take' then
  local its, heartbeat, is_free = read(redis.call('HGET', key, place))
  if its ~= incarnation or is_free then return {} end
  if ask == 'free' then
    write(place, its, heartbeat, ':free')
    return {}
  end
  write(place, its, math.max(heartbeat, now), '')
  return { tonumber(place), its, now }
end

local all = {}
for number = 0, places - 1 do all[#all + 1] = text(number) end
local states = redis.call('HMGET', key, 'i', unpack(all))
for number = 0, places - 1 do
  local its, heartbeat, is_free = read(states[number + 2])
  -- R1: a place is blocked for two windows.
  if not its or is_free or now >= heartbeat + 2 * length then
    local newest = math.max((tonumber(states[1]) or 0) + 1, now)
    write(text(number), newest, now, '', 'i', text(newest))
    return { number, newest, now }
  end
end
return {}
