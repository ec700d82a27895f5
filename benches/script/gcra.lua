-- GCRA as it is usually written. ARGV: µs a token, tokens that may be taken at once besides.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local tolerance = interval * burst
if tat - now > tolerance then
  return { 0, 0, tat - now - tolerance, tat - now }
end
tat = tat + interval
redis.call('SET', KEYS[1], string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1)
return { 1, math.floor((tolerance - (tat - now)) / interval) + 1, 0, tat - now }
